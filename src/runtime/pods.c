/*
 * SPDX-License-Identifier: Apache-2.0
 * pods: a scanner that cuts a list into its pods, and a table of the names in them.
 *
 * {"kind": "PodList", …, "items": [{pod}, {pod}, …]}: what is at depth 3, within the list "items" of depth 2, is a
 * pod. Each is read by jansson.
 */
#include "runtime/pods.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/bytes.h"
#include "base/text.h"

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(e) ((e)->is_lost = true)
#include <uthash.h>

enum {
	ID_LEN = 64,
	UID_LEN = 36,		/* with dashes; that of a static pod is a checksum without */
	STATIC_UID_LEN = 32,
	LIST_DEPTH = 2,
	POD_DEPTH = 3,
};

static const char items[] = "items";

struct one_container {
	struct one_container *next;	/* of the pod */
	char id[ID_LEN + 1];
	char *name, *image;		/* owned; image NULL: unknown */
};

struct one_pod {
	UT_hash_handle hh;
	bool is_lost;			/* not in the table */
	char uid[UID_LEN + 1];
	char *name, *name_space;	/* owned; NULL: unknown */
	struct one_container *containers;	/* owned */
	size_t n_containers;
};

struct pods {
	struct one_pod *all;		/* owned */
	size_t left_out;
};

struct pods_reader {
	struct pods *pods;		/* owned */
	struct bytes text;		/* of the pod that is being read */
	unsigned depth;			/* of brackets that are open */
	size_t key_len;			/* of the last string at depth 1, in key as far as it fits */
	char key[sizeof(items)];
	bool in_string, is_escaped;
	bool in_list;			/* of pods */
	bool has_list;			/* there is one */
	bool in_pod;
	bool is_too_long;		/* the pod is not kept */
	bool is_done;
};

static void
pod_free(struct one_pod *p)
{
	struct one_container *c;

	while ((c = p->containers) != NULL) {
		p->containers = c->next;
		free(c->name);
		free(c->image);
		free(c);
	}
	free(p->name);
	free(p->name_space);
	free(p);
}

void
pods_free(struct pods *p)
{
	struct one_pod *one, *next;

	if (p == NULL)
		return;
	HASH_ITER(hh, p->all, one, next) {
		HASH_DEL(p->all, one);
		pod_free(one);
	}
	free(p);
}

/* Returns a value's text if it is one line of sensible length; else NULL. */
static const char *
line_of(const json_t *value)
{
	const char *text = json_string_value(value);
	size_t len = text != NULL ? json_string_length(value) : 0;

	if (len == 0 || len >= PODS_NAME_SIZE || strlen(text) != len || !text_is_plain(text, len))
		return NULL;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return NULL;
	return text;
}

static bool
is_uid(const char *text)
{
	size_t len = text != NULL ? strlen(text) : 0;

	return (len == UID_LEN && text[strspn(text, "0123456789abcdef-")] == '\0') ||
	    (len == STATIC_UID_LEN && text[strspn(text, "0123456789abcdef")] == '\0');
}

static char *
copy_or_null(const char *text)
{
	return text != NULL ? strdup(text) : NULL;
}

/* Returns the image of a container as the specification names it. */
static const char *
image_in(const json_t *spec, const char *list, const char *name)
{
	const json_t *one;
	const char *its_name;
	size_t i;

	json_array_foreach(json_object_get(spec, list), i, one)
	{
		its_name = json_string_value(json_object_get(one, "name"));
		if (its_name != NULL && strcmp(its_name, name) == 0)
			return line_of(json_object_get(one, "image"));
	}
	return NULL;
}

