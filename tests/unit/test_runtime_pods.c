/* SPDX-License-Identifier: Apache-2.0 */
/* pods: names in a kubelet's list, however it is cut into parts, and lists that are none. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/pods.h"

#define ALIGN_UID "6a4ce4a0-ba47-11ea-b2a7-0cc47ac5979e"
#define STATIC_UID "0123456789abcdef0123456789abcdef"
#define ALIGN_ID "7c1f0be2a94d3856e1d07f2b5a6c93804e8d12f7b03a6c59d4e1f8027b3a6c51"
#define BEFORE_ID "8c1f0be2a94d3856e1d07f2b5a6c93804e8d12f7b03a6c59d4e1f8027b3a6c51"
#define INIT_ID "9c1f0be2a94d3856e1d07f2b5a6c93804e8d12f7b03a6c59d4e1f8027b3a6c51"
#define DEBUG_ID "ac1f0be2a94d3856e1d07f2b5a6c93804e8d12f7b03a6c59d4e1f8027b3a6c51"

/* Of the shape in which Kubernetes 1.34 sends it, with a bracket and an escaped quote in a text. */
static const char list[] = "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":["
    "{\"metadata\":{\"name\":\"align-0\",\"namespace\":\"genomics\",\"uid\":\"" ALIGN_UID "\","
    "\"annotations\":{\"note\":\"]}\\\"[{\",\"items\":\"[\"}},"
    "\"spec\":{\"initContainers\":[{\"name\":\"fetch\",\"image\":\"tools/fetch:2\"}],"
    "\"containers\":[{\"name\":\"bwa\",\"image\":\"tools/bwa:0.7\",\"env\":[{\"name\":\"PASSWORD\",\"value\":\"x\"}]}]},"
    "\"status\":{\"phase\":\"Running\",\"initContainerStatuses\":[{\"name\":\"fetch\",\"state\":{\"terminated\":"
    "{\"exitCode\":0,\"containerID\":\"containerd://" INIT_ID "\"}},\"lastState\":{},\"image\":\"sha256:1\"}],"
    "\"containerStatuses\":[{\"name\":\"bwa\",\"state\":{\"running\":{}},\"lastState\":{\"terminated\":"
    "{\"containerID\":\"containerd://" BEFORE_ID "\"}},\"image\":\"sha256:2\",\"imageID\":\"x\","
    "\"containerID\":\"containerd://" ALIGN_ID "\"}],"
    "\"ephemeralContainerStatuses\":[{\"name\":\"debugger\",\"image\":\"busybox:1\","
    "\"containerID\":\"cri-o://" DEBUG_ID "\"}]}},"
    "{\"metadata\":{\"name\":\"etcd-node\",\"namespace\":\"kube-system\",\"uid\":\"" STATIC_UID "\"},\"spec\":{},\"status\":{}}"
    "]}\n";

static struct pods *pods;

/* Reads a text in parts of n bytes. */
static int
reads_in(const char *text, size_t len, size_t n)
{
	struct pods_reader *r = pods_reader_new();
	int e = 0;

	pods_free(pods);
	pods = NULL;
	for (size_t at = 0; at < len && e == 0; at += n) {
		size_t part = len - at < n ? len - at : n;
		char *copy = malloc(part);

		memcpy(copy, text + at, part);	/* so that no read goes past its end */
		e = pods_reader_add(r, copy, part);
		free(copy);
	}
	if (e == 0)
		e = pods_reader_end(r, &pods);
	pods_reader_free(r);
	return e;
}

static int
reads(const char *text)
{
	return reads_in(text, strlen(text), strlen(text) + 1);
}

static int
teardown(void **state)
{
	(void)state;
	pods_free(pods);
	pods = NULL;
	return 0;
}

static void
finds(const char *uid, const char *id, int known, const char *pod, const char *name_space, const char *container,
    const char *image)
{
	const char *want[] = { pod, name_space, container, image };
	struct pod_names n;

	assert_int_equal(pods_find(pods, uid, id, &n), known);
	for (int i = 0; i < 4; i++) {
		const char *got[] = { n.pod, n.name_space, n.container, n.image };

		if (want[i] == NULL)
			assert_null(got[i]);
		else
			assert_string_equal(got[i] != NULL ? got[i] : "(null)", want[i]);
	}
}

static void
all_names_are_found_however_the_list_is_cut(void **state)
{
	(void)state;
	for (size_t n = 1; n < sizeof(list); n += n < 40 ? 1 : 97) {
		assert_int_equal(reads_in(list, sizeof(list) - 1, n), 0);
		assert_int_equal(pods_count(pods), 2);
		assert_int_equal(pods_left_out(pods), 0);
		finds(ALIGN_UID, ALIGN_ID, 2, "align-0", "genomics", "bwa", "tools/bwa:0.7");
		finds(ALIGN_UID, BEFORE_ID, 2, "align-0", "genomics", "bwa", "tools/bwa:0.7");
		finds(ALIGN_UID, INIT_ID, 2, "align-0", "genomics", "fetch", "tools/fetch:2");
		finds(ALIGN_UID, DEBUG_ID, 2, "align-0", "genomics", "debugger", "busybox:1");	/* its status alone names it */
		finds(ALIGN_UID, "", 2, "align-0", "genomics", NULL, NULL);
		finds(STATIC_UID, "", 2, "etcd-node", "kube-system", NULL, NULL);
		finds(STATIC_UID, ALIGN_ID, 1, "etcd-node", "kube-system", NULL, NULL);	/* that of another pod */
		finds("7a4ce4a0-ba47-11ea-b2a7-0cc47ac5979e", ALIGN_ID, 0, NULL, NULL, NULL, NULL);
		finds("", "", 0, NULL, NULL, NULL, NULL);
	}
	finds(ALIGN_UID, "not-an-id", 1, "align-0", "genomics", NULL, NULL);
}

static void
a_node_without_pods_is_one(void **state)
{
	(void)state;
	assert_int_equal(reads("{\"kind\":\"PodList\",\"items\":null}"), 0);
	assert_int_equal(pods_count(pods), 0);
	assert_int_equal(reads(" {\"items\" : [ ] } \n"), 0);
	assert_int_equal(pods_count(pods), 0);
	finds(ALIGN_UID, "", 0, NULL, NULL, NULL, NULL);
	assert_int_equal(pods_count(NULL), 0);
	assert_int_equal(pods_left_out(NULL), 0);
}

static void
what_is_no_list_is_refused(void **state)
{
	static const char *const texts[] = { "", " ", "[]", "null", "{}", "{\"items\":[", "{\"items\":[]", "Unauthorized",
		"{\"items\":[]}}", "{\"items\":[]}{", "{\"items\":[]} x", "{\"items\":[]}\"", "]", "\"items\"",
		"{\"kind\":\"items\"}", "{\"itemsX\":[]}", "{\"xitems\":[]}", "{\"x\":{\"items\":[]}}", "{\"items\":[[]]}",
		"{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":401}" };
	char deep[200];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (reads(texts[i]) != -EBADMSG)
			fail_msg("%s is taken for a list", texts[i]);
		assert_null(pods);
	}
	memset(deep, '[', sizeof(deep) - 1);
	memcpy(deep, "{\"x\":", 5);
	deep[sizeof(deep) - 1] = '\0';
	assert_int_equal(reads(deep), -EBADMSG);
	for (size_t len = 0; len < sizeof(list) - 2; len++)
		assert_int_equal(reads_in(list, len, 64), -EBADMSG);
}

