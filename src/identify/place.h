/*
 * SPDX-License-Identifier: Apache-2.0
 * place: in which job of which scheduler and in which container a program runs, from its cgroup's
 * path and, where that does not tell, from arguments. By the rules `schedulers` and `containers`.
 *
 * Places nest (a Slurm job starts an Apptainer container, a pod a container): of all that is found
 * on a path the outermost scheduler and the innermost container count. A batch scheduler's job goes
 * before what is none: a unit of systemd, a session, a pod.
 *
 * The way of a program: place_of_cgroup(), place_inherit() from what forked or preceded it,
 * place_of_program().
 */
#ifndef SLUICE_IDENTIFY_PLACE_H
#define SLUICE_IDENTIFY_PLACE_H

#include "model/ruleset.h"
#include "model/subject.h"

enum {
	PLACE_NAME_SIZE = 128,
	PLACE_ID_SIZE = 72,		/* 64 hex digits, or a name */
};

/*
 * "" is unknown, also what would not fit or holds control characters: half an id is none. Static
 * strings are the ruleset's. Plain values, to be copied; zeroed is nowhere.
 */
struct place {
	const char *scheduler;		/* slurm, pbs, kubernetes, systemd ...; NULL none */
	char job[PLACE_NAME_SIZE];	/* the scheduler's own id; of Slurm 26.05's paths the SLUID */
	char step[PLACE_ID_SIZE];	/* batch, 0, extern ... */
	char task[PLACE_ID_SIZE];	/* of the step */
	char user[PLACE_ID_SIZE];	/* as the path has it: a uid */
	char cluster[PLACE_ID_SIZE];
	char node[PLACE_ID_SIZE];	/* what the path calls this host */
	bool is_batch;			/* a job that makes a run (Slurm ...), no mere unit or session */
	const char *scheduler_source;	/* the evidence, static: "cgroup", "argv slurm_script" */
	double scheduler_confidence;

	/* In a container: has_container. Its runtime or its id may be unknown all the same. */
	bool has_container;
	/* Not the program itself, only what it starts: conmon, a shim. Without has_container: its control
	 * group is one of those that serve containers. */
	bool is_outside;
	bool has_group;			/* with is_outside: nor what it starts, while in its control groups */
	const char *runtime;		/* docker, containerd, cri-o, podman, lxc ...; NULL: unknown */
	char container[PLACE_NAME_SIZE];
	char pod[PLACE_ID_SIZE];	/* Kubernetes' uid of it, with dashes; also without has_container */
	char name[PLACE_NAME_SIZE];	/* the container's, where arguments tell */
	char image[PLACE_NAME_SIZE];	/* likewise */
	const char *container_source;
	double container_confidence;
};

/* Of the paths of both hierarchies, either NULL. False: nothing was found, *ret is zeroed. */
bool place_of_cgroup(const struct ruleset *rules, const char *cgroup, const char *cgroup_v1, struct place *ret);

/*
 * What a program takes over from the one that forked it or that it replaced: what that knew from
 * arguments and place, filled by the cgroup, does not tell. What that knew from its own cgroup it
 * knew of that cgroup alone. is_same: both are in the same cgroups. True if place changed.
 */
bool place_inherit(const struct place *parent, struct place *place, bool is_same);

/*
 * What the program's arguments say of its job or container; fills what *place does not know yet, and
 * sets is_outside. True if place changed.
 */
bool place_of_program(const struct ruleset *rules, const struct subject *s, struct place *place);

/* From Slurm 26.05 on: when a job was submitted and where, out of its SLUID. False: no SLUID. */
bool slurm_sluid_decode(const char *sluid, uint32_t *ret_cluster, int64_t *ret_submit_ms);

#endif
