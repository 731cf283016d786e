/* SPDX-License-Identifier: Apache-2.0 */
/* redact: secrets are removed, everything else is unchanged. No root, no kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "identify/redact.h"
#include "shipped_rules.h"

#define ARGS_MAX 8

struct expectation {
	const char *before[ARGS_MAX];
	const char *after[ARGS_MAX];
};

static const struct expectation secrets[] = {
	/* options */
	{ { "x", "--password=hunter2" }, { "x", "--password=***" } },
	{ { "x", "--password=a b=c;d" }, { "x", "--password=***" } },
	{ { "x", "--password", "hunter2", "y" }, { "x", "--password", "***", "y" } },
	{ { "x", "--password", "-Abc123" }, { "x", "--password", "***" } },
	{ { "x", "--db-passwd", "p" }, { "x", "--db-passwd", "***" } },
	{ { "x", "--sftp-pass", "p", "ansible_become_pass=p" }, { "x", "--sftp-pass", "***", "ansible_become_pass=***" } },
	{ { "x", "-Dkeystore.pass=p", "--rootpw", "p" }, { "x", "-Dkeystore.pass=***", "--rootpw", "***" } },
	{ { "x", "--token", "t" }, { "x", "--token", "***" } },
	{ { "x", "--api-key=k" }, { "x", "--api-key=***" } },
	{ { "x", "--API_KEY", "k" }, { "x", "--API_KEY", "***" } },
	{ { "x", "--apikey", "k" }, { "x", "--apikey", "***" } },
	{ { "x", "--secret", "s" }, { "x", "--secret", "***" } },
	{ { "x", "--secret-key=s" }, { "x", "--secret-key=***" } },
	{ { "x", "--client-secret", "s" }, { "x", "--client-secret", "***" } },
	{ { "x", "--secretAccessKey=s" }, { "x", "--secretAccessKey=***" } },
	{ { "java", "-storepass", "s", "-Ddb.password=s" },
	    { "java", "-storepass", "***", "-Ddb.password=***" } },
	{ { "openssl", "rsa", "-passin", "pass:s" }, { "openssl", "rsa", "-passin", "***" } },
	{ { "x", "--set", "db.password=s,replicas=2" }, { "x", "--set", "db.password=***" } },
	{ { "x", "--opts=user=me,password=s,uid=2" }, { "x", "--opts=user=me,password=***,uid=2" } },
	/* assignments */
	{ { "env", "AWS_SECRET_ACCESS_KEY=abc/def+g", "ls" },
	    { "env", "AWS_SECRET_ACCESS_KEY=***", "ls" } },
	{ { "env", "PRIVATE_KEY=x", "ls" }, { "env", "PRIVATE_KEY=***", "ls" } },
	{ { "env", "PGPASSWORD=a b", "psql" }, { "env", "PGPASSWORD=***", "psql" } },
	{ { "docker", "run", "-e", "GITHUB_TOKEN=x", "img" },
	    { "docker", "run", "-e", "GITHUB_TOKEN=***", "img" } },
	{ { "docker", "run", "-eDB_PASS=x", "img" }, { "docker", "run", "-eDB_PASS=***", "img" } },
	{ { "psql", "host=h password=x dbname=d" }, { "psql", "host=h password=*** dbname=d" } },
	{ { "x", "jdbc:sqlserver://h;user=u;password=x;a=b" },
	    { "x", "jdbc:sqlserver://h;user=u;password=***;a=b" } },
	/* commands with short options of their own */
	{ { "mysql", "-u", "root", "-phunter2", "db" }, { "mysql", "-u", "root", "-p***", "db" } },
	{ { "/usr/bin/mysqldump", "-px" }, { "/usr/bin/mysqldump", "-p***" } },
	{ { "sudo", "-u", "bob", "mysql", "-px" }, { "sudo", "-u", "bob", "mysql", "-p***" } },
	{ { "timeout", "10", "sshpass", "-p", "x", "ssh", "h" },
	    { "timeout", "10", "sshpass", "-p", "***", "ssh", "h" } },
	{ { "redis-cli", "-a", "x", "get" }, { "redis-cli", "-a", "***", "get" } },
	{ { "curl", "-u", "me:x", "h" }, { "curl", "-u", "me:***", "h" } },
	{ { "curl", "-ume:x", "h" }, { "curl", "-ume:***", "h" } },
	{ { "curl", "--user=me:x", "h" }, { "curl", "--user=me:***", "h" } },
	{ { "docker", "login", "-u", "me", "-p", "x" }, { "docker", "login", "-u", "me", "-p", "***" } },
	/* headers */
	{ { "curl", "-H", "Authorization: Bearer abc.def" }, { "curl", "-H", "Authorization: Bearer ***" } },
	{ { "curl", "-H", "authorization: basic Zm9v" }, { "curl", "-H", "authorization: basic ***" } },
	{ { "curl", "-H", "Authorization: xyz" }, { "curl", "-H", "Authorization: ***" } },
	{ { "curl", "-HX-Api-Key: k" }, { "curl", "-HX-Api-Key: ***" } },
	{ { "curl", "-H", "Cookie: a=b; c=d" }, { "curl", "-H", "Cookie: ***" } },
	{ { "x", "use Bearer abcdefghijkl now" }, { "x", "use Bearer *** now" } },
	/* URLs */
	{ { "git", "clone", "https://me:x@h/r.git" }, { "git", "clone", "https://me:***@h/r.git" } },
	{ { "x", "postgres://u:p/w#d@h:5432/db?a=b" }, { "x", "postgres://u:***@h:5432/db?a=b" } },
	{ { "x", "--proxy=http://u:a@b@h:80/" }, { "x", "--proxy=http://u:***@h:80/" } },
	{ { "x", "https://abcdefghijklmnopqrstuv@h/r" }, { "x", "https://***@h/r" } },
	{ { "x", "https://h/f?a=1&token=t&b=2" }, { "x", "https://h/f?a=1&token=***&b=2" } },
	{ { "x", "https://h/f?X-Amz-Date=1&X-Amz-Signature=00ff" },
	    { "x", "https://h/f?X-Amz-Date=1&X-Amz-Signature=***" } },
	{ { "x", "https://h/f?sv=1&sig=a%2Bb&se=2" }, { "x", "https://h/f?sv=1&sig=***&se=2" } },
	{ { "x", "https://h/?signature=s" }, { "x", "https://h/?signature=***" } },
	/* JSON and other text */
	{ { "curl", "-d", "{\"user\": \"me\", \"password\": \"a,b\", \"n\": 1}" },
	    { "curl", "-d", "{\"user\": \"me\", \"password\": \"***\", \"n\": 1}" } },
	{ { "python3", "-c", "connect(password = 'x', port=1)" },
	    { "python3", "-c", "connect(password = '***', port=1)" } },
	{ { "x", "ghp_abcdefghijklmnopqrstuvwxyz0123456789" }, { "x", "***" } },
	/* scripts */
	{ { "sh", "-c", "PGPASSWORD=x psql -h h" }, { "sh", "-c", "PGPASSWORD=*** psql -h h" } },
	{ { "bash", "-euc", "x --password 'a b' y" }, { "bash", "-euc", "x --password '***' y" } },
	{ { "sh", "-c", "x '--password=a b' y" }, { "sh", "-c", "x '--password=***' y" } },
	{ { "sh", "-c", "x --password=\"a b\" y" }, { "sh", "-c", "x --password=\"***\" y" } },
	{ { "sh", "-c", "x --token \\\n  t \\\n  y" }, { "sh", "-c", "x --token \\\n  *** \\\n  y" } },
	{ { "sh", "-c", "cd /x && mysql -px db; mysql -p" }, { "sh", "-c", "cd /x && mysql -p*** db; mysql -p" } },
	{ { "sh", "-c", "curl -H 'Authorization: Bearer t' -u a:b h" },
	    { "sh", "-c", "curl -H 'Authorization: Bearer ***' -u a:*** h" } },
	{ { "sh", "-c", "bash -c \"mysql -px\" && y" }, { "sh", "-c", "bash -c \"mysql -p***\" && y" } },
	{ { "ssh", "h", "mysql -px db" }, { "ssh", "h", "mysql -p*** db" } },
	{ { "sh", "-c", "curl -d \"{\\\"token\\\": \\\"t\\\"}\" h" },
	    { "sh", "-c", "curl -d \"{\\\"token\\\": \\\"***\\\"}\" h" } },
	{ { "sh", "-c", "it's; mysql --password x" }, { "sh", "-c", "it's; mysql --password ***" } },
	{ { "bash", "-c", "bash -c 'bash -c \"mysql -px\"'" }, { "bash", "-c", "bash -c 'bash -c \"mysql -p***\"'" } },
	/* titles: argv[0] is text, whatever it was */
	{ { "worker: login --password x" }, { "worker: login --password ***" } },
	{ { "postgres: me db password=x" }, { "postgres: me db password=***" } },
	/* what a script pipes into a program that reads a secret */
	{ { "sh", "-c", "echo x y | docker login -u me --password-stdin h" },
	    { "sh", "-c", "echo *** | docker login -u me --password-stdin h" } },
	{ { "sh", "-c", "cd /a; printf '%s' 'x' | sudo -S id" }, { "sh", "-c", "cd /a; printf '***' | sudo -S id" } },
	{ { "sh", "-c", "echo -n me:x | ssh h chpasswd" }, { "sh", "-c", "echo -n *** | ssh h chpasswd" } },
	{ { "sh", "-c", "passwd --stdin me <<< x; y" }, { "sh", "-c", "passwd --stdin me <<< ***; y" } },
	{ { "sh", "-c", "kinit me <<<x" }, { "sh", "-c", "kinit me <<<***" } },
	{ { "sh", "-c", "cat <<< x | tr a b | sudo -S id" }, { "sh", "-c", "cat <<< *** | tr a b | sudo -S id" } },
	{ { "sh", "-c", "{ sleep 1; echo x; } 2>/dev/null | sudo -S id" },
	    { "sh", "-c", "{ sleep 1; echo ***; } 2>/dev/null | sudo -S id" } },
	{ { "sh", "-c", "echo x |& (cd /a; passwd me); echo y | cat" },
	    { "sh", "-c", "echo *** |& (cd /a; passwd me); echo y | cat" } },
	{ { "sh", "-c", "command echo $(id) `id` x | sudo -S id; mysql -h $(hostname) -px" },
	    { "sh", "-c", "command echo *** | sudo -S id; mysql -h $(hostname) -p***" } },
	{ { "sh", "-c", "echo x |\n  sudo -kS id" }, { "sh", "-c", "echo *** |\n  sudo -kS id" } },
	/* clients: combined options, words at a place, parts of a value */
	{ { "curl", "-su", "me:x", "h" }, { "curl", "-su", "me:***", "h" } },
	{ { "curl", "-sSfLume:x", "h" }, { "curl", "-sSfLume:***", "h" } },
	{ { "http", "-a", "me:x", "h" }, { "http", "-a", "***", "h" } },
	{ { "skopeo", "copy", "--src-creds=me:x", "a", "b" }, { "skopeo", "copy", "--src-creds=me:***", "a", "b" } },
	{ { "wandb", "login", "--relogin", "x" }, { "wandb", "login", "--relogin", "***" } },
	{ { "aws", "configure", "set", "aws_secret_access_key", "x" },
	    { "aws", "configure", "set", "aws_secret_access_key", "***" } },
	{ { "vault", "kv", "put", "secret/a", "b=x" }, { "vault", "kv", "put", "secret/a", "b=***" } },
	{ { "htpasswd", "-bc", "f", "me", "x" }, { "htpasswd", "-bc", "f", "me", "***" } },
	{ { "htpasswd", "-bnB", "me", "x" }, { "htpasswd", "-bnB", "me", "***" } },
	{ { "mysqlsh", "me:x@h:3306" }, { "mysqlsh", "me:***@h:3306" } },
	{ { "qemu-kvm", "-object", "secret,id=s,data=x" }, { "qemu-kvm", "-object", "secret,id=s,data=***" } },
	{ { "sqlplus", "-s", "me/x@db", "@a.sql" }, { "sqlplus", "-s", "me/***@db", "@a.sql" } },
	{ { "net", "ads", "join", "-U", "me%x" }, { "net", "ads", "join", "-U", "me%***" } },
	{ { "plink", "-pw", "x", "h" }, { "plink", "-pw", "***", "h" } },
	{ { "xfreerdp", "/u:me", "/p:x" }, { "xfreerdp", "/u:me", "/p:***" } },
	{ { "zip", "-rP", "x", "a.zip" }, { "zip", "-rP", "***", "a.zip" } },
	{ { "openssl", "enc", "-k", "x" }, { "openssl", "enc", "-k", "***" } },
	/* SQL and connection strings */
	{ { "mysql", "-e", "CREATE USER 'a'@'%' IDENTIFIED BY 'x' REQUIRE SSL" },
	    { "mysql", "-e", "CREATE USER 'a'@'%' IDENTIFIED BY '***' REQUIRE SSL" } },
	{ { "mysql", "-e", "SET PASSWORD FOR 'a' = PASSWORD('x')" },
	    { "mysql", "-e", "SET PASSWORD FOR 'a' = PASSWORD('***')" } },
	{ { "psql", "-c", "alter user a password 'x'; select 1" }, { "psql", "-c", "alter user a password '***'; select 1" } },
	{ { "x", "Server=h;Uid=u;Pwd=x;" }, { "x", "Server=h;Uid=u;Pwd=***;" } },
	{ { "x", "AccountName=n;AccountKey=x==;a=b" }, { "x", "AccountName=n;AccountKey=***;a=b" } },
	{ { "java", "jdbc:oracle:thin:me/x@h:1521:d" }, { "java", "jdbc:oracle:thin:me/***@h:1521:d" } },
	{ { "php", "-r", "$a = ['api_key' => 'x', 'b' => 'c'];" }, { "php", "-r", "$a = ['api_key' => '***', 'b' => 'c'];" } },
	{ { "sh", "-c", "kubectl apply -f - <<EOF\nkind: Secret\nmetadata:\n  name: a\ndata:\n  b: eA==\nEOF" },
	    { "sh", "-c", "kubectl apply -f - <<EOF\nkind: Secret\nmetadata:\n  name: a\ndata:\n  b: ***\nEOF" } },
	/* a name that says little, and a value that says more */
	{ { "x", "--key", "Zq7kVw2mXp9LtR4n" }, { "x", "--key", "***" } },
	{ { "x", "--auth=me:Zq7kVw2mXp9LtR4n" }, { "x", "--auth=***" } },
	{ { "x", "the password is Zq7kVw2mXp9LtR4n" }, { "x", "the password is ***" } },
	{ { "x", "-H", "X-My-Token:x" }, { "x", "-H", "X-My-Token:***" } },
	{ { "sh", "-c", "curl -H'Token:x' h" }, { "sh", "-c", "curl -H'Token:***' h" } },
	{ { "curl", "-HToken:x", "h" }, { "curl", "-HToken:***", "h" } },
	/* blocks of keys: only what is between their lines */
	{ { "x", "a -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- b" },
	    { "x", "a -----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY----- b" } },
	{ { "x", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl" }, { "x", "-----BEGIN OPENSSH PRIVATE KEY-----***" } },
	/* wrappers */
	{ { "srun", "-n1", "mysql", "-px" }, { "srun", "-n1", "mysql", "-p***" } },
	{ { "sbatch", "--wrap=mysql -px db" }, { "sbatch", "--wrap=mysql -p*** db" } },
	{ { "sh", "-c", "sbatch --wrap=\"mysql -px db\"" }, { "sh", "-c", "sbatch --wrap=\"mysql -p*** db\"" } },
	{ { "docker", "exec", "c", "mysql", "-px" }, { "docker", "exec", "c", "mysql", "-p***" } },
	{ { "ssh", "h", "sudo", "env", "A=b", "curl", "-u", "me:x" }, { "ssh", "h", "sudo", "env", "A=b", "curl", "-u", "me:***" } },
	{ { "find", ".", "-exec", "curl", "-u", "me:x", "h", ";" }, { "find", ".", "-exec", "curl", "-u", "me:***", "h", ";" } },
	{ { "x", "-v", "--user bob --password x" }, { "x", "-v", "--user bob --password ***" } },
	/* two in one, and one that is masked already */
	{ { "x", "https://a:b@h/?token=c" }, { "x", "https://a:***@h/?token=***" } },
	{ { "x", "--password=***" }, { "x", "--password=***" } },
};

/* What looks a little like a secret and is none. */
static const char *const harmless[][ARGS_MAX] = {
	{ "bwa", "mem", "-t", "2", "-R", "@RG\\tID:S1\\tSM:S1", "ref.fa" },
	{ "x", "--tokens-per-second", "5" },
	{ "x", "--max-tokens=5", "--tokenizer", "bpe" },
	{ "x", "--password-file", "/run/pw" },
	{ "x", "--secret-name", "db", "--secrets-file=/x" },
	{ "x", "--secretome", "s.fa" },
	{ "x", "--no-password", "db" },
	{ "x", "--pad-token", "<pad>" },
	{ "sort", "-k1,1", "--key=2,2n" },
	{ "x", "--min-pass", "3", "FILTER=PASS" },
	{ "bcftools", "view", "-i", "FILTER=\"PASS\" && QUAL>20", "-p", "x" },
	{ "samtools", "view", "-u", "a:b", "-p", "x" },
	{ "mysql", "-p", "db", "-u", "a:b" },
	{ "docker", "run", "-p", "80:80", "img" },
	{ "curl", "-u", "me", "https://h:8443/a@b?key2=1&page=2" },
	{ "git", "clone", "ssh://git@h/r.git", "git@h:r.git" },
	{ "x", "docker://h/img@sha256:00" },
	{ "env", "PWD=/x", "OLDPWD=/y", "SSH_AUTH_SOCK=/z" },
	{ "x", "--password", "--verbose" },
	{ "sh", "-c", "PASSWORD= x y" },
	{ "python3", "-c", "if token == x: pass" },
	{ "awk", "{ pass = $1 }" },
	{ "awk", "BEGIN{pass=0} $1{pass=1;n[pass]++} END{print pass}", "f(pass=10)" },
	{ "STAR", "--twopassMode", "Basic", "--two-pass", "yes", "--twopass1readsN", "all" },
	{ "x", "--first-pass", "a", "--max-pass", "many", "--multi-pass=on" },
	{ "x", "--bandpass", "low", "--highpass", "high", "--compass", "n", "lowpass=x" },
	{ "sh", "-c", "(echo a; echo b) | sort; { echo c; } | cat; sudo -S id" },
	{ "sh", "-c", "for i in a; do echo x; done; echo y | if true; then cat; fi; passwd me" },
	{ "mysqlsh", "me@h:3306" }, { "qemu-kvm", "-object", "memory-backend-ram,id=a,size=4G" },
	{ "kubectl", "create", "configmap", "c", "--from-file=a=/etc/x" },
	{ "htpasswd", "-B", "f", "me" }, { "ip", "netns", "add", "mysql", "-px" },
	{ "x", "chr1:100-200", "s3://bucket/key", "a=b", "" },
	{ "ssh", "-i", "~/.ssh/id_rsa", "--private-key", "/k.pem" },
	{ "curl", "-sou", "me:x", "-b", "cookies.txt" },
	{ "docker", "mysql", "-px" },
	{ "sh", "-c", "echo x | tee f", "sudo", "-S" },
	{ "sh", "-c", "echo x; kinit me" },
	{ "sh", "-c", "echo x || sudo -S id" },
	{ "x", "--pwd", "/data", "--max-token", "512" },
	{ "x", "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----" },
	{ "x", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "--key", "chr1", "--auth", "none" },
	{ "x", "secret:latest", "--key=2,2n", "AKIAQ3EGVXWJ5K2L7M4PX" },
	{ "sqlplus", "/nolog" }, { "openssl", "req", "-keyout", "k.pem", "-key", "a.pem" },
};

static size_t
count_args(const char *const *argv)
{
	size_t n = 0;

	while (n < ARGS_MAX && argv[n] != NULL)
		n++;
	return n;
}

static void
setup_arena(struct arena *a, size_t size)
{
	assert_int_equal(arena_init(a, size), 0);
}

static void
secrets_become_stars(void **state)
{
	struct arena a;
	int wrong = 0;

	(void)state;
	setup_arena(&a, 4096);
	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
		const char *argv[ARGS_MAX];
		size_t argc = count_args(secrets[i].before);

		arena_reset(&a);
		memcpy(argv, secrets[i].before, sizeof(argv));
		redact_argv(shipped, argv, argc, &a);
		for (size_t k = 0; k < argc; k++) {
			const char *want = secrets[i].after[k];

			if (want == NULL || strcmp(argv[k], want) != 0) {
				print_error("row %zu: %s: got \"%s\", not \"%s\"\n", i, argv[0], argv[k], want);
				wrong++;
			}
		}
	}
	assert_int_equal(wrong, 0);
	arena_done(&a);
}

