/*
 * SPDX-License-Identifier: Apache-2.0
 * host_facts: what this machine itself knows of its facts.
 */
#ifndef SLUICE_COLLECT_HOST_FACTS_H
#define SLUICE_COLLECT_HOST_FACTS_H

#include "model/host_facts.h"

/*
 * Reads what this machine itself knows: the model from PROC/cpuinfo, and from the tables of its firmware (DMI), which
 * SYS/class/dmi/id shows to every user, the cloud and, on EC2, the instance type. proc and sys are "/proc" and "/sys", or
 * other roots for a test. What cannot be read is unknown.
 */
void host_facts_read(const char *proc, const char *sys, struct host_facts *ret);

#endif
