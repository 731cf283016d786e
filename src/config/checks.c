/*
 * SPDX-License-Identifier: Apache-2.0
 * checks: whether a text is valid for its key.
 */
#include "config/checks.h"

#include <arpa/inet.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#include "base/pattern.h"
#include "config/errors.h"
#include "config/suggest.h"
#include "model/optional_signals.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

enum {
	ACCOUNT_MAX = 32,	/* useradd(8) */
	HOST_MAX = 255,
	FACT_MAX = 31,		/* what the shortest text of struct host_facts holds */
	PREFIX_MAX = 200,	/* of a topic's 249 */
	PRICE_DIGITS_MAX = 9,	/* before the point */
	URL_MAX = 1024,
	VARIABLE_MAX = 63,
};

#define REFUSE(...) (snprintf(why, why_size, __VA_ARGS__), false)

bool
check_path(const char *text, char *why, size_t why_size)
{
	char show[SHOWN_SIZE];

	if (text[0] != '/')
		return REFUSE("'%s' is not an absolute path: begin it with /", shown(text, show));
	if (strlen(text) >= PATH_MAX - NAME_MAX)
		return REFUSE("'%s' is too long for a path", shown(text, show));
	return true;
}

bool
check_socket_path(const char *text, char *why, size_t why_size)
{
	struct sockaddr_un un;
	char show[SHOWN_SIZE];

	if (!check_path(text, why, why_size))
		return false;
	if (strlen(text) >= sizeof(un.sun_path))
		return REFUSE("'%s' is too long for a socket: it may have %zu bytes", shown(text, show),
		    sizeof(un.sun_path) - 1);
	return true;
}

bool
check_socket_or_off(const char *text, char *why, size_t why_size)
{
	return strcmp(text, "off") == 0 || check_socket_path(text, why, why_size);
}

bool
check_account(const char *text, char *why, size_t why_size)
{
	char show[SHOWN_SIZE];

	if (strlen(text) > ACCOUNT_MAX || strpbrk(text, " \t:/,") != NULL || text[0] == '-')
		return REFUSE("'%s' is not a name that an account or group can have", shown(text, show));
	return true;
}

/* Port 0 lets the kernel choose one where is_listener. */
static bool
check_port(const char *text, bool is_listener)
{
	size_t len = strspn(text, DIGITS);

	return len > 0 && len <= 5 && text[len] == '\0' && atoi(text) <= UINT16_MAX &&
	    (is_listener || atoi(text) > 0);
}

/* Splits "HOST:PORT" or "[V6]:PORT". False where text is neither. */
static bool
split_address(const char *text, char host[HOST_MAX + 1], const char **ret_port)
{
	const char *end, *begin = text;
	size_t len;

	if (text[0] == '[') {
		begin++;
		end = strchr(begin, ']');
		if (end == NULL)
			return false;
		*ret_port = end + 1;
	} else {
		end = begin + strcspn(begin, ":");
		*ret_port = end;
	}
	len = (size_t)(end - begin);
	if (len == 0 || len > HOST_MAX)
		return false;
	memcpy(host, begin, len);
	host[len] = '\0';
	if (**ret_port == ':')
		(*ret_port)++;
	else if (**ret_port == '\0')
		*ret_port = NULL;
	else
		return false;
	if (text[0] == '[')
		return strspn(host, DIGITS LETTERS ":.%") == len;
	return strspn(host, DIGITS LETTERS ".-_") == len;
}

bool
check_listener(const char *text, char *why, size_t why_size)
{
	char show[SHOWN_SIZE], host[HOST_MAX + 1];
	struct in6_addr ip;
	const char *port;

	if (strcmp(text, "off") == 0)
		return true;
	if (strncmp(text, "unix:", 5) == 0)
		return check_socket_path(text + 5, why, why_size);
	if (!split_address(text, host, &port) || port == NULL || !check_port(port, true))
		return REFUSE("'%s' is no listener: write 127.0.0.1:9465, [::1]:9465, unix:/PATH or off",
		    shown(text, show));
	if (strcmp(host, "localhost") != 0 && inet_pton(AF_INET, host, &ip) != 1 &&
	    inet_pton(AF_INET6, host, &ip) != 1)
		return REFUSE("'%s' is a name: write the numeric address to listen on, or localhost",
		    shown(host, show));
	return true;
}

