/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redact: how much it recognises, and how much else it changes. Prints the figures first, and then what is left or
 * changed; a release that is worse fails. All values are invented, and tokens are made here, so that no file of the
 * repository looks as if it held one.
 *
 *	tokens		made by the descriptions below, which come from the issuers' documents, not from shapes.def
 *	hard lines	tests/fixtures/secrets/hard.jsonl: ways of many programs to take a secret; those of the kind "must"
 *			are found whatever the secret is
 *	harmless lines	tests/fixtures/secrets/harmless.jsonl: arguments of builds and pipelines, most of them recorded
 *
 * Time is linear in the length of the arguments, whatever they are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/arena.h"
#include "identify/redact.h"
#include "model/ruleset.h"
#include "rules/rules.h"

#define FIXTURES SOURCE_TREE "/tests/fixtures/secrets/"
#define SECRET "Zq7kVw2mXp9LtR4nYb8s"	/* in hard.jsonl */

#define ARGS_MAX 64
#define SAMPLES 5	/* of each token */
#define TOKEN_SIZE 1024

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/*
 * A token as its issuer describes it. <X36> stands for 36 random characters: d digits, h lower-case hexadecimal, H any,
 * a letters, l lower-case letters and digits, u upper-case ones, n letters and digits, w and _, v and -, b base64,
 * z those of age's bech32, o A to H and digits; two numbers are a range.
 */