/* Adds a container by its id, "containerd://ID". Without memory it stays unknown. */
static void
add_container(struct one_pod *p, const json_t *id, const char *name, const char *image)
{
	const char *text = json_string_value(id), *slashes = text != NULL ? strstr(text, "://") : NULL;
	struct one_container *c;

	if (slashes == NULL || p->n_containers >= PODS_CONTAINERS_MAX)
		return;
	text = slashes + 3;
	if (strlen(text) != ID_LEN || text[strspn(text, "0123456789abcdef")] != '\0')
		return;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return;
	memcpy(c->id, text, ID_LEN);
	c->name = copy_or_null(name);
	c->image = copy_or_null(image);
	c->next = p->containers;
	p->containers = c;
	p->n_containers++;
}

/* Adds the containers of one of the lists, each with the one that it replaced. */
static void
add_containers(struct one_pod *p, const json_t *pod, const char *spec_list, const char *status_list)
{
	const json_t *spec = json_object_get(pod, "spec"), *one;
	const char *name, *image;
	size_t i;

	json_array_foreach(json_object_get(json_object_get(pod, "status"), status_list), i, one)
	{
		static const char *const states[] = { "state", "lastState" };

		name = line_of(json_object_get(one, "name"));
		if (name == NULL)
			continue;
		image = image_in(spec, spec_list, name);
		if (image == NULL)
			image = line_of(json_object_get(one, "image"));
		add_container(p, json_object_get(one, "containerID"), name, image);
		for (size_t s = 0; s < sizeof(states) / sizeof(states[0]); s++)
			add_container(p, json_object_get(json_object_get(json_object_get(one, states[s]), "terminated"),
			    "containerID"), name, image);
	}
}

static struct one_pod *
find_pod(const struct pods *p, const char *uid)
{
	struct one_pod *one = NULL;

	if (is_uid(uid))
		HASH_FIND_STR(p->all, uid, one);
	return one;
}

/* Adds a pod from its text. One that is not valid is left out, lest a user's pod hide all others. 0 or -ENOMEM. */
static int
add_pod(struct pods *to, const char *text, size_t len)
{
	json_t *pod = json_loadb(text, len, JSON_ALLOW_NUL, NULL);	/* NUL may be in an annotation */
	const json_t *metadata = json_object_get(pod, "metadata");
	const char *uid = json_string_value(json_object_get(metadata, "uid"));
	struct one_pod *p;

	if (!is_uid(uid) || find_pod(to, uid) != NULL || HASH_COUNT(to->all) >= PODS_MAX) {
		to->left_out++;
		json_decref(pod);
		return 0;
	}
	p = calloc(1, sizeof(*p));
	if (p == NULL) {
		json_decref(pod);
		return -ENOMEM;
	}
	memcpy(p->uid, uid, strlen(uid));
	p->name = copy_or_null(line_of(json_object_get(metadata, "name")));
	p->name_space = copy_or_null(line_of(json_object_get(metadata, "namespace")));
	add_containers(p, pod, "containers", "containerStatuses");
	add_containers(p, pod, "initContainers", "initContainerStatuses");
	add_containers(p, pod, "ephemeralContainers", "ephemeralContainerStatuses");
	json_decref(pod);
	HASH_ADD_STR(to->all, uid, p);
	if (!p->is_lost)
		return 0;
	pod_free(p);
	return -ENOMEM;
}

struct pods_reader *
pods_reader_new(void)
{
	struct pods_reader *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	r->pods = calloc(1, sizeof(*r->pods));
	if (r->pods == NULL) {
		free(r);
		return NULL;
	}
	return r;
}

void
pods_reader_free(struct pods_reader *r)
{
	if (r == NULL)
		return;
	pods_free(r->pods);
	bytes_done(&r->text);
	free(r);
}

/* Keeps a part of the pod's text. */
static int
keep(struct pods_reader *r, const char *from, const char *end)
{
	size_t len = (size_t)(end - from);

	if (r->is_too_long)
		return 0;
	if (len > PODS_TEXT_MAX - r->text.len) {
		r->is_too_long = true;
		r->text.len = 0;
		return 0;
	}
	return bytes_append(&r->text, from, len);
}

static int
end_pod(struct pods_reader *r)
{
	int e = 0;

	if (r->is_too_long)
		r->pods->left_out++;
	else
		e = add_pod(r->pods, (const char *)r->text.data, r->text.len);
	r->text.len = 0;
	r->in_pod = r->is_too_long = false;
	return e;
}

