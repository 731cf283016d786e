/*
 * SPDX-License-Identifier: Apache-2.0
 * record: the names of topics and of the values that records spell out.
 */
#include "model/record.h"

const char *
topic_name(enum topic topic)
{
	static const char *const names[TOPIC_COUNT] = {
		[TOPIC_PROGRAM] = "sluice.program",
		[TOPIC_USAGE] = "sluice.usage",
		[TOPIC_TASK] = "sluice.task",
		[TOPIC_RUN] = "sluice.run",
		[TOPIC_HOST] = "sluice.host",
		[TOPIC_FINDING] = "sluice.finding",
		[TOPIC_AGENT] = "sluice.agent",
	};

	return (unsigned)topic < TOPIC_COUNT ? names[topic] : NULL;
}

const char *
record_phase_name(enum record_phase phase)
{
	switch (phase) {
	case PHASE_START:
		return "START";
	case PHASE_LIVE:
		return "LIVE";
	case PHASE_END:
		return "END";
	}
	return NULL;
}

const char *
end_reason_name(enum end_reason reason)
{
	switch (reason) {
	case END_REASON_NONE:
		return NULL;
	case END_REASON_EXIT:
		return "EXIT";
	case END_REASON_EXEC:
		return "EXEC";
	}
	return NULL;
}

const char *
bound_name(enum bound bound)
{
	switch (bound) {
	case BOUND_NONE:
		return NULL;
	case BOUND_COMPUTE:
		return "COMPUTE";
	case BOUND_MEMORY:
		return "MEMORY";
	case BOUND_IO:
		return "IO";
	case BOUND_NETWORK:
		return "NETWORK";
	case BOUND_STARVED:
		return "STARVED";
	case BOUND_IDLE:
		return "IDLE";
	case BOUND_MIXED:
		return "MIXED";
	}
	return NULL;
}

const char *
demand_name(enum demand demand)
{
	static const char *const names[DEMAND_KINDS] = {
		[DEMAND_COMPUTE] = "COMPUTE",
		[DEMAND_MEMORY] = "MEMORY",
		[DEMAND_STORAGE] = "STORAGE",
		[DEMAND_NETWORK_FS] = "NETWORK_FS",
		[DEMAND_NETWORK] = "NETWORK",
		[DEMAND_WAITING_FOR] = "WAITING_FOR",
		[DEMAND_MIXED] = "MIXED",
	};

	return (unsigned)demand < DEMAND_KINDS ? names[demand] : NULL;
}

const char *
denied_name(enum denied denied)
{
	static const char *const names[DENIED_KINDS] = {
		[DENIED_NOTHING] = "NOTHING",
		[DENIED_RUN_QUEUE] = "RUN_QUEUE",
		[DENIED_THROTTLED] = "THROTTLED",
		[DENIED_RECLAIM] = "RECLAIM",
		[DENIED_IO] = "IO",
	};

	return (unsigned)denied < DENIED_KINDS ? names[denied] : NULL;
}

const char *
peak_source_name(enum peak_source source)
{
	static const char *const names[PEAK_SOURCES] = {
		[PEAK_OF_PASS] = "PASS",
		[PEAK_OF_PROGRAM] = "PROGRAM",
	};

	return (unsigned)source < PEAK_SOURCES ? names[source] : NULL;
}

const char *
energy_source_name(enum energy_source source)
{
	static const char *const names[ENERGY_SOURCES] = {
		[ENERGY_POWERCAP] = "POWERCAP",
		[ENERGY_HWMON] = "HWMON",
		[ENERGY_HWMON_POWER] = "HWMON_POWER",
	};

	return (unsigned)source < ENERGY_SOURCES ? names[source] : NULL;
}

const char *
bill_part_name(enum bill_part part)
{
	static const char *const names[BILL_PARTS] = {
#define BILL_NAME(ID, name) [BILL_##ID] = #ID,
		BILL_EACH(BILL_NAME)
#undef BILL_NAME
	};

	return (unsigned)part < BILL_PARTS ? names[part] : NULL;
}

const char *
finding_severity_name(enum finding_severity severity)
{
	switch (severity) {
	case SEVERITY_INFO:
		return "INFO";
	case SEVERITY_WARNING:
		return "WARNING";
	case SEVERITY_ERROR:
		return "ERROR";
	}
	return NULL;
}