static const struct {
	const char *name, *text;
} tokens[] = {
	{ "1password-secret-key", "A3-<u6>-<u6>-<u5>-<u5>-<u5>-<u5>" },
	{ "1password-service-account-token", "ops_eyJ<b250>" },
	{ "adobe-client-secret", "p8e-<l32>" },
	{ "age-secret-key", "AGE-SECRET-KEY-1<z58>" },
	{ "airtable-personal-access-token", "pat<n14>.<h64>" },
	{ "alibaba-access-key-id", "LTAI<l20>" },
	{ "anthropic-admin-api-key", "sk-ant-admin01-<v93>AA" },
	{ "anthropic-api-key", "sk-ant-api03-<v93>AA" },
	{ "artifactory-api-key", "AKCp<n69>" },
	{ "artifactory-reference-token", "cmVmd<n59>" },
	{ "atlassian-api-token", "ATATT3<v186>" },
	{ "authress-service-client-access-key", "sc_<l5,30>.<l4,6>.acc-<l10,32>.<b30,120>" },
	{ "aws-access-key", "AKIA<U16>" },
	{ "aws-temporary-key", "ASIA<U16>" },
	{ "aws-bedrock-long-lived", "ABSK<b109,269>" },
	{ "aws-bedrock-short-lived", "bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t<b40>" },
	{ "azure-ad-client-secret", "<n3>8Q~<v31,34>" },
	{ "clickhouse-cloud", "4b1d<n38>" },
	{ "clojars", "CLOJARS_<l60>" },
	{ "cloudflare-origin-ca", "v1.0-<h24>-<h146>" },
	{ "databricks", "dapi<h32>" },
	{ "databricks-with-suffix", "dapi<h32>-2" },
	{ "digitalocean-access", "doo_v1_<h64>" },
	{ "digitalocean-pat", "dop_v1_<h64>" },
	{ "digitalocean-refresh", "dor_v1_<h64>" },
	{ "doppler", "dp.pt.<l43>" },
	{ "duffel", "duffel_test_<v43>" },
	{ "dynatrace", "dt0c01.<u24>.<u64>" },
	{ "easypost", "EZAK<n54>" },
	{ "easypost-test", "EZTK<n54>" },
	{ "facebook-access-token", "<d15,16>|<v27,40>" },
	{ "facebook-page-access-token", "EAAC<n100,200>" },
	{ "flutterwave-encryption-key", "FLWSECK_TEST-<o12>" },
	{ "flutterwave-public-key", "FLWPUBK_TEST-<o32>-X" },
	{ "flutterwave-secret-key", "FLWSECK_TEST-<o32>-X" },
	{ "flyio-deploy", "fo1_<v43>" },
	{ "flyio-macaroon", "fm2_<b100,150>" },
	{ "frameio", "fio-u-<v64>" },
	{ "gcp-api-key", "AIza<v35>" },
	{ "google-oauth", "ya29.<v100>" },
	{ "google-client-secret", "GOCSPX-<v28>" },
	{ "github-app-user", "ghu_<n36>" },
	{ "github-app-server", "ghs_<n36>" },
	{ "github-fine-grained", "github_pat_<n22>_<n59>" },
	{ "github-oauth", "gho_<n36>" },
	{ "github-pat", "ghp_<n36>" },
	{ "github-refresh", "ghr_<n36>" },
	{ "gitlab-cicd-job", "glcbt-<n2>_<v20>" },
	{ "gitlab-deploy", "gldt-<v20>" },
	{ "gitlab-feature-flag", "glffct-<v20>" },
	{ "gitlab-feed", "glft-<v20>" },
	{ "gitlab-incoming-mail", "glimt-<v25>" },
	{ "gitlab-kubernetes-agent", "glagent-<v50>" },
	{ "gitlab-oauth-app", "gloas-<v64>" },
	{ "gitlab-pat", "glpat-<v20>" },
	{ "gitlab-pat-routable", "glpat-<v27,60>.<l9>" },
	{ "gitlab-pipeline-trigger", "glptt-<h40>" },
	{ "gitlab-runner-registration", "GR1348941<v20>" },
	{ "gitlab-runner", "glrt-<v20>" },
	{ "gitlab-runner-routable", "glrt-t1_<v27,60>.<l9>" },
	{ "gitlab-scim", "glsoat-<v20>" },
	{ "gitlab-session", "_gitlab_session=<l32>" },
	{ "grafana-api-key", "eyJrIjoi<b70,100>" },
	{ "grafana-cloud", "glc_<b32,100>" },
	{ "grafana-service-account", "glsa_<n32>_<h8>" },
	{ "harness", "pat.<v22>.<n24>.<n20>" },
	{ "terraform-cloud", "<n14>.atlasv1.<v60,70>" },
	{ "heroku-v2", "HRKU-AA<v58>" },
	{ "hugging-face", "hf_<a34>" },
	{ "hugging-face-organization", "api_org_<a34>" },
	{ "infracost", "ico-<n32>" },
	{ "intra42", "s-s4t2ud-<h64>" },
	{ "jwt", "eyJ<n33>.eyJ<v60>.<v43>" },
	{ "jwt-base64", "ZXlKaGJHY2lPaU<b80>" },
	{ "linear", "lin_api_<n40>" },
	{ "maxmind", "<n6>_<n29>_mmk" },
	{ "microsoft-teams-webhook", "https://corp.webhook.office.com/webhookb2/<h8>-<h4>-<h4>-<h4>-<h12>@<h8>-<h4>-<h4>-"
	    "<h4>-<h12>/IncomingWebhook/<h32>/<h8>-<h4>-<h4>-<h4>-<h12>" },
	{ "notion", "ntn_<d11><n35>" },
	{ "npm", "npm_<n36>" },
	{ "octopus-deploy", "API-<u26>" },
	{ "openai-project", "sk-proj-<v74>T3BlbkFJ<v74>" },
	{ "openai-legacy", "sk-<n20>T3BlbkFJ<n20>" },
	{ "openshift", "sha256~<v43>" },
	{ "perplexity", "pplx-<n48>" },
	{ "planetscale-token", "pscale_tkn_<v43>" },
	{ "planetscale-oauth", "pscale_oauth_<v43>" },
	{ "planetscale-password", "pscale_pw_<v43>" },
	{ "postman", "PMAK-<h24>-<h34>" },
	{ "prefect", "pnu_<n36>" },
	{ "private-key", "-----BEGIN RSA PRIVATE KEY-----\n<b64>\n<b64>\n-----END RSA PRIVATE KEY-----" },
	{ "private-key-openssh", "-----BEGIN OPENSSH PRIVATE KEY-----\n<b70>\n<b70>\n-----END OPENSSH PRIVATE KEY-----" },
	{ "private-key-pgp", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n<b64>\n<b64>\n-----END PGP PRIVATE KEY BLOCK-----" },
	{ "private-key-encrypted", "-----BEGIN ENCRYPTED PRIVATE KEY-----\\n<b64>\\n-----END ENCRYPTED PRIVATE KEY-----" },
	{ "pulumi", "pul-<h40>" },
	{ "pypi", "pypi-AgEIcHlwaS5vcmc<v50,150>" },
	{ "readme", "rdme_<l70>" },
	{ "rubygems", "rubygems_<h48>" },
	{ "scalingo", "tk-us-<v48>" },
	{ "sendgrid", "SG.<v22>.<v43>" },
	{ "sendinblue", "xkeysib-<h64>-<n16>" },
	{ "sentry-organization", "sntrys_eyJpYXQiO<b60>LCJyZWdpb25fdXJs<b40>_<n43>" },
	{ "sentry-user", "sntryu_<h64>" },
	{ "settlemint-application", "sm_aat_<n16>" },
	{ "settlemint-personal", "sm_pat_<n16>" },
	{ "settlemint-service", "sm_sat_<n16>" },
	{ "shippo", "shippo_live_<h40>" },
	{ "shopify-access", "shpat_<h32>" },
	{ "shopify-custom", "shpca_<h32>" },
	{ "shopify-private-app", "shppa_<h32>" },
	{ "shopify-shared", "shpss_<h32>" },
	{ "sidekiq-url", "https://<h8>:<h8>@gems.contribsys.com/" },
	{ "slack-app", "xapp-1-<u10>-<d13>-<h64>" },
	{ "slack-bot", "xoxb-<d12>-<d12>-<n24>" },
	{ "slack-config-access", "xoxe.xoxp-1-<u163>" },
	{ "slack-config-refresh", "xoxe-1-<u146>" },
	{ "slack-legacy-bot", "xoxb-<d10>-<n24>" },
	{ "slack-legacy", "xoxs-<d11>-<d11>-<d11>-<h10>" },
	{ "slack-legacy-workspace", "xoxa-2-<n40>" },
	{ "slack-user", "xoxp-<d12>-<d12>-<d12>-<h32>" },
	{ "slack-webhook", "https://hooks.slack.com/services/T<u8>/B<u8>/<n24>" },
	{ "sourcegraph", "sgp_<h16>_<h40>" },
	{ "square-access", "EAAA<v60>" },
	{ "square-oauth", "sq0atp-<v22>" },
	{ "stripe-live", "sk_live_<n24,99>" },
	{ "stripe-restricted", "rk_test_<n24,99>" },
	{ "stripe-webhook", "whsec_<n32>" },
	{ "telegram-bot", "<d9>:AA<v33>" },
	{ "twilio", "SK<h32>" },
	{ "vault-batch", "hvb.<v138,200>" },
	{ "vault-service", "hvs.<v90,120>" },
	{ "vault-service-old", "s.<n24>" },
	/* more than scanners ask for */
	{ "discord-webhook", "https://discord.com/api/webhooks/<d18>/<v68>" },
	{ "dockerhub", "dckr_pat_<v27>" },
	{ "mailgun", "key-<h32>" },
	{ "mailchimp", "<h32>-us14" },
	{ "new-relic-user", "NRAK-<u27>" },
	{ "plaid", "access-sandbox-<h8>-<h4>-<h4>-<h4>-<h12>" },
	{ "replicate", "r8_<n37>" },
	{ "groq", "gsk_<n52>" },
	{ "supabase", "sbp_<h40>" },
	{ "tailscale", "tskey-auth-k<n11>CNTRL-<n32>" },
	{ "netlify", "nfp_<n36>" },
	{ "bitbucket-app", "ATBB<n32>" },
	{ "putty", "PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\n<b48>\n" },
	{ "basic-auth-url", "https://bob:<n16>@example.com/x" },
	{ "azure-connection-string", "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=<b86>==;EndpointSuffix=y" },
	{ "ado-connection-string", "Server=h;Uid=u;Pwd=<n12>;" },
};

static struct ruleset *rules;
static struct arena arena;
static FILE *details;			/* what is left or changed; printed after the figures */

/* The same numbers on every machine. */
static uint32_t
random_below(uint32_t n)
{
	static uint64_t state = 20;

	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(state >> 33) % n;
}

static const char *
alphabet(char class)
{
	static const char *const all = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

	switch (class) {
	case 'd': return "0123456789";
	case 'h': return "0123456789abcdef";
	case 'H': return "0123456789abcdefABCDEF";
	case 'a': return "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	case 'l': return "abcdefghijklmnopqrstuvwxyz0123456789";
	case 'u': return "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	case 'U': return "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
	case 'n': return "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	case 'w': return "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
	case 'v': return all;
	case 'b': return "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	case 'z': return "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L";
	case 'o': return "ABCDEFGH0123456789";
	default: abort();
	}
}

/* Makes a token. out: TOKEN_SIZE bytes. secret: the last of its longest random parts. */
static void
make_token(const char *text, char *out, char *secret)
{
	size_t n = 0, longest = 0;

	while (*text != '\0') {
		const char *letters;
		unsigned long low, high;
		size_t begin = n, letters_n;
		char *end;

		if (*text != '<') {
			out[n++] = *text++;
			continue;
		}
		letters = alphabet(text[1]);
		letters_n = strlen(letters);
		low = high = strtoul(text + 2, &end, 10);
		if (*end == ',')
			high = strtoul(end + 1, &end, 10);
		assert_int_equal(*end, '>');
		low += high > low ? random_below((uint32_t)(high - low + 1)) : 0;
		assert_true(n + low + 64 < TOKEN_SIZE);
		for (unsigned long i = 0; i < low; i++) {
			/* The first and last are letters or digits, so that the token is one word. */
			do {
				out[n] = letters[random_below((uint32_t)letters_n)];
			} while ((i == 0 || i + 1 == low) && strchr("_-+/", out[n]) != NULL);
			n++;
		}
		if (n - begin >= longest) {
			longest = n - begin;
			memcpy(secret, out + begin, longest);
			secret[longest] = '\0';
		}
		text = end + 1;
	}
	out[n] = '\0';
}

/* Redacts a copy of the arguments. Returns whether any of them contains the text. */
static bool
is_left(const char **argv, size_t argc, const char *text)
{
	const char *copy[ARGS_MAX];

	memcpy(copy, argv, argc * sizeof(*argv));
	arena_reset(&arena);
	redact_argv(rules, copy, argc, &arena);
	for (size_t i = 0; i < argc; i++) {
		if (strstr(copy[i], text) != NULL)
			return true;
	}
	return false;
}

/* Returns how many tokens are always redacted. */
static size_t
count_tokens(void)
{
	char token[TOKEN_SIZE], secret[TOKEN_SIZE], script[2 * TOKEN_SIZE];
	size_t always = 0;

	for (size_t i = 0; i < COUNT(tokens); i++) {
		unsigned left = 0;

		for (int k = 0; k < SAMPLES; k++) {
			const char *bare[] = { "tool", "run", token }, *inside[] = { "sh", "-c", script };

			make_token(tokens[i].text, token, secret);
			snprintf(script, sizeof(script), "deploy --to x '%s' now", token);
			left += is_left(bare, 3, secret) || is_left(inside, 3, secret);
		}
		if (left > 0)
			fprintf(details, "left %u of %d: %s\n", left, SAMPLES, tokens[i].name);
		always += left == 0;
	}
	return always;
}

/* Calls back for each line of a file. */
static void
each_line(const char *path, void (*read)(const json_t *line, void *arg), void *arg)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;

	assert_non_null(f);
	while (getline(&line, &size, f) > 0) {
		json_t *json = json_loads(line, 0, NULL);

		assert_non_null(json);
		read(json, arg);
		json_decref(json);
	}
	free(line);
	fclose(f);
}

