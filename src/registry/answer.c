/*
 * SPDX-License-Identifier: Apache-2.0
 * answer: interprets a schema registry's answers and explains them in a sentence; parses URLs; computes retry
 * delays.
 */
#include "registry/answer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <curl/curl.h>
#include <jansson.h>
#include <openssl/evp.h>

#include "base/text.h"

enum {
	PARSE_MAX = 64 * 1024,	/* a longer body is not parsed, which takes many times its size in memory */
	URL_MAX = 255,
	MESSAGE_MAX = 240,	/* limit of the server's message in a sentence */
};

/* Values of Confluent's error_code that are more specific than the status. */
enum {
	CODE_SUBJECT_NOT_FOUND = 40401,
	CODE_SCHEMA_NOT_FOUND = 40403,
	CODE_READ_ONLY = 42205,
};

/* Values that sentences contain. */
struct about {
	const char *base;		/* from struct registry_request, like the next two */
	const char *subject;
	bool lookup_only;
	long status;
	json_int_t code;		/* error_code; 0: none */
	char message[MESSAGE_MAX + 1];	/* " (\"…\")", or "" */
};

__attribute__((format(printf, 3, 4))) static void
explain(struct registry_answer *a, enum registry_verdict verdict, const char *format, ...)
{
	va_list ap;
	int len;

	a->verdict = verdict;
	va_start(ap, format);
	len = vsnprintf(a->sentence, sizeof(a->sentence), format, ap);
	va_end(ap);
	/* Remove an incomplete character at the cut. */
	if (len >= (int)sizeof(a->sentence))
		for (size_t i = sizeof(a->sentence) - 1; i > 0 && (a->sentence[i - 1] & 0x80) != 0;
		     i--)
			a->sentence[i - 1] = '\0';
}

/* Overwrites a secret: the message of a server or proxy may repeat the request. */
static void
hide(char *text, const char *secret)
{
	size_t len = secret != NULL ? strlen(secret) : 0;

	if (len == 0)
		return;
	for (char *at = text; (at = strstr(at, secret)) != NULL; at += len)
		memset(at, '*', len);
}

/* Returns what basic authentication sends, "dTpw" for "u" and "p". malloc'd, NULL: no memory. */
static char *
basic(const char *user, const char *password)
{
	char *plain = NULL, *out;
	int len = asprintf(&plain, "%s:%s", user, password);

	if (len < 0)
		return NULL;
	out = malloc(((size_t)len + 2) / 3 * 4 + 1);
	if (out != NULL)
		EVP_EncodeBlock((unsigned char *)out, (const unsigned char *)plain, len);
	free(plain);
	return out;
}

/* Overwrites all forms of the secrets that were sent. */
static void
hide_secrets(const struct registry_request *q, char *text)
{
	char *header = q->user != NULL && q->secrets[0] != NULL ? basic(q->user, q->secrets[0]) : NULL;

	hide(text, header);
	for (size_t i = 0; i < sizeof(q->secrets) / sizeof(q->secrets[0]); i++)
		hide(text, q->secrets[i]);
	free(header);
}

/* Formats text of the server or libcurl: one line, UTF-8, no secrets, bounded. "" if there is none. */
static void
quote(const struct registry_request *q, const char *words, char *out, size_t out_size)
{
	char text[MESSAGE_MAX - 8], *bare;
	size_t used, len;

	out[0] = '\0';
	bare = words != NULL && words[0] != '\0' ? strdup(words) : NULL;
	if (bare == NULL)
		return;
	hide_secrets(q, bare);	/* before truncation, which might leave a part of one */
	len = text_escape(bare, strlen(bare), text, sizeof(text), &used);
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			text[i] = ' ';
	}
	snprintf(out, out_size, " (\"%s%s\")", text, used < strlen(bare) ? "…" : "");
	free(bare);
}

/* Returns the name of the file with a subject's schema, from "sluice.<name>-value". */
static void
schema_file(const char *subject, char *out, size_t out_size)
{
	const char *name = strrchr(subject, '.'), *end;

	name = name != NULL ? name + 1 : subject;
	end = strrchr(name, '-');
	snprintf(
	    out, out_size, "%.*s.avsc", end != NULL ? (int)(end - name) : (int)strlen(name), name);
}