static void
names_are_one_line_of_sensible_length(void **state)
{
	char text[2048];

	(void)state;
	snprintf(text, sizeof(text), "{\"items\":[{\"metadata\":{\"uid\":\"" ALIGN_UID "\",\"name\":\"a\\nb\","
	    "\"namespace\":\"%0300d\"},\"spec\":7,\"status\":{\"containerStatuses\":[7,{\"name\":\"x\",\"image\":\"a\\u0000b\","
	    "\"containerID\":\"docker://" ALIGN_ID "\"},{\"name\":\"y\\u007f\",\"containerID\":\"docker://" INIT_ID "\"},"
	    "{\"name\":\"z\",\"containerID\":\"docker://" DEBUG_ID "0\"},{\"name\":\"z\",\"containerID\":\"" BEFORE_ID "\"}]}}]}", 1);
	assert_int_equal(reads(text), 0);
	finds(ALIGN_UID, ALIGN_ID, 2, NULL, NULL, "x", NULL);
	finds(ALIGN_UID, INIT_ID, 1, NULL, NULL, NULL, NULL);
	finds(ALIGN_UID, DEBUG_ID, 1, NULL, NULL, NULL, NULL);
	finds(ALIGN_UID, BEFORE_ID, 1, NULL, NULL, NULL, NULL);
}

