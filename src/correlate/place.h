/*
 * SPDX-License-Identifier: Apache-2.0
 * place: in which job of which scheduler and in which container a program runs, from its cgroup's
 * path and, where that does not tell, from arguments. By the rules `schedulers` and `containers`.
 *
 * Places nest (a Slurm job starts an Apptainer container, a pod a container): of all that is found
 * on a path the outermost scheduler and the innermost container count.
 */
#ifndef SLUICE_CORRELATE_PLACE_H
#define SLUICE_CORRELATE_PLACE_H

#include "base/ruleset.h"
#include "base/subject.h"

enum {
	PLACE_NAME_SIZE = 128,
	PLACE_ID_SIZE = 72,		/* 64 hex digits, or a name */
};

/* "" is unknown; static strings are the ruleset's. Plain values, to be copied. */
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

	const char *runtime;		/* docker, containerd, cri-o, podman, lxc ...; NULL none */
	char container[PLACE_NAME_SIZE];
	char pod[PLACE_ID_SIZE];	/* Kubernetes' uid of it, with dashes */
	const char *container_source;
	double container_confidence;
};

/* Of the paths of both hierarchies, either NULL. False: nothing was found, *ret is zeroed. */
bool place_of_cgroup(const struct ruleset *rules, const char *cgroup, const char *cgroup_v1, struct place *ret);

/*
 * What the program's arguments say of its job or container; fills what *place does not know yet.
 * True if it did.
 */
bool place_of_program(const struct ruleset *rules, const struct subject *s, struct place *place);

/* From Slurm 26.05 on: when a job was submitted and where, out of its SLUID. False: no SLUID. */
bool slurm_sluid_decode(const char *sluid, uint32_t *ret_cluster, int64_t *ret_submit_ms);

#endif