static size_t
arguments_of(const json_t *list, const char **argv)
{
	size_t argc = json_array_size(list);

	assert_in_range(argc, 1, ARGS_MAX);
	for (size_t i = 0; i < argc; i++)
		argv[i] = json_string_value(json_array_get(list, i));
	return argc;
}

/* What is put in place of SECRET in the hard lines: the file's own, and less random ones. */
static const char *const instead[] = { SECRET, "9f86d081884c7d65", "hunter2", "correct-horse-battery" };

#define SIMPLE		2	/* of these, a word and a digit: nothing but what surrounds it tells */
#define SIMPLE_PERCENT	89	/* a little below what is found */

struct hard {
	size_t n, gone[COUNT(instead)];
	size_t must, must_left;		/* lines of the kind "must", and those that are left with any of these secrets */
};

/* Returns text with each SECRET replaced; the caller frees it. */
static char *
with_secret(const char *text, const char *secret)
{
	char *out = malloc(4 * strlen(text) + 64), *to = out;

	assert_non_null(out);
	for (const char *p = text; *p != '\0';) {
		if (strncmp(p, SECRET, strlen(SECRET)) == 0) {
			to = stpcpy(to, secret);
			p += strlen(SECRET);
		} else {
			*to++ = *p++;
		}
	}
	*to = '\0';
	return out;
}