/* Whether a host, by its name or address, is this one. */
static bool
host_is_local(const char *host)
{
	struct in6_addr v6;
	struct in_addr v4;

	if (strcmp(host, "localhost") == 0)
		return true;
	if (inet_pton(AF_INET, host, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == 127;
	return inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

bool
listener_is_local(const char *text)
{
	char host[HOST_MAX + 1];
	const char *port;

	if (strcmp(text, "off") == 0 || strncmp(text, "unix:", 5) == 0)
		return true;
	return split_address(text, host, &port) && host_is_local(host);
}

bool
check_variable(const char *text, char *why, size_t why_size)
{
	char show[SHOWN_SIZE];
	size_t len = strlen(text);

	if (len > VARIABLE_MAX || strspn(text, LETTERS DIGITS "_") != len || strchr(DIGITS, text[0]))
		return REFUSE("'%s' is not the name of an environment variable: expected an exact name, "
		    "such as TRACEPARENT, of up to %d characters", shown(text, show), VARIABLE_MAX);
	return true;
}

bool
check_redaction(const char *text, char *why, size_t why_size)
{
	char show[SHOWN_SIZE], error[256];
	struct pattern *p;

	if (strcmp(text, "builtin") == 0)
		return true;
	/* A misspelt "builtin" is a valid pattern: it would match nothing and switch the shipped patterns off. */
	if (strspn(text, LETTERS) == strlen(text) && suggest_distance(text, "builtin", 4) <= 4)
		return REFUSE("'%s': did you mean 'builtin'?", shown(text, show));
	p = pattern_new(text, error, sizeof(error));
	if (p == NULL)
		return REFUSE("'%s' is no regular expression: %s", shown(text, show), error);
	pattern_free(p);
	return true;
}

bool
check_detail(const char *text, char *why, size_t why_size)
{
	char show[SHOWN_SIZE], names[256];

	if (optional_signal_of(text + (text[0] == '-')) >= 0)
		return true;
	return REFUSE("'%s' is no optional signal: those are %s; with a '-' before it, one is left out",
	    shown(text, show), optional_signal_names(names, sizeof(names)));
}

bool
check_broker(const char *text, char *why, size_t why_size)
{
	static const char *const protocols[] = { "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL" };
	const char *address = text, *scheme = strstr(text, "://"), *port;
	char show[SHOWN_SIZE], host[HOST_MAX + 1];
	bool is_known = scheme == NULL;

	if (scheme != NULL) {
		for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++)
			is_known |= strncasecmp(text, protocols[i], (size_t)(scheme - text)) == 0 &&
			    protocols[i][scheme - text] == '\0';
		address = scheme + 3;
	}
	if (strchr(text, '@') != NULL)
		return REFUSE("a broker has no credentials in its name: set sasl.username in "
		    "kafka.properties and sasl.password in kafka.secrets");
	if (strchr(text, ',') != NULL)
		return REFUSE("'%s' names several brokers: write one an item", shown(text, show));
	if (!is_known || !split_address(address, host, &port) ||
	    (port != NULL && !check_port(port, false)))
		return REFUSE("'%s' is no broker: write HOST:PORT, such as localhost:9092",
		    shown(text, show));
	return true;
}

bool
check_prefix(const char *text, char *why, size_t why_size)
{
	char show[SHOWN_SIZE];
	size_t len = strlen(text);

	if (len > PREFIX_MAX || strspn(text, LETTERS DIGITS "._-") != len)
		return REFUSE("'%s' cannot begin a topic's name: it may have up to %d of A-Z a-z 0-9 . _ -",
		    shown(text, show), PREFIX_MAX);
	return true;
}

bool
check_url(const char *text, char *why, size_t why_size)
{
	char show[SHOWN_SIZE], host[HOST_MAX + 1], authority[HOST_MAX + 16];
	const char *rest, *port;
	size_t len;

	if (strncasecmp(text, "http://", 7) == 0)
		rest = text + 7;
	else if (strncasecmp(text, "https://", 8) == 0)
		rest = text + 8;
	else
		return REFUSE("'%s' is not a URL of a registry: it begins with http:// or https://",
		    strchr(text, '@') != NULL ? "***" : shown(text, show));
	len = strcspn(rest, "/?#");
	/* The URL is not shown: it holds the password. Browsers treat a backslash as a slash; curl does not. */
	if (memchr(rest, '@', len) != NULL)
		return REFUSE("the URL has credentials in it: take them out and use registry.user with "
		    "registry.password, or registry.token");
	if (strlen(text) > URL_MAX)
		return REFUSE("'%s' is too long for a URL", shown(text, show));
	if (rest[strcspn(rest, "?#")] != '\0')
		return REFUSE("the URL has a ? or # part: a registry's base URL ends with its path");
	if (len >= sizeof(authority))
		return REFUSE("'%s' has no host", shown(text, show));
	memcpy(authority, rest, len);
	authority[len] = '\0';
	if (!split_address(authority, host, &port) || (port != NULL && !check_port(port, false)) ||
	    strpbrk(rest, " \\\"<>") != NULL)
		return REFUSE("'%s' is not a URL: write http://HOST:PORT", shown(text, show));
	return true;
}

bool
check_kubelet_url(const char *text, char *why, size_t why_size)
{
	bool is_https = strncasecmp(text, "https://", 8) == 0, is_http = strncasecmp(text, "http://", 7) == 0;
	const char *authority = text + (is_https ? 8 : 7), *port;
	char show[SHOWN_SIZE], host[HOST_MAX + 1];

	if (text[0] == '\0')
		return true;
	if (strchr(text, '@') != NULL)
		return REFUSE("the URL of a kubelet has no credentials in it: use containers.kubelet.token_file");
	if ((!is_https && !is_http) || strpbrk(authority, "/?# \\\"<>") != NULL || !split_address(authority, host, &port) ||
	    port == NULL || !check_port(port, false))
		return REFUSE("'%s' is not the URL of a kubelet: write https://127.0.0.1:10250", shown(text, show));
	if (is_http && !host_is_local(host))
		return REFUSE("'%s' has no TLS and is not this host: write https://, or http://127.0.0.1:10255",
		    shown(text, show));
	return true;
}

bool
check_metadata_url(const char *text, char *why, size_t why_size)
{
	char show[SHOWN_SIZE], host[HOST_MAX + 1];
	const char *port;

	if (text[0] == '\0')
		return true;
	if (strncmp(text, "http://", 7) != 0 || !split_address(text + 7, host, &port) ||
	    (port != NULL && !check_port(port, false)))
		return REFUSE("'%s' is not the URL of a metadata service: write http://169.254.169.254",
		    strchr(text, '@') != NULL ? "***" : shown(text, show));
	return true;
}

bool
check_fact(const char *text, char *why, size_t why_size)
{
	char show[SHOWN_SIZE];

	size_t len = strlen(text);

	if (len > FACT_MAX || strspn(text, LETTERS DIGITS "._-") != len)
		return REFUSE("'%s' is not a name that clouds use: it may have up to %d of A-Z a-z 0-9 . _ -", shown(text, show),
		    FACT_MAX);
	return true;
}

bool
check_price(const char *text, char *why, size_t why_size)
{
	size_t whole = strspn(text, DIGITS), len = whole;
	char show[SHOWN_SIZE];

	if (text[len] == '.')
		len += 1 + strspn(text + len + 1, DIGITS);
	if (whole == 0 || whole > PRICE_DIGITS_MAX || text[len] != '\0' || text[len - 1] == '.')
		return REFUSE("'%s' is not an amount of money an hour: write 0.768", shown(text, show));
	return true;
}

bool
check_server_name(const char *text, char *why, size_t why_size)
{
	char show[SHOWN_SIZE];

	if (strlen(text) >= HOST_MAX || strspn(text, LETTERS DIGITS ".-_") != strlen(text))
		return REFUSE("'%s' is not the name of a host", shown(text, show));
	return true;
}

bool
check_mirror(const char *text, char *why, size_t why_size)
{
	char show[SHOWN_SIZE], of_a_registry[256];

	if (text[0] == '/')
		return check_path(text, why, why_size);
	if (!check_url(text, of_a_registry, sizeof(of_a_registry)))
		return REFUSE("'%s' is no mirror: write http://HOST/FOLDER or https://HOST/FOLDER, without user and query, or "
		    "the absolute path of a folder", shown(text, show));
	return true;
}

bool
check_login(const char *text, char *why, size_t why_size)
{
	/* RFC 7617: the first colon ends the name. */
	if (strchr(text, ':') != NULL)
		return REFUSE("a user name for basic authentication has no colon; the password goes to "
		    "registry.password");
	return true;
}
