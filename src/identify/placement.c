/*
 * SPDX-License-Identifier: Apache-2.0
 * placement: searches patterns in paths and arguments, and decides which of several matches counts.
 */
#include "identify/placement.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "identify/match.h"
#include "model/placement_rules.h"
#include "model/user.h"

enum {
	NESTED_MAX = 64,		/* nested containers that one rule may find on one path */
	COMMAND_MAX = 8192,		/* bytes of the joined arguments that are searched */
	VALUE_MAX = 1024,		/* bytes of a value before unescaping: an escape takes four bytes for one */
};

static const char by_cgroup[] = "cgroup";

/* No more than this is believed of what any user can make up. */
static const double claim_confidence = 0.5;

#define FIELD(member) { offsetof(struct placement, member), sizeof(((struct placement *)0)->member) }

static const struct {
	size_t offset;
	size_t size;
} fields[PLACEMENT_FIELDS] = {
	[PLACEMENT_JOB] = FIELD(job),
	[PLACEMENT_STEP] = FIELD(step),
	[PLACEMENT_TASK] = FIELD(task),
	[PLACEMENT_USER] = FIELD(user),
	[PLACEMENT_CLUSTER] = FIELD(cluster),
	[PLACEMENT_NODE] = FIELD(node),
	[PLACEMENT_ID] = FIELD(container),
	[PLACEMENT_POD] = FIELD(pod),
	[PLACEMENT_NAME] = FIELD(name),
	[PLACEMENT_IMAGE] = FIELD(image),
};

static char *
field_of(struct placement *p, int field)
{
	return (char *)p + fields[field].offset;
}

/* A finder's match in a text. */
struct captures {
	const struct placement_finder *finder;
	struct pattern_part parts[PLACEMENT_GROUPS_MAX];
};

static bool
find(const struct placement_finder *f, const char *text, size_t len, struct captures *ret)
{
	memset(ret->parts, 0, sizeof(ret->parts));
	ret->finder = f;
	return pattern_find(f->pattern, text, len, ret->parts, PLACEMENT_GROUPS_MAX);
}

/* Returns the offset of the first group, or 0 for a pattern without groups. */
static size_t
first_at(const struct captures *found, const char *text)
{
	size_t at = SIZE_MAX;

	for (int i = 0; i < PLACEMENT_GROUPS_MAX; i++)
		if (found->parts[i].at != NULL && (size_t)(found->parts[i].at - text) < at)
			at = (size_t)(found->parts[i].at - text);
	return at != SIZE_MAX ? at : 0;
}

/* Returns the offset after the last group. */
static size_t
last_end(const struct captures *found, const char *text)
{
	size_t end = 0;

	for (int i = 0; i < PLACEMENT_GROUPS_MAX; i++)
		if (found->parts[i].at != NULL &&
		    (size_t)(found->parts[i].at - text) + found->parts[i].len > end)
			end = (size_t)(found->parts[i].at - text) + found->parts[i].len;
	return end;
}

/* Returns the value of a name in a template: the group of that name. */
static bool
group_value(const char *name, const char **ret, size_t *ret_len, void *arg)
{
	struct captures *found = arg;
	const char *group;

	for (size_t i = 0; i < PLACEMENT_GROUPS_MAX && found->finder->pattern != NULL &&
	    (group = pattern_group(found->finder->pattern, i)) != NULL; i++) {
		if (strcmp(group, name) == 0 && found->parts[i].at != NULL) {
			*ret = found->parts[i].at;
			*ret_len = found->parts[i].len;
			return true;
		}
	}
	return false;
}

/*
 * systemd's names contain \x2d for a hyphen, and in a path that was made text (base/text.h) a backslash
 * before an x is \x5c: unescapes twice, then escapes the result to text again.
 */
static size_t
unescape(char *value, size_t len, size_t size)
{
	char bytes[VALUE_MAX];

	len = text_unescape(value, len, bytes);
	len = text_unescape(bytes, len, bytes);
	return text_escape(bytes, len, value, size, NULL);
}