static void
read_not_found(const struct about *q, struct registry_answer *ret)
{
	char file[128], *url;

	if (q->code != CODE_SUBJECT_NOT_FOUND && q->code != CODE_SCHEMA_NOT_FOUND) {
		explain(ret, REGISTRY_DENIED,
		    "%s answers 404%s: there is no schema registry at this address; check its path "
		    "in registry.urls (Apicurio's ends in /apis/ccompat/v7)",
		    q->base, q->message);
		return;
	}
	if (!q->lookup_only) {
		explain(ret, REGISTRY_REJECTED,
		    "%s has no subject %s and does not create it: 404%s; permit the agent to "
		    "register schemas there, or register them and set registry.auto_register: false",
		    q->base, q->subject, q->message);
		return;
	}
	schema_file(q->subject, file, sizeof(file));
	url = registry_url_of_subject(q->base, q->subject, false);
	explain(ret, REGISTRY_REJECTED,
	    "%s has %s %s: 404%s, and registry.auto_register is false; register it with: jq -Rs "
	    "'{schema: .}' %s | curl -sS -H 'Content-Type: application/vnd.schemaregistry.v1+json' "
	    "--data-binary @- %s",
	    q->base,
	    q->code == CODE_SUBJECT_NOT_FOUND ? "no subject" : "not this agent's schema under",
	    q->subject, q->message, file, url != NULL ? url : q->base);
	free(url);
}

static void
read_refusal(const struct about *q, struct registry_answer *ret)
{
	switch (q->status) {
	case 401:
		explain(ret, REGISTRY_DENIED,
		    "%s answers 401%s: it does not accept our credentials for subject %s; check "
		    "registry.user and registry.password, or registry.token",
		    q->base, q->message, q->subject);
		return;
	case 403:
		explain(ret, REGISTRY_DENIED,
		    "%s answers 403%s: our user may not %s subject %s; give it that right%s",
		    q->base, q->message, q->lookup_only ? "read" : "register schemas under",
		    q->subject,
		    q->lookup_only ? "" :
		    ", or register the schemas yourself and set registry.auto_register: false");
		return;
	case 404:
		read_not_found(q, ret);
		return;
	case 407:
		explain(ret, REGISTRY_DENIED,
		    "the proxy before %s answers 407%s: it requires credentials; put them into the "
		    "proxy's URL (https_proxy, http_proxy in the agent's environment), or the "
		    "registry's host into no_proxy",
		    q->base, q->message);
		return;
	case 409:
		/* In Apicurio NONE on a subject means "no rule of its own", so that the global rule applies. */
		explain(ret, REGISTRY_REJECTED,
		    "%s answers 409%s: the schema of this agent (sluice " SLUICE_VERSION
		    ") is not compatible with what is registered under subject %s; set the "
		    "subject's compatibility to one that allows the change (curl -X PUT -H "
		    "'Content-Type: application/vnd.schemaregistry.v1+json' -d "
		    "'{\"compatibility\": \"FORWARD\"}' %s/config/%s; or NONE, which in Apicurio "
		    "must be set globally), or run the agent of the version that registered it",
		    q->base, q->message, q->subject, q->base, q->subject);
		return;
	case 422:
		if (q->code == CODE_READ_ONLY)
			explain(ret, REGISTRY_REJECTED,
			    "%s answers 422%s: subject %s is read-only there; set its mode to "
			    "READWRITE, or register the schemas yourself and set "
			    "registry.auto_register: false",
			    q->base, q->message, q->subject);
		else
			explain(ret, REGISTRY_REJECTED,
			    "%s answers 422%s: it rejects the schema for subject %s as invalid; it "
			    "may not support Avro, or may restrict names: run a version of the "
			    "agent that it accepts, or change its rules",
			    q->base, q->message, q->subject);
		return;
	}
	if (q->status >= 300 && q->status < 400)
		explain(ret, REGISTRY_DENIED,
		    "%s answers %ld and redirects elsewhere: put the address in its Location "
		    "header (curl -sI %s) into registry.urls",
		    q->base, q->status, q->base);
	else
		explain(ret, REGISTRY_DENIED,
		    "%s answers %ld%s to the request for subject %s: check that registry.urls "
		    "names a schema registry with Confluent's interface",
		    q->base, q->status, q->message, q->subject);
}

/* Reads the id from an answer with a status of success. */
static void
read_id(const struct about *q, const json_t *root, struct registry_answer *ret)
{
	const json_t *id = json_object_get(root, "id");

	if (json_is_integer(id) && json_integer_value(id) >= 0 &&
	    json_integer_value(id) <= INT32_MAX) {
		ret->verdict = REGISTRY_ID;
		ret->id = (int32_t)json_integer_value(id);
		return;
	}
	explain(ret, REGISTRY_UNAVAILABLE,
	    "%s answers %ld for subject %s, but with %s: check that registry.urls names a schema "
	    "registry with Confluent's interface (a proxy or a login page may answer in its "
	    "place)",
	    q->base, q->status, q->subject,
	    root == NULL     ? "a body that is not JSON"
		: id == NULL ? "JSON without an id"
			     : "an invalid id");
}