static void
all_else_stays(void **state)
{
	struct arena a;
	int wrong = 0;

	(void)state;
	setup_arena(&a, 4096);
	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
		const char *argv[ARGS_MAX];
		size_t argc = count_args(harmless[i]);

		memcpy(argv, harmless[i], sizeof(argv));
		assert_true(redact_argv(shipped, argv, argc, &a) <= argc);
		for (size_t k = 0; k < argc; k++) {
			if (argv[k] != harmless[i][k]) {	/* not even a copy */
				print_error("row %zu: %s became %s\n", i, harmless[i][k], argv[k]);
				wrong++;
			}
		}
	}
	assert_int_equal(wrong, 0);
	assert_int_equal(a.used, 0);
	arena_done(&a);
}

static void
a_full_arena_leaks_nothing(void **state)
{
	const char *argv[] = { "x", "--password=hunter2", "--quiet" };
	struct arena a;

	(void)state;
	setup_arena(&a, 8);
	assert_int_equal(redact_argv(shipped, argv, 3, &a), 1);
	assert_string_equal(argv[1], REDACTED);
	assert_string_equal(argv[2], "--quiet");
	arena_done(&a);
}

static void
more_secrets_than_there_is_room_to_note_all_go(void **state)
{
	static char text[20000];
	const char *argv[] = { "sh", "-c", text };
	struct arena a;
	size_t len = 0;

	(void)state;
	for (int i = 0; i < 500; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "x --password hunter%d; ", i);
	setup_arena(&a, 65536);
	assert_int_equal(redact_argv(shipped, argv, 3, &a), 1);
	assert_null(strstr(argv[2], "hunter"));
	assert_non_null(strstr(argv[2], "x --password ***; x --password ***"));
	arena_done(&a);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(secrets_become_stars),
		cmocka_unit_test(all_else_stays),
		cmocka_unit_test(a_full_arena_leaks_nothing),
		cmocka_unit_test(more_secrets_than_there_is_room_to_note_all_go),
	};

	return cmocka_run_group_tests(tests, shipped_load, shipped_unload);
}