static void
read_hard(const json_t *line, void *arg)
{
	const json_t *secrets = json_object_get(line, "secret");
	const char *argv[ARGS_MAX];
	size_t argc = arguments_of(json_object_get(line, "argv"), argv);
	bool is_must = strcmp(json_string_value(json_object_get(line, "kind")), "must") == 0, is_left_once = false;
	struct hard *h = arg;

	if (json_array_size(secrets) == 0)
		return;
	h->n++;
	h->must += is_must;
	for (size_t v = 0; v < COUNT(instead); v++) {
		char *copy[ARGS_MAX];
		bool left = false;

		for (size_t i = 0; i < argc; i++)
			copy[i] = with_secret(argv[i], instead[v]);
		for (size_t i = 0; i < json_array_size(secrets); i++) {
			char *secret = with_secret(json_string_value(json_array_get(secrets, i)), instead[v]);

			left |= is_left((const char **)copy, argc, secret);
			free(secret);
		}
		for (size_t i = 0; i < argc; i++)
			free(copy[i]);
		h->gone[v] += !left;
		is_left_once |= left;
		if (left && (v == 0 || is_must)) {
			fprintf(details, "left%s: %s with %s\n", is_must ? " although it must not be" : "",
			    json_string_value(json_object_get(line, "name")), instead[v]);
		}
	}
	h->must_left += is_must && is_left_once;
}