/* Copies one line of text that fits, else "": a part of an id would be another id. */
static void
set(char *out, size_t size, const char *value, size_t len)
{
	out[0] = '\0';
	if (len >= size)
		return;
	for (size_t i = 0, width; i < len; i += width) {
		width = text_char(value + i, len - i);
		if (width == 0 || (unsigned char)value[i] < 0x20 || value[i] == 0x7f)
			return;
	}
	memcpy(out, value, len);
	out[len] = '\0';
}

/* Writes one field from the match, or "". */
static void
fill_field(struct captures *found, int field, char *out)
{
	const struct placement_finder *f = found->finder;
	const struct pattern_part *part = f->group[field] >= 0 ? &found->parts[f->group[field]] : NULL;
	char text[VALUE_MAX];
	size_t len = 0;

	out[0] = '\0';
	if (f->value[field] != NULL) {
		if (!template_fill(f->value[field], text, sizeof(text), group_value, found))
			return;
		len = strlen(text);
	} else if (part != NULL && part->at != NULL) {
		len = part->len;
		if (len >= sizeof(text))
			return;
		memcpy(text, part->at, len);
	}
	if (f->change[field] & PLACEMENT_UNESCAPE)
		len = unescape(text, len, sizeof(text));
	for (size_t i = 0; f->change[field] & PLACEMENT_DASHES && i < len; i++)
		if (text[i] == '_')
			text[i] = '-';
	set(out, fields[field].size, text, len);
}

static void
fill(struct captures *found, int first, int end, struct placement *ret)
{
	for (int i = first; i < end; i++)
		fill_field(found, i, field_of(ret, i));
}

static void
fill_job(const struct placement_rule *rule, struct captures *found, const char *source, struct placement *ret)
{
	fill(found, 0, PLACEMENT_FIELDS_JOB, ret);
	ret->scheduler = rule->system;
	ret->is_batch = rule->is_batch;
	ret->scheduler_source = source;
	ret->scheduler_confidence = found->finder->confidence;
}

static double
at_most(double confidence, double limit)
{
	return confidence < limit ? confidence : limit;
}

/* Makes a job the claim of a user, or, with UINT32_MAX, of each program's own. */
static void
set_claim(struct placement *p, uint32_t user)
{
	p->scheduler_witness = WITNESS_ARGV;
	p->claimed_by = user;
	p->scheduler_confidence = at_most(p->scheduler_confidence, claim_confidence);
}

static void
fill_container(const struct placement_rule *rule, struct captures *found, const char *source, struct placement *ret)
{
	fill(found, PLACEMENT_FIELDS_JOB, PLACEMENT_FIELDS, ret);
	ret->has_container = rule->system != NULL || ret->container[0] != '\0';
	ret->runtime = rule->system;
	ret->container_source = source;
	ret->container_confidence = found->finder->confidence;
}

/* Copies the members that describe the container. */
static void
copy_container(struct placement *to, const struct placement *from)
{
	memcpy(to->container, from->container, sizeof(to->container));
	memcpy(to->name, from->name, sizeof(to->name));
	memcpy(to->image, from->image, sizeof(to->image));
	to->has_container = from->has_container;
	to->runtime = from->runtime;
	to->container_source = from->container_source;
	to->container_confidence = from->container_confidence;
}

/* The best matches so far on both paths. */
struct search {
	struct placement *placement;
	struct captures found;		/* scratch */
	const char *job_path;		/* path on which the job was found; NULL: none */
	const char *container_path;
	const char *pod_path;
	size_t job_at, container_at, pod_at;
	size_t handed_over;		/* offset in the current path from which on a user names the groups */
	size_t inside;			/* offset in it behind the outermost container: its root may name the rest */
	bool is_outside;
};

/*
 * A batch scheduler's job takes precedence; of several on one path, the outermost. Of other jobs, the
 * first rule's counts. A match on the first path is kept, unless it is inside a container and the other is not.
 */