void
registry_answer_read(const struct registry_request *request, long status, const char *body, size_t len,
    struct registry_answer *ret)
{
	struct about q = { request->base, request->subject, request->lookup_only, .status = status };
	json_t *root = len <= PARSE_MAX ? json_loadb(body, len, 0, NULL) : NULL;
	const json_t *code = json_object_get(root, "error_code");

	ret->sentence[0] = '\0';
	quote(request, json_string_value(json_object_get(root, "message")), q.message,
	    sizeof(q.message));
	q.code = json_integer_value(code);	/* 0 if it is not an integer */

	if (status >= 200 && status < 300)
		read_id(&q, root, ret);
	else if (status == 408 || status == 429)
		explain(ret, REGISTRY_UNAVAILABLE, "%s answers %ld%s: too many requests; waiting", q.base,
		    status, q.message);
	else if (status >= 300 && status < 500)
		read_refusal(&q, ret);
	else
		explain(ret, REGISTRY_UNAVAILABLE,
		    "%s answers %ld%s: the registry, or a proxy before it, has failed; see its "
		    "log",
		    q.base, status, q.message);
	json_decref(root);
}

/* Returns the hint that follows libcurl's message. */
static const char *
hint_of(const char *base, int code, const char *detail)
{
	/* A TLS alert is more specific than the step in which it was received. */
	if (strstr(detail, "alert") != NULL)
		return "it refuses our TLS: check whether it requires a client certificate, "
		       "and which (registry.cert_file, registry.key_file)";
	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST:
		return "check the name in registry.urls, and this host's DNS";
	case CURLE_COULDNT_RESOLVE_PROXY:
		return "check http_proxy and https_proxy in the agent's environment";
	case CURLE_COULDNT_CONNECT:
		return "check that the registry runs there and that no firewall blocks it";
	case CURLE_OPERATION_TIMEDOUT:
		return "check that the registry runs there and that no firewall blocks it, or "
		       "increase registry.timeout";
	case CURLE_TOO_MANY_REDIRECTS:
	case CURLE_UNSUPPORTED_PROTOCOL:
		return "it redirects elsewhere: put its final address into registry.urls";
	case CURLE_SSL_CERTPROBLEM:
		return "check registry.cert_file and registry.key_file";
	case CURLE_WRITE_ERROR:
		return "its answer is too large for a schema registry's: check registry.urls";
	case CURLE_SSL_CONNECT_ERROR:
		return "check that this port speaks TLS";
	case CURLE_OUT_OF_MEMORY:
		return "check the agent's memory limit";
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
	case CURLE_GOT_NOTHING:
		/*
		 * With TLS 1.3 the client's handshake ends before the server checks its certificate: if the
		 * connection's end is read before the alert, nothing else shows the cause.
		 */
		if (strncasecmp(base, "https:", 6) == 0)
			return "it closed the connection after the TLS handshake: check whether it "
			       "requires a client certificate, and which (registry.cert_file, registry.key_file), and "
			       "that the registry runs there";
	}
	return "check that the registry runs there";
}

void
registry_answer_failed(const struct registry_request *q, int curl_code, const char *detail,
    struct registry_answer *ret)
{
	char words[MESSAGE_MAX + 1];

	quote(q, detail, words, sizeof(words));
	if (curl_code == CURLE_OPERATION_TIMEDOUT)
		explain(ret, REGISTRY_UNAVAILABLE, "no answer from %s within %" PRIu32 " ms%s: %s", q->base,
		    q->timeout_ms, words, hint_of(q->base, curl_code, detail));
	else if (curl_code == CURLE_PEER_FAILED_VERIFICATION)
		explain(ret, REGISTRY_UNAVAILABLE,
		    "no answer from %s%s: its certificate is not trusted; %s%s%s", q->base, words,
		    q->ca != NULL ? "compared with "
				  : "this system has no CA file in any of the usual places",
		    q->ca != NULL ? q->ca : "",
		    ": name the file (PEM) of the CA that signed it in registry.ca_file");
	else if (curl_code == CURLE_SSL_CACERT_BADFILE)
		explain(ret, REGISTRY_UNAVAILABLE,
		    "no answer from %s%s: the CA file %s cannot be used: it must hold certificates "
		    "in PEM",
		    q->base, words, q->ca != NULL ? q->ca : "");
	else
		explain(ret, REGISTRY_UNAVAILABLE, "no answer from %s%s: %s", q->base, words,
		    hint_of(q->base, curl_code, detail));
}

