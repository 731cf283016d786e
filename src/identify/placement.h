/*
 * SPDX-License-Identifier: Apache-2.0
 * placement: the scheduler's job and the container that a program runs in, from its cgroup's path and,
 * where the path does not identify them, from arguments. By the rules `schedulers` and `containers`.
 *
 * Placements nest (a Slurm job starts an Apptainer container, a pod a container): the outermost scheduler
 * and the innermost container on a path count. A batch scheduler's job takes precedence over anything
 * else that a rule calls a scheduler's: a systemd unit, a session, a pod.
 *
 * Evidence is as good as its witness. A user may name control groups below the one that systemd hands over to
 * the user's own service manager, and may write any arguments. Such a control group is no evidence of a batch
 * scheduler's job. Arguments are evidence for that user alone, and replace no job that a control group shows, unless
 * the scheduler's daemon started the program. The root of a container may name control groups below the container's,
 * and become any user there: what is found in it, in either way, is evidence for each user alone.
 *
 * Call order for a program: placement_of_groups(), placement_inherit() from the program that forked it or that
 * it replaced, placement_of_program().
 */
#ifndef SLUICE_IDENTIFY_PLACEMENT_H
#define SLUICE_IDENTIFY_PLACEMENT_H

#include "model/ruleset.h"
#include "model/candidate.h"

/* Who could have made the evidence of a job, the most trustworthy first. */
enum placement_witness {
	WITNESS_SYSTEM,		/* root, who alone names control groups there, or a program of the system's users */
	WITNESS_DAEMON,		/* a user's program, which the scheduler's own daemon started */
	WITNESS_ARGV,		/* any user, by a program's arguments; or the root of a container */
};

enum {
	PLACEMENT_NAME_SIZE = 128,
	PLACEMENT_ID_SIZE = 72,		/* 64 hex digits, or a name */
};

/*
 * A text of "" is unknown; so is a value that does not fit or contains control characters, since half
 * an id would be another id. The pointers belong to the ruleset. The struct may be copied; all zeros
 * means no job and no container.
 */
struct placement {
	const char *scheduler;		/* slurm, pbs, kubernetes, systemd ...; NULL none */
	char job[PLACEMENT_NAME_SIZE];	/* the scheduler's own id; the SLUID for paths of Slurm 26.05 and later */
	char step[PLACEMENT_ID_SIZE];	/* batch, 0, extern ... */
	char task[PLACEMENT_ID_SIZE];	/* task of the step */
	char user[PLACEMENT_ID_SIZE];	/* as written in the path: a uid */
	char cluster[PLACEMENT_ID_SIZE];
	char node[PLACEMENT_ID_SIZE];	/* name of this host in the path */
	bool is_batch;			/* a job that makes a run (Slurm ...), not a unit or a session */
	const char *scheduler_source;	/* the evidence, static: "cgroup", "argv slurm_script" */
	double scheduler_confidence;
	enum placement_witness scheduler_witness;
	uint32_t claimed_by;		/* whose word; UINT32_MAX: each program's own user; not with WITNESS_SYSTEM */

	/* The program runs in a container, whose runtime or id may still be unknown. */
	bool has_container;
	/*
	 * Only the program's children are in the container, not the program itself: conmon, a shim. Without
	 * has_container: its cgroup is one of those that serve containers.
	 */
	bool is_outside;
	bool has_group;			/* with is_outside: its children are outside too while they share its cgroups */
	const char *runtime;		/* docker, containerd, cri-o, podman, lxc ...; NULL: unknown */
	char container[PLACEMENT_NAME_SIZE];
	char pod[PLACEMENT_ID_SIZE];	/* Kubernetes' uid of the pod, with dashes; also without has_container */
	char name[PLACEMENT_NAME_SIZE];	/* the container's name, where arguments contain it */
	char image[PLACEMENT_NAME_SIZE];	/* the container's image, where arguments contain it */
	const char *container_source;
	double container_confidence;
};

/* A control group of one hierarchy. */
struct placement_group {
	const char *path;		/* NULL: none */
	uint32_t users_names;		/* names at the end of the path that a user may have chosen */
};

/*
 * Finds the job and the container in the control groups of v2 and of v1's memory hierarchy.
 * Returns false, with *ret zeroed, where they name neither.
 */
bool placement_of_groups(const struct ruleset *rules, const struct placement_group groups[2], struct placement *ret);
/* The same with paths, either of which may be NULL, of which only systemd's names tell whom it hands a part over to. */
bool placement_of_cgroup(const struct ruleset *rules, const char *cgroup, const char *cgroup_v1, struct placement *ret);

/*
 * Completes placement, which was filled from the cgroup, with what the program that forked or preceded this
 * one knew from arguments. What the parent knew from its own cgroup applies to that cgroup only.
 * is_same: both are in the same cgroups. Returns true if placement changed.
 */
bool placement_inherit(const struct placement *parent, struct placement *placement, bool is_same);

/*
 * Completes placement with the job and container that the program's arguments name, and sets is_outside.
 * Returns true if placement changed.
 */
bool placement_of_program(const struct ruleset *rules, const struct candidate *s, struct placement *placement);

/*
 * Decodes the SLUID of a job (Slurm 26.05 and later) into its cluster and the time of submission, in
 * milliseconds since 1970. Returns false where the text is no SLUID.
 */
bool slurm_sluid_decode(const char *sluid, uint32_t *ret_cluster, int64_t *ret_submit_ms);

#endif