static void
pods_without_a_uid_of_their_own_are_left_out(void **state)
{
	(void)state;
	assert_int_equal(reads("{\"items\":[{\"metadata\":{]},{\"metadata\" 1},{\"a\":\"\xff\"},{\"metadata\":{\"uid\":\"" ALIGN_UID
	    "\"}}]}"), 0);
	assert_int_equal(pods_count(pods), 1);
	assert_int_equal(pods_left_out(pods), 3);
	assert_int_equal(reads("{\"items\":[{},{\"metadata\":{\"uid\":\"../../etc\"}},{\"metadata\":{\"uid\":7}},"
	    "{\"metadata\":{\"uid\":\"" ALIGN_UID "\",\"name\":\"first\"}},{\"metadata\":{\"uid\":\"" ALIGN_UID "\",\"name\":\"second\"}},"
	    "{\"metadata\":{\"uid\":\"" ALIGN_UID "0\"}},{\"metadata\":{\"uid\":\"0123456789ABCDEF0123456789ABCDEF\"}}]}"), 0);
	assert_int_equal(pods_count(pods), 1);
	assert_int_equal(pods_left_out(pods), 6);
	finds(ALIGN_UID, "", 2, "first", NULL, NULL, NULL);
}

static void
what_is_kept_is_bounded(void **state)
{
	size_t size = 1024 * 1024, len;
	char *text = malloc(size);
	char id[65];

	(void)state;
	/* A pod that is too long is left out, and the one after it is not. */
	len = (size_t)snprintf(text, size, "{\"items\":[{\"metadata\":{\"uid\":\"" STATIC_UID "\"},\"x\":\"");
	memset(text + len, 'x', PODS_TEXT_MAX);
	len += PODS_TEXT_MAX;
	len += (size_t)snprintf(text + len, size - len, "\"},{\"metadata\":{\"uid\":\"" ALIGN_UID "\"}}]}");
	assert_int_equal(reads_in(text, len, 16384), 0);
	assert_int_equal(pods_count(pods), 1);
	assert_int_equal(pods_left_out(pods), 1);
	/* Containers of one pod. */
	len = (size_t)snprintf(text, size, "{\"items\":[{\"metadata\":{\"uid\":\"" ALIGN_UID "\"},\"status\":{\"containerStatuses\":[");
	for (unsigned i = 0; i < PODS_CONTAINERS_MAX + 1; i++)
		len += (size_t)snprintf(text + len, size - len, "%s{\"name\":\"c\",\"containerID\":\"a://%064x\"}", i > 0 ? "," : "", i);
	len += (size_t)snprintf(text + len, size - len, "]}}]}");
	assert_int_equal(reads_in(text, len, 16384), 0);
	snprintf(id, sizeof(id), "%064x", PODS_CONTAINERS_MAX - 1);
	finds(ALIGN_UID, id, 2, NULL, NULL, "c", NULL);
	snprintf(id, sizeof(id), "%064x", PODS_CONTAINERS_MAX);
	finds(ALIGN_UID, id, 1, NULL, NULL, NULL, NULL);
	/* Pods. */
	len = (size_t)snprintf(text, size, "{\"items\":[");
	for (unsigned i = 0; i < PODS_MAX + 3; i++)
		len += (size_t)snprintf(text + len, size - len, "%s{\"metadata\":{\"uid\":\"%032x\"}}", i > 0 ? "," : "", i);
	len += (size_t)snprintf(text + len, size - len, "]}");
	assert_int_equal(reads_in(text, len, 16384), 0);
	assert_int_equal(pods_count(pods), PODS_MAX);
	assert_int_equal(pods_left_out(pods), 3);
	free(text);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, teardown)
	const struct CMUnitTest tests[] = {
		TEST(all_names_are_found_however_the_list_is_cut),
		TEST(a_node_without_pods_is_one),
		TEST(what_is_no_list_is_refused),
		TEST(names_are_one_line_of_sensible_length),
		TEST(pods_without_a_uid_of_their_own_are_left_out),
		TEST(what_is_kept_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