char *
registry_url_of_subject(const char *base, const char *subject, bool lookup_only)
{
	char *name = curl_easy_escape(NULL, subject, (int)strlen(subject)), *url = NULL;

	if (name == NULL ||
	    asprintf(&url, "%s/subjects/%s%s", base, name, lookup_only ? "" : "/versions") < 0)
		url = NULL;
	curl_free(name);
	return url;
}

char *
registry_request_body(const char *schema)
{
	json_t *root = json_pack("{s:s}", "schema", schema);
	char *text = root != NULL ? json_dumps(root, JSON_COMPACT) : NULL;

	json_decref(root);
	return text;
}

/* Returns the text after the last @: the text before may be a password, even if this is no URL. */
static const char *
without_credentials(const char *text)
{
	const char *at = strrchr(text, '@');

	return at != NULL ? at + 1 : text;
}

/* Returns a part of u, malloc'd; NULL: u has none. 0 or -ENOMEM. */
static int
part(CURLU *u, CURLUPart what, unsigned flags, char **ret)
{
	char *text = NULL;
	CURLUcode r = curl_url_get(u, what, &text, flags);

	*ret = text != NULL ? strdup(text) : NULL;
	curl_free(text);
	return r == CURLUE_OUT_OF_MEMORY || (text != NULL && *ret == NULL) ? -ENOMEM : 0;
}

void
registry_url_done(struct registry_url *u)
{
	free(u->base);
	free(u->user);
	free(u->password);
}

/* Returns what is wrong with a URL, or NULL. base: the URL as libcurl normalized it, or NULL. */
static const char *
objection(const char *text, const char *base)
{
	static const char no_scheme[] = "it must begin with http:// or https://";

	if (!text_is_plain(text, strlen(text)))
		return "it contains characters that no URL may contain";
	if (base == NULL)
		return strstr(text, "://") == NULL ? no_scheme
						   : "write http://host:port or https://host:port, "
						   "with a path if the registry has one";
	if (strncmp(base, "http://", 7) != 0 && strncmp(base, "https://", 8) != 0)
		return no_scheme;
	if (strpbrk(text, "?#") != NULL)
		return "a base URL contains neither ? nor #";
	if (strlen(text) > URL_MAX)
		return "it is longer than 255 bytes";
	return NULL;
}

int
registry_url_parse(const char *text, struct registry_url *ret, char *error, size_t error_size)
{
	struct registry_url u = { 0 };
	const char *wrong;
	CURLU *c = curl_url();
	int r = -ENOMEM;

	/* A scheme unknown to libcurl is accepted here and refused below, with a better sentence. */
	if (c == NULL || curl_url_set(c, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OUT_OF_MEMORY ||
	    part(c, CURLUPART_USER, CURLU_URLDECODE, &u.user) < 0 ||
	    part(c, CURLUPART_PASSWORD, CURLU_URLDECODE, &u.password) < 0 ||
	    curl_url_set(c, CURLUPART_USER, NULL, 0) != CURLUE_OK ||
	    curl_url_set(c, CURLUPART_PASSWORD, NULL, 0) != CURLUE_OK ||
	    part(c, CURLUPART_URL, 0, &u.base) < 0)
		goto out;
	wrong = objection(text, u.base);
	r = -EINVAL;
	if (wrong != NULL) {
		snprintf(
		    error, error_size, "registry URL \"%s\": %s", without_credentials(text), wrong);
		goto out;
	}
	/* The base begins with a scheme, so this ends before its first character. */
	for (size_t len = strlen(u.base); u.base[len - 1] == '/'; len--)
		u.base[len - 1] = '\0';
	u.is_https = strncmp(u.base, "https:", 6) == 0;
	*ret = u;
	u = (struct registry_url){ 0 };
	r = 0;
out:
	curl_url_cleanup(c);
	registry_url_done(&u);
	return r;
}

uint32_t
registry_wait_ms(uint32_t min_ms, uint32_t max_ms, unsigned round, uint32_t random)
{
	uint64_t ceiling = min_ms;

	for (unsigned i = 0; i < round && ceiling < max_ms; i++)
		ceiling *= 2;
	if (ceiling > max_ms)
		ceiling = max_ms;
	return (uint32_t)(((uint64_t)random * (ceiling + 1)) >> 32);
}