struct harmless {
	size_t lines, arguments, changed;
};

static void
read_harmless(const json_t *line, void *arg)
{
	const char *argv[ARGS_MAX], *before[ARGS_MAX];
	struct harmless *h = arg;
	size_t argc = arguments_of(line, argv);

	memcpy(before, argv, sizeof(argv));
	arena_reset(&arena);
	redact_argv(rules, argv, argc, &arena);
	h->lines++;
	h->arguments += argc;
	for (size_t i = 0; i < argc; i++) {
		if (argv[i] == before[i])
			continue;
		h->changed++;
		fprintf(details, "changed: %.200s -> %.200s\n", before[i], argv[i]);
	}
}

/* What was measured before the first test. */
static size_t tokens_gone;
static struct hard hard;
static struct harmless harmless;

static double
percent(size_t part, size_t whole)
{
	return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

/* Measures all, and prints the figures in a few lines before all else. */
static void
measure(void)
{
	char *text = NULL;
	size_t size = 0;

	details = open_memstream(&text, &size);
	assert_non_null(details);
	tokens_gone = count_tokens();
	each_line(FIXTURES "hard.jsonl", read_hard, &hard);
	each_line(FIXTURES "harmless.jsonl", read_harmless, &harmless);
	assert_int_equal(fclose(details), 0);
	print_message("shapes: %zu of %zu are always redacted, %.1f %%\n", tokens_gone, COUNT(tokens),
	    percent(tokens_gone, COUNT(tokens)));
	print_message("hard lines: %zu of %zu are redacted, %.1f %%", hard.gone[0], hard.n, percent(hard.gone[0], hard.n));
	for (size_t v = 1; v < COUNT(instead); v++)
		print_message("; %.1f %% with %s", percent(hard.gone[v], hard.n), instead[v]);
	print_message("\nharmless arguments: %zu of %zu are changed, %.2f %%\n", harmless.changed, harmless.arguments,
	    percent(harmless.changed, harmless.arguments));
	fputs(text, stdout);		/* print_message() cuts it */
	fflush(stdout);
	free(text);
}

static void
tokens_of_known_shapes_are_redacted(void **state)
{
	(void)state;
	assert_true(100 * tokens_gone >= 95 * COUNT(tokens));
}

static void
secrets_are_found_as_clients_take_them(void **state)
{
	(void)state;
	assert_true(hard.n > 800);
	assert_true(100 * hard.gone[0] >= 95 * hard.n);
	assert_true(100 * hard.gone[SIMPLE] >= SIMPLE_PERCENT * hard.n);
}

static void
secrets_are_found_whatever_they_are_where_they_must_be(void **state)
{
	(void)state;
	assert_true(hard.must > 170);
	assert_int_equal(hard.must_left, 0);
}

static void
harmless_arguments_stay(void **state)
{
	(void)state;
	assert_true(harmless.arguments > 1000);
	assert_true(1000 * harmless.changed <= harmless.arguments);
}

static double
cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* What makes each part of redaction begin a search, over and over. A search that is quadratic takes minutes. */
/* Each release prints what it was measured with. */
static void
the_changelog_has_the_figures(void **state)
{
	static char text[1 << 20];
	char figures[256];
	FILE *f = fopen(SOURCE_TREE "/CHANGELOG.md", "re");

	(void)state;
	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	assert_int_equal(fclose(f), 0);
	for (char *at = text; (at = strchr(at, '\n')) != NULL; at++)
		if (strncmp(at, "\n  ", 3) == 0)		/* a line that continues */
			memmove(at + 1, at + 3, strlen(at + 3) + 1), *at = ' ';
	snprintf(figures, sizeof(figures), "Redaction finds %zu of %zu shapes of tokens and %zu of %zu hard lines, %zu with a "
	    "simple word for a secret, and changes %zu of %zu harmless arguments.", tokens_gone, COUNT(tokens), hard.gone[0],
	    hard.n, hard.gone[2], harmless.changed, harmless.arguments);
	if (strstr(text, figures) == NULL)
		fail_msg("CHANGELOG.md is to say: %s", figures);
}

static void
no_text_takes_more_than_linear_time(void **state)
{
	static const char *const units[] = {
		"key=", "key:", "--key ", "password=", "token:", "pass ", "'key','", "identified ", "password for ",
		"kind: ", "x-key:", "eyJ", "ey.ey", "sk-", "EAAA-", "-us", "xQ~", "5Q~", "n1.abcd.acc_", "12345:AA", "|%",
		"123456789012345|", "BEGIN ", "-----BEGIN ", "hooks.slack.com/a", "oracle:thin:a", "://", "a:b@", "bearer ",
		"'", "\"", "\\", "\\\"", "it's \"x ", "$(", "`", "echo a|", "<<<a ", "sudo ", "docker exec ", "curl -u ",
		"-H a: ", "--a=b ", "/p:a ",
	};
	static char text[(128 << 10) + 32];

	(void)state;
	for (size_t i = 0; i < COUNT(units); i++) {
		const char *scripts[] = { "sh", "-c", text }, *words[] = { text, "x" }, *value[] = { "x", "--key", text };
		size_t n = 0, len = strlen(units[i]);
		double before;

		for (; n < 128 << 10; n += len)
			memcpy(text + n, units[i], len);
		text[n] = '\0';
		before = cpu_seconds();
		is_left(scripts, 3, "none");
		is_left(words, 2, "none");
		is_left(value, 3, "none");
		if (cpu_seconds() - before > 2)
			fail_msg("128 KiB of '%s' took %.1f s", units[i], cpu_seconds() - before);
	}
}

static int
setup(void **state)
{
	(void)state;
	rules = rules_shipped();
	if (rules == NULL || arena_init(&arena, 4 << 20) < 0)
		return -1;
	measure();
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	ruleset_unref(rules);
	arena_done(&arena);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_of_known_shapes_are_redacted),
		cmocka_unit_test(secrets_are_found_as_clients_take_them),
		cmocka_unit_test(secrets_are_found_whatever_they_are_where_they_must_be),
		cmocka_unit_test(harmless_arguments_stay),
		cmocka_unit_test(the_changelog_has_the_figures),
		cmocka_unit_test(no_text_takes_more_than_linear_time),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