static bool
is_better_job(const struct search *s, const struct placement_rule *rule, const char *path, size_t at, bool is_inside)
{
	if (s->job_path == NULL || rule->is_batch != s->placement->is_batch)
		return s->job_path == NULL || rule->is_batch;
	if (path != s->job_path && s->placement->scheduler_witness == WITNESS_ARGV)
		return !is_inside;
	return rule->is_batch && path == s->job_path && at < s->job_at;
}

static void
search_job(struct search *s, const struct placement_rule *rule, const char *path)
{
	size_t len = strlen(path), at;
	bool is_inside;

	for (const struct placement_finder *f = rule->cgroup; f != NULL; f = f->next) {
		if (!find(f, path, len, &s->found))
			continue;
		at = first_at(&s->found, path);
		if (rule->is_batch && at >= s->handed_over)
			continue;
		is_inside = rule->is_batch && at >= s->inside;
		if (!is_better_job(s, rule, path, at, is_inside))
			continue;
		fill_job(rule, &s->found, by_cgroup, s->placement);
		s->placement->scheduler_witness = WITNESS_SYSTEM;
		if (is_inside)
			set_claim(s->placement, UINT32_MAX);
		s->job_path = path;
		s->job_at = at;
	}
}

/* Considers one match that ends at path + end: a container, or only its pod. */
static void
found_container(struct search *s, const struct placement_rule *rule, const char *path, size_t end)
{
	struct placement here;

	memset(&here, 0, sizeof(here));
	if (rule->is_outside) {
		s->is_outside = true;
		return;
	}
	fill_container(rule, &s->found, by_cgroup, &here);
	if (here.has_container && end < s->inside)
		s->inside = end;
	if (end > s->handed_over)
		here.container_confidence = at_most(here.container_confidence, claim_confidence);
	/* The pod and the container in it may be matches of different rules. */
	if (here.pod[0] != '\0' && (s->pod_path == NULL || (path == s->pod_path && end > s->pod_at))) {
		memcpy(s->placement->pod, here.pod, sizeof(here.pod));
		s->pod_path = path;
		s->pod_at = end;
	}
	if (here.has_container &&
	    (s->container_path == NULL || (path == s->container_path && end > s->container_at))) {
		copy_container(s->placement, &here);
		s->container_path = path;
		s->container_at = end;
	}
}

static void
search_container(struct search *s, const struct placement_rule *rule, const char *path)
{
	for (const struct placement_finder *f = rule->cgroup; f != NULL; f = f->next) {
		size_t from = 0;

		for (int n = 0; n < NESTED_MAX; n++) {
			const char *slash;
			size_t end;

			if (!find(f, path + from, strlen(path + from), &s->found))
				break;
			end = from + last_end(&s->found, path + from);
			found_container(s, rule, path, end);
			/* The rest is a path of its own: that of a runtime inside the container. */
			slash = end > from ? strchr(path + end, '/') : NULL;
			if (slash == NULL)
				break;
			from = (size_t)(slash - path);
		}
	}
}