static void
in_string(struct pods_reader *r, char c)
{
	if (r->is_escaped) {
		r->is_escaped = false;
	} else if (c == '\\') {
		r->is_escaped = true;
	} else if (c == '"') {
		r->in_string = false;
		return;
	}
	if (r->depth != 1)
		return;
	if (r->key_len < sizeof(r->key))
		r->key[r->key_len] = c;
	r->key_len++;
}

static bool
key_is_items(const struct pods_reader *r)
{
	return r->key_len == strlen(items) && memcmp(r->key, items, strlen(items)) == 0;
}

/* Opens a bracket. *pod becomes the beginning of a pod's text. */
static int
open_bracket(struct pods_reader *r, const char *at, const char **pod)
{
	if (r->is_done || (r->depth == 0 && *at != '{') || r->depth == PODS_DEPTH_MAX)
		return -EBADMSG;
	if (++r->depth == LIST_DEPTH && *at == '[' && key_is_items(r))
		r->in_list = r->has_list = true;
	if (r->depth == POD_DEPTH && r->in_list) {
		if (*at != '{')
			return -EBADMSG;
		r->in_pod = true;
		*pod = at;
	}
	return 0;
}

static int
close_bracket(struct pods_reader *r, const char *at, const char *pod)
{
	int e = 0;

	if (r->depth == 0)
		return -EBADMSG;
	r->depth--;
	if (r->depth == LIST_DEPTH && r->in_pod) {
		e = keep(r, pod, at + 1);
		if (e == 0)
			e = end_pod(r);
	} else if (r->depth < LIST_DEPTH) {
		r->in_list = false;
	}
	r->is_done = r->depth == 0;
	return e;
}

int
pods_reader_add(struct pods_reader *r, const char *data, size_t len)
{
	const char *end = data + len, *pod = data;	/* pod: what of its text is not kept yet */
	int e = 0;

	for (const char *at = data; at < end && e == 0; at++) {
		if (r->in_string) {
			in_string(r, *at);
			continue;
		}
		switch (*at) {
		case '"':
			if (r->depth == 0)
				return -EBADMSG;
			r->in_string = true;
			if (r->depth == 1)
				r->key_len = 0;
			break;
		case '{':
		case '[':
			e = open_bracket(r, at, &pod);
			break;
		case '}':
		case ']':
			e = close_bracket(r, at, pod);
			break;
		case ' ':
		case '\t':
		case '\r':
		case '\n':
			break;
		default:
			if (r->depth == 0)
				return -EBADMSG;
			/* Go writes a list without anything as null. */
			if (r->depth == 1 && *at == 'n' && key_is_items(r))
				r->has_list = true;
		}
	}
	return e == 0 && r->in_pod ? keep(r, pod, end) : e;
}

int
pods_reader_end(struct pods_reader *r, struct pods **ret)
{
	if (!r->is_done || !r->has_list)
		return -EBADMSG;
	*ret = r->pods;
	r->pods = NULL;
	return 0;
}

int
pods_find(const struct pods *p, const char *uid, const char *container, struct pod_names *ret)
{
	const struct one_pod *one = p != NULL ? find_pod(p, uid) : NULL;

	*ret = (struct pod_names){ 0 };
	if (one == NULL)
		return 0;
	ret->pod = one->name;
	ret->name_space = one->name_space;
	if (container[0] == '\0')
		return 2;
	for (const struct one_container *c = one->containers; c != NULL; c = c->next) {
		if (strcmp(c->id, container) == 0) {
			ret->container = c->name;
			ret->image = c->image;
			return 2;
		}
	}
	return 1;
}

size_t
pods_count(const struct pods *p)
{
	return p != NULL ? HASH_COUNT(p->all) : 0;
}

size_t
pods_left_out(const struct pods *p)
{
	return p != NULL ? p->left_out : 0;
}