static bool
is_equal(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Returns the offset of the last n names of a path, with the slash before them. */
static size_t
last_names_at(const char *path, uint32_t n)
{
	size_t at = strlen(path);

	while (n > 0 && at > 0)
		n -= path[--at] == '/';
	return at;
}

/* Returns the offset behind the unit of a user's own service manager, to which systemd hands the rest over. */
static size_t
behind_manager(const char *path)
{
	static const char slice[] = "/user.slice/", unit[] = "/user@", suffix[] = ".service";
	const char *at, *end;

	if (strncmp(path, slice, strlen(slice)) != 0)
		return SIZE_MAX;
	at = strstr(path, unit);
	if (at == NULL)
		return SIZE_MAX;
	end = at + 1 + strcspn(at + 1, "/");
	if ((size_t)(end - at) < strlen(unit) + strlen(suffix) ||
	    strncmp(end - strlen(suffix), suffix, strlen(suffix)) != 0)
		return SIZE_MAX;
	return (size_t)(end - path);
}

/* Returns the offset from which on a user names the control groups of a path. SIZE_MAX: root names all. */
static size_t
handed_over_at(const struct placement_group *g)
{
	size_t by_name = behind_manager(g->path);
	size_t by_owner = g->users_names > 0 ? last_names_at(g->path, g->users_names) : SIZE_MAX;

	return by_owner < by_name ? by_owner : by_name;
}

bool
placement_of_groups(const struct ruleset *rules, const struct placement_group groups[2], struct placement *ret)
{
	const struct placement_rules *r = rules->placements;
	struct search s = { .placement = ret };

	memset(ret, 0, sizeof(*ret));
	for (int i = 0; i < 2; i++) {
		const char *path = groups[i].path;

		if (path == NULL || strcmp(path, "/") == 0 || (i > 0 && is_equal(groups[0].path, path)))
			continue;
		s.handed_over = handed_over_at(&groups[i]);
		s.inside = SIZE_MAX;
		for (const struct placement_rule *rule = r->containers; rule != NULL; rule = rule->next)
			search_container(&s, rule, path);
		for (const struct placement_rule *rule = r->schedulers; rule != NULL; rule = rule->next)
			search_job(&s, rule, path);
	}
	/* A program that serves containers may itself be in one. */
	ret->is_outside = s.is_outside && !ret->has_container;
	return ret->scheduler != NULL || ret->has_container || ret->is_outside || ret->pod[0] != '\0';
}

bool
placement_of_cgroup(const struct ruleset *rules, const char *cgroup, const char *cgroup_v1, struct placement *ret)
{
	const struct placement_group groups[] = { { .path = cgroup }, { .path = cgroup_v1 } };

	return placement_of_groups(rules, groups, ret);
}

static bool
is_by_cgroup(const char *source)
{
	return source != NULL && strcmp(source, by_cgroup) == 0;
}

/* Copies the fields that placement does not know from another description of it. */
static bool
fill_unknown(struct placement *placement, const struct placement *from, int first, int last)
{
	bool has_filled = false;

	for (int i = first; i < last; i++) {
		const char *value = field_of((struct placement *)(uintptr_t)from, i);

		if (field_of(placement, i)[0] == '\0' && value[0] != '\0') {
			memcpy(field_of(placement, i), value, fields[i].size);
			has_filled = true;
		}
	}
	return has_filled;
}

/* Takes the other's job where placement has none, or only a unit; else completes the fields of the same job. */
static bool
take_job(struct placement *placement, const struct placement *from)
{
	if (from->scheduler == NULL)
		return false;
	if (placement->scheduler == NULL || (from->is_batch && !placement->is_batch &&
	    (from->scheduler_witness != WITNESS_ARGV || !is_by_cgroup(placement->scheduler_source)))) {
		for (int i = 0; i < PLACEMENT_FIELDS_JOB; i++)
			field_of(placement, i)[0] = '\0';
		fill_unknown(placement, from, 0, PLACEMENT_FIELDS_JOB);
		placement->scheduler = from->scheduler;
		placement->is_batch = from->is_batch;
		placement->scheduler_source = from->scheduler_source;
		placement->scheduler_confidence = from->scheduler_confidence;
		placement->scheduler_witness = from->scheduler_witness;
		placement->claimed_by = from->claimed_by;
		return true;
	}
	if (!is_equal(placement->scheduler, from->scheduler) || strcmp(placement->job, from->job) != 0)
		return false;
	return fill_unknown(placement, from, 0, PLACEMENT_FIELDS_JOB);
}

/* Does the same for a container. One without an id may be any container of its runtime, in the same pod. */
static bool
take_container(struct placement *placement, const struct placement *from)
{
	bool has_filled;

	if (!from->has_container)
		return false;
	if (!placement->has_container) {
		copy_container(placement, from);
		if (placement->pod[0] == '\0')
			memcpy(placement->pod, from->pod, sizeof(placement->pod));
		return true;
	}
	if (from->container[0] != '\0' && strcmp(placement->container, from->container) != 0)
		return false;
	if (placement->runtime != NULL && !is_equal(placement->runtime, from->runtime))
		return false;
	has_filled = fill_unknown(placement, from, PLACEMENT_FIELDS_JOB, PLACEMENT_FIELDS);
	if (placement->runtime == NULL && from->runtime != NULL) {
		placement->runtime = from->runtime;
		has_filled = true;
	}
	return has_filled;
}

bool
placement_inherit(const struct placement *parent, struct placement *placement, bool is_same)
{
	bool has_changed = false;

	/* A descendant never leaves its job, whatever cgroup a container's runtime moves it to. */
	if (!is_by_cgroup(parent->scheduler_source) || parent->is_batch ||
	    (placement->scheduler != NULL && is_equal(placement->scheduler, parent->scheduler)))
		has_changed = take_job(placement, parent);
	if (placement->is_outside && !placement->has_container)
		return has_changed;
	if (!is_by_cgroup(parent->container_source) ||
	    (placement->container[0] != '\0' && strcmp(placement->container, parent->container) == 0))
		has_changed |= take_container(placement, parent);
	if (is_same && parent->is_outside && parent->has_group && placement->has_container) {
		has_changed |= !placement->is_outside;
		placement->is_outside = placement->has_group = true;
	}
	return has_changed;
}

/* Joins the arguments by spaces, as far as they fit; returns the length. */
static size_t
join(const struct candidate *s, char *buf, size_t size)
{
	size_t len = 0;

	for (size_t i = 0; i < s->argc && len < size; i++) {
		size_t n = strlen(s->argv[i]);

		if (i > 0)
			buf[len++] = ' ';
		if (n > size - len)
			n = size - len;
		memcpy(buf + len, s->argv[i], n);
		len += n;
	}
	return len;
}

static bool
find_text(const struct placement_finder *f, const char *text, struct captures *ret)
{
	return text != NULL && text[0] != '\0' && find(f, text, strlen(text), ret);
}

/* Searches the program for the rule's evidence. buf has COMMAND_MAX bytes; the match may point into it. */
static bool
find_in_program(const struct placement_program *p, const struct candidate *s, char *buf, struct captures *ret)
{
	if (!match(p->when, s))
		return false;
	switch (p->text) {
	case PLACEMENT_TEXT_NONE:
		memset(ret->parts, 0, sizeof(ret->parts));
		ret->finder = &p->find;
		return true;
	case PLACEMENT_TEXT_ARGV:
		for (size_t i = 1; s->argv != NULL && i < s->argc; i++)
			if (find_text(&p->find, s->argv[i], ret))
				return true;
		return false;
	case PLACEMENT_TEXT_COMMAND:
		return s->argv != NULL && find(&p->find, buf, join(s, buf, COMMAND_MAX), ret);
	case PLACEMENT_TEXT_SCRIPT:
		return find_text(&p->find, s->words.script, ret);
	case PLACEMENT_TEXT_EXE:
		return find_text(&p->find, s->exe, ret);
	case PLACEMENT_TEXT_CWD:
		return find_text(&p->find, s->cwd, ret);
	}
	return false;
}

/* Returns the first rule's entry whose evidence the program has. */
static const struct placement_program *
find_program(const struct placement_rule *rules, const struct candidate *s, char *buf,
    const struct placement_rule **ret_rule, struct captures *ret)
{
	uint64_t exe = s->exe != NULL ? rule_name_bit(text_base_name(s->exe)) : 0;

	for (const struct placement_rule *rule = rules; rule != NULL; rule = rule->next) {
		for (const struct placement_program *p = rule->programs; p != NULL; p = p->next) {
			if ((p->exes == 0 || (p->exes & exe) != 0) && find_in_program(p, s, buf, ret)) {
				*ret_rule = rule;
				return p;
			}
		}
	}
	return NULL;
}

static bool
is_of_system(const struct candidate *s)
{
	return s->has_uid && user_is_of_system(s->uid, s->user_uid);
}

/* Whether a program is in a container, as its control group shows: its users of the system are not the host's. */
static bool
is_contained(const struct placement *placement)
{
	return placement->has_container && !placement->is_outside && is_by_cgroup(placement->container_source);
}

/*
 * Whether a daemon of the scheduler started the program, directly or by a login shell. A user who runs a program of
 * that name is no system user.
 */
static bool
is_of_daemon(const struct placement_rule *rule, const struct candidate *s)
{
	const struct candidate *up = s->parent;

	for (int i = 0; i < 2 && up != NULL && rule->daemons != NULL; i++, up = up->parent) {
		if (up->exe == NULL || !is_of_system(up))
			continue;
		for (const char *const *name = rule->daemons; *name != NULL; name++) {
			if (strcmp(text_base_name(up->exe), *name) == 0)
				return true;
		}
	}
	return false;
}

/* Sets whose word the job of a program is. */
static void
set_witness(const struct placement_rule *rule, const struct candidate *s, bool is_inside, struct placement *here)
{
	uint32_t user = s->has_uid ? user_witness(s->uid, s->user_uid) : UINT32_MAX;

	if (is_inside) {
		set_claim(here, UINT32_MAX);
	} else if (is_of_system(s)) {
		return;
	} else if (is_of_daemon(rule, s)) {
		here->scheduler_witness = WITNESS_DAEMON;
		here->claimed_by = user;
	} else {
		set_claim(here, user);
	}
}

bool
placement_of_program(const struct ruleset *rules, const struct candidate *s, struct placement *placement)
{
	const struct placement_rules *r = rules->placements;
	const struct placement_program *program;
	const struct placement_rule *rule;
	struct placement here;
	struct captures found;
	char buf[COMMAND_MAX];
	bool has_changed = false;

	program = find_program(r->schedulers, s, buf, &rule, &found);
	if (program != NULL) {
		memset(&here, 0, sizeof(here));
		fill_job(rule, &found, program->find.source, &here);
		set_witness(rule, s, is_contained(placement), &here);
		has_changed = take_job(placement, &here);
	}
	program = find_program(r->containers, s, buf, &rule, &found);
	if (program != NULL) {
		memset(&here, 0, sizeof(here));
		fill_container(rule, &found, program->find.source, &here);
		if (!is_of_system(s))
			here.container_confidence = at_most(here.container_confidence, claim_confidence);
		if (!program->is_outside) {
			has_changed |= take_container(placement, &here);
		} else if (!is_by_cgroup(placement->container_source)) {
			/* It starts a container inside its parent's, or serves the parent's. */
			if (here.has_container)
				copy_container(placement, &here);
			has_changed |= here.has_container || placement->is_outside != placement->has_container;
			placement->is_outside = placement->has_container;
			placement->has_group = placement->has_container && program->has_group;
		}
	}
	return has_changed;
}

/* Returns the value of a digit in Crockford's base 32 (no I, L, O, U), or -1. */
static int
base32_digit(char c)
{
	static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
	const char *at = c != '\0' ? strchr(digits, c) : NULL;

	return at != NULL ? (int)(at - digits) : -1;
}

bool
slurm_sluid_decode(const char *sluid, uint32_t *ret_cluster, int64_t *ret_submit_ms)
{
	enum { DIGITS = 13, SEQUENCE_BITS = 10, TIME_BITS = 42 };
	uint64_t value = 0;

	if (sluid[0] != 's' || strlen(sluid) != 1 + DIGITS)
		return false;
	for (int i = 1; i <= DIGITS; i++) {
		int digit = base32_digit(sluid[i]);

		if (digit < 0 || value >> (64 - 5) != 0)
			return false;
		value = value << 5 | (uint64_t)digit;
	}
	*ret_cluster = (uint32_t)(value >> (SEQUENCE_BITS + TIME_BITS));
	*ret_submit_ms = (int64_t)(value >> SEQUENCE_BITS & ((UINT64_C(1) << TIME_BITS) - 1));
	return true;
}
