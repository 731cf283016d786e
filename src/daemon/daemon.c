/*
 * SPDX-License-Identifier: Apache-2.0
 * The daemon's start, loop and end. Privileges dictate the order of the start: as root, or as its account with a few
 * capabilities, it reads the configuration and secrets, binds the sockets, loads the probes and discovers the running
 * processes; then it drops all privileges but the few still needed; only then does it start threads (librdkafka's,
 * the spool's) and open network connections.
 */
#include "daemon/daemon.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "agent/sight.h"
#include "attach/privileges.h"
#include "attach/probes.h"
#include "base/clock.h"
#include "base/exit_codes.h"
#include "base/libc.h"
#include "base/log.h"
#include "base/namespaces.h"
#include "collect/meter.h"
#include "daemon/state.h"
#include "kafka/kafka.h"
#include "reader/nursery.h"
#include "runtime/instance.h"

#define TICK_STOPPING_MS 100
#define MMAP_BYTES (128 << 10)
#define TRIM_BYTES (2 << 20)		/* more than the messages of one cycle take */
#define PRODUCERS_WAIT_MS 1000
#define TRIM_EACH_S 60
#define NOTIFY_EACH_S 5

static void
on_committed(void *arg)
{
	struct daemon *d = arg;

	spool_sync(d->spool, clock_ns(CLOCK_MONOTONIC));
	if (d->delivery != NULL)
		delivery_wake(d->delivery);
}

static void
tick(struct daemon *d)
{
	spool_tick(d->spool, clock_ns(CLOCK_MONOTONIC));
	delivery_tick(d->delivery, clock_us(CLOCK_REALTIME));
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	tick(arg);
}

static void
on_synced(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *d = arg;
	eventfd_t n;

	(void)what;
	(void)eventfd_read(fd, &n);
	spool_sync(d->spool, clock_ns(CLOCK_MONOTONIC));
	delivery_wake(d->delivery);
}

/* Logs that there is no room for more processes, or that there is again. */
static void
watch_room(struct daemon *d)
{
	const struct probes *probes = agent_probes(d->agent);
	bool lacks_room = agent_lacks_room(d->agent);

	if (lacks_room && !d->lacks_room)
		log_fields(LOG_LEVEL_WARNING, "probes.full", LOG_FIELDS(LOG_U64("max_processes", probes_max_processes(probes))),
		    "there is no room for more processes of a user: the others are recorded from when there is, or counted as lost");
	else if (!lacks_room && d->lacks_room)
		log_fields(LOG_LEVEL_INFO, "probes.room", LOG_FIELDS(LOG_U64("processes", probes_followed(probes))),
		    "there is room again: the processes for which there was none are recorded from now on");
	d->lacks_room = lacks_room;
}

/* One line for the service manager: what is wrong, or where records go. */
static void
notify_manager(struct daemon *d)
{
	char text[STATUS_PROBLEM_SIZE];
	struct agent_status s = { 0 };

	daemon_fill_status(&s, d);
	if (status_is_ready(&s, text, sizeof(text)))
		snprintf(text, sizeof(text), "Seeing, and delivering to %s", s.output.kind != NULL ? s.output.kind : "the output");
	notify_status(d->notify, text);
}

/* With the pass that the agent makes, so that a host where nothing happens wakes once a second. */
static void
on_second(void *arg)
{
	struct daemon *d = arg;

	tick(d);	/* commits and syncs wake the loop by themselves */
	daemon_watch_delivery(d);
	daemon_watch_containers(d);
	watch_room(d);
	/* Memory of a past burst of processes or records is free, but malloc(3) keeps it until it is trimmed. */
	if (++d->seconds % TRIM_EACH_S == 0)
		malloc_trim(0);
	daemon_retry_metrics(d);
	if (d->seconds % NOTIFY_EACH_S == 0 && notify_has_manager(d->notify))
		notify_manager(d);
	if (notify_watchdog_us(d->notify) > 0)
		notify_watchdog(d->notify);
	log_tick();
}

static void stop_begin(struct daemon *d, const char *reason);

/* Reports that the agent ceased to see, or sees again; an agent whose probes another has ends. */
static void
on_sight(const struct sight *s, const char *sentence, void *arg)
{
	struct daemon *d = arg;

	snprintf(d->blind_reason, sizeof(d->blind_reason), "%s", s->blind_since_ns != 0 ? sentence : "");
	log_event(s->blind_since_ns != 0 ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING, s->blind_since_ns != 0 ? "probes.blind" :
	    "probes.gap", "%s", sentence);
	if (s->is_taken && !d->is_stopping) {
		d->status = EXIT_OWN_FAILURE;
		stop_begin(d, "the probes were taken over");
	}
}

static void
on_drained(bool is_empty, void *arg)
{
	struct daemon *d = arg;
	struct spool_stats spool;

	spool_stats(d->spool, &spool);
	log_fields(LOG_LEVEL_INFO, "agent.stopped", LOG_FIELDS(LOG_BOOL("drained", is_empty),
	    LOG_U64("spooled", spool.records)), !is_empty ?
	    "undelivered records stay in the spool for the next agent" : spool.records == 0 ? "everything is delivered" :
	    "everything up to the stop is delivered; later records stay in the spool for the next agent");
	event_base_loopbreak(d->base);
}

static void
stop_begin(struct daemon *d, const char *reason)
{
	const struct timeval often = { 0, TICK_STOPPING_MS * 1000 };

	d->is_stopping = true;
	log_fields(LOG_LEVEL_INFO, "agent.stopping", LOG_FIELDS(LOG_TEXT("signal", reason)),
	    "delivering waiting records for at most %.1f s", (double)d->config->drain_ms / 1000);
	notify_stopping(d->notify);
	event_add(d->on_tick, &often);
	agent_stop(d->agent);
	delivery_drain(d->delivery, (uint32_t)d->config->drain_ms, on_drained, d);
}

static void
on_stop_signal(evutil_socket_t signo, short what, void *arg)
{
	struct daemon *d = arg;

	(void)what;
	if (d->is_stopping)		/* a second signal: stop at once */
		on_drained(false, d);
	else
		stop_begin(d, strsignal((int)signo));
}

static void
on_reload_signal(evutil_socket_t signo, short what, void *arg)
{
	struct daemon *d = arg;

	(void)signo;
	(void)what;
	if (!d->is_stopping)
		daemon_reload(d);
}

static int
open_events(struct daemon *d)
{
	d->on_term = evsignal_new(d->base, SIGTERM, on_stop_signal, d);
	d->on_int = evsignal_new(d->base, SIGINT, on_stop_signal, d);
	d->on_hup = evsignal_new(d->base, SIGHUP, on_reload_signal, d);
	d->on_tick = event_new(d->base, -1, EV_PERSIST, on_tick, d);
	d->on_synced = event_new(d->base, d->synced_fd, EV_READ | EV_PERSIST, on_synced, d);
	if (d->on_term == NULL || d->on_int == NULL || d->on_hup == NULL || d->on_tick == NULL ||
	    d->on_synced == NULL || event_add(d->on_term, NULL) < 0 || event_add(d->on_int, NULL) < 0 ||
	    event_add(d->on_hup, NULL) < 0 || event_add(d->on_synced, NULL) < 0)
		return -1;
	event_active(d->on_tick, EV_TIMEOUT, 0);	/* the first one starts the thread that syncs */
	return 0;
}

/* A host without a meter is as usual as one with it. */
static void
log_meter(const struct agent *a)
{
	struct meter_state m;

	agent_meter_state(a, &m);
	if (m.source != ENERGY_UNKNOWN)
		log_fields(LOG_LEVEL_INFO, "agent.energy", LOG_FIELDS(LOG_U64("counters", m.counters)), "energy is metered: %s",
		    energy_source_name(m.source));
	else if (m.error != -ENODEV)
		log_fields(LOG_LEVEL_WARNING, "agent.energy", LOG_FIELDS(LOG_TEXT("file", m.path)),
		    "energy is not recorded: its meter cannot be read: %s; the unit of the package gives the account of the agent "
		    "these files before each start", strerror(-m.error));
}

static int
open_agent(struct daemon *d)
{
	const struct config *c = d->config;
	struct agent_host_options o = {
		.agent = {
			.rules = d->rules,
			.reads_headers = c->engines.headers,
			.nursery = d->nursery,
			.interval_ms = c->interval_ms,
			.start_after_ms = c->records.start_after_ms,
			.finding_limits = c->findings,
			.ring_bytes = c->probes.ring_bytes,
			.variables = (const char *const *)c->trace_env.list,
			.n_variables = c->trace_env.n,
			.has_file_owner = true,
		},
		.spool = d->spool,
		.agent_id = d->agent_id,
		.renewed = d->renewed[0] != '\0' ? d->renewed : NULL,
		.cluster = c->cluster,
		.pin_dir = d->options->pins,
		.watchdog_ns = c->probes.watchdog_ms * 1000000,
		.max_processes = (uint32_t)c->probes.max_processes,
		.owner = { .committed = on_committed, .tick = on_second, .describe = daemon_describe,
		    .losses = daemon_losses, .sight = on_sight, .arg = d },
	};
	static const char *const origins[] = {
		[PROBES_FRESH] = "the probes are attached",
		[PROBES_RESUMED] = "the previous agent's probes are taken over",
		[PROBES_WERE_QUIET] = "the watchdog had stopped the previous agent's probes: later events are missing",
		[PROBES_MIGRATED] = "another version's probes are replaced, and their state was copied: events meanwhile are missing",
		[PROBES_WERE_OTHER] = "another version's probes were replaced: events in between were not seen",
	};
	struct redaction_options redaction = daemon_redaction(c);
	struct host_facts facts;
	struct probes *probes;
	char error[768];

	o.agent.redaction = &redaction;
	daemon_configured_facts(c, &facts);
	o.agent.facts = &facts;
	if (privileges_user_ids(c->user, &o.agent.file_uid, &o.agent.file_gid, error, sizeof(error)) < 0) {
		log_event(LOG_LEVEL_ERROR, "agent.user", "%s", error);	/* removed since daemon_open_spool() */
		return -1;
	}
	if (agent_open_host(d->base, &o, &d->agent, error, sizeof(error)) < 0) {
		log_event(LOG_LEVEL_ERROR, "probes.open", "%s", error);
		return -1;
	}
	agent_set_argv_max(d->agent, c->argv.max_bytes);
	log_meter(d->agent);
	daemon_switch_signals(d, NULL, c);
	probes = agent_probes(d->agent);
	log_fields(probes_origin(probes) > PROBES_RESUMED ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "probes.open",
	    LOG_FIELDS(LOG_U64("processes", probes_followed(probes)), LOG_U64("max_processes", probes_max_processes(probes)),
	    LOG_U64("ring", probes_ring_bytes(probes))), "%s", origins[probes_origin(probes)]);
	if (agent_unspooled_bytes(d->agent) > 0)
		log_fields(LOG_LEVEL_WARNING, "spool.behind", LOG_FIELDS(LOG_U64("bytes", agent_unspooled_bytes(d->agent))),
		    "the previous agent read events that never reached the spool's disk: they are a gap");
	if (*probes_pin_error(probes) != '\0')
		log_event(LOG_LEVEL_WARNING, "probes.pin", "the probes end with this agent: %s", probes_pin_error(probes));
	if (c->probes.ring_bytes != 0 && probes_ring_bytes(probes) != c->probes.ring_bytes)
		log_fields(LOG_LEVEL_WARNING, "probes.ring", LOG_FIELDS(LOG_U64("bytes", probes_ring_bytes(probes))),
		    "the previous agent's ring is kept; `sluice agent --uninstall` before the start makes a new one");
	return 0;
}

static int
give_up_privileges(struct daemon *d)
{
	struct privileges_options o = { .user = d->config->user, .keep = privileges_to_keep(),
		.no_new_privs = true };
	char error[256];

	if (privileges_drop(&o, error, sizeof(error)) < 0) {
		log_event(LOG_LEVEL_ERROR, "privileges.drop", "%s", error);
		return -1;
	}
	privileges_text(d->privileges, sizeof(d->privileges));
	if (daemon_confine(d) < 0)
		return -1;
	log_event(LOG_LEVEL_INFO, "privileges.dropped", "%s", d->privileges);
	return 0;
}

static int
read_config(struct daemon *d)
{
	struct config_errors errors = { 0 };
	int r;

	r = config_load(d->options->config, &d->config, &errors);
	if (r == 0)
		r = daemon_read_rules(d, d->config, &d->rules, &errors);
	if (r == 0)
		d->rules->generation = 1;
	daemon_config_errors(&errors);
	if (r < 0 && errors.n == 0)
		log_event(LOG_LEVEL_ERROR, "config.error", "%s", strerror(-r));
	config_errors_done(&errors);
	if (r < 0)
		return -1;
	daemon_apply_log(d->config);
	return 0;
}

/* An agent that a service manager started with an account cannot become another one. */
static bool
is_account(const struct daemon *d)
{
	char where[PATH_MAX + 64], error[256];
	uid_t uid;
	gid_t gid;

	if (geteuid() == 0)
		return true;
	if (privileges_user_ids(d->config->user, &uid, &gid, error, sizeof(error)) < 0)
		log_event(LOG_LEVEL_ERROR, "agent.user", "%s: %s", config_where(d->config, "user", where, sizeof(where)), error);
	else if (uid != geteuid())
		log_event(LOG_LEVEL_ERROR, "agent.user", "%s: is '%s', but the agent was started as uid %u: also set User=%s in a "
		    "drop-in of the unit, see sluice(1)", config_where(d->config, "user", where, sizeof(where)), d->config->user,
		    (unsigned)geteuid(), d->config->user);
	else
		return true;
	return false;
}

static int
start(struct daemon *d)
{
	char error[256] = "";
	int r;

	if (!privileges_may_start()) {
		log_event(LOG_LEVEL_ERROR, "agent.root", "loading probes into the kernel needs root; run it with sudo, "
		    "or as the service sluice-agent");
		return EXIT_OWN_FAILURE;
	}
	if (!namespace_is_hosts(NAMESPACE_PID)) {
		log_event(LOG_LEVEL_ERROR, "agent.namespace", "this process is in a PID namespace of its own, where the PIDs of "
		    "the host's processes have no meaning; start the container with the host's: --pid=host, or hostPID: true");
		return EXIT_OWN_FAILURE;
	}
	r = nursery_start(&d->nursery);		/* while this process has nothing that a child must not inherit */
	if (r < 0) {
		log_event(LOG_LEVEL_ERROR, "reader.start", "%s", strerror(-r));
		return EXIT_OWN_FAILURE;
	}
	if (read_config(d) < 0 || !is_account(d))
		return EXIT_USAGE;
	r = nursery_become(d->nursery, d->config->user, 0, 0, d->config->engines.headers);
	if (r < 0) {
		log_event(LOG_LEVEL_ERROR, "reader.start", "%s", strerror(-r));
		return EXIT_OWN_FAILURE;
	}
	d->generation = 1;
	d->base = event_base_new();
	if (d->base == NULL)
		return EXIT_OWN_FAILURE;
	if (notify_open(&d->notify, error, sizeof(error)) < 0) {
		log_event(LOG_LEVEL_WARNING, "notify.open", "%s", error);
		if (d->notify == NULL)
			return EXIT_OWN_FAILURE;
	}
	if (daemon_fetch_secrets(d) < 0)
		return EXIT_USAGE;
	if (daemon_open_doors(d) < 0 || daemon_open_spool(d) < 0 || open_agent(d) < 0)
		return EXIT_OWN_FAILURE;
	agent_raise_priority();
	agent_confine_readers(d->agent);
	if (give_up_privileges(d) < 0 || daemon_open_delivery(d) < 0 || daemon_open_containers(d) < 0 ||
	    daemon_ask_instance(d) < 0 || open_events(d) < 0)
		return EXIT_OWN_FAILURE;
	daemon_forget_secrets(d);
	malloc_trim(0);			/* of reading the configuration and the rules */
	return EXIT_DONE;
}

static void
event_free_if(struct event *ev)
{
	if (ev != NULL)
		event_free(ev);
}

static void
stop(struct daemon *d)
{
	sigset_t signals;

	/* The rest takes bounded time; an interruption would leave more for the next agent to recover. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	event_free_if(d->on_term);
	event_free_if(d->on_int);
	event_free_if(d->on_hup);
	event_free_if(d->on_tick);
	event_free_if(d->on_synced);
	daemon_free_tags(d);
	daemon_free_letter_batch(d);
	settle_close(d->settle);
	daemon_close_metrics(d);
	control_close(d->control);
	control_close(d->runs);
	delivery_close(d->delivery);
	dead_letters_close(d->dead);
	registry_close(d->registry);
	instance_close(d->instance);
	agent_close(d->agent);
	nursery_stop(d->nursery);
	daemon_free_rules(d);
	losses_free(&d->losses);
	spool_close(d->spool);
	if (d->synced_fd >= 0)
		close(d->synced_fd);
	daemon_forget_secrets(d);
	config_free(d->config);
	notify_close(d->notify);
	if (d->base != NULL)
		event_base_free(d->base);
}

int
daemon_run(const struct daemon_options *o)
{
	struct daemon d = { .options = o, .synced_fd = -1 };
	int status;

	/* A closed pipe and a limit on file size are failed writes, and must not end the agent. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	kafka_process_init();
	mallopt(M_MMAP_THRESHOLD, MMAP_BYTES);	/* else a large batch raises it, and all of them use the heap */
	mallopt(M_TRIM_THRESHOLD, TRIM_BYTES);	/* else each cycle returns its memory, and the next one faults it in */
	d.start_us = clock_us(CLOCK_REALTIME);
	d.start_ns = clock_ns(CLOCK_BOOTTIME);
	status = start(&d);
	if (status == EXIT_DONE) {
		log_limit_begin();
		log_fields(LOG_LEVEL_INFO, "agent.started", LOG_FIELDS(LOG_TEXT("version", SLUICE_VERSION),
		    LOG_TEXT("agent_id", d.agent_id), LOG_U64("generation", d.generation)), "following this host");
		notify_ready(d.notify);
		if (event_base_dispatch(d.base) < 0) {
			log_event(LOG_LEVEL_ERROR, "agent.loop", "the event loop failed");
			d.status = EXIT_OWN_FAILURE;
		}
		status = d.status;
	}
	stop(&d);
	/* A thread that resolves a name or waits for a broker may take longer; no record depends on it. */
	kafka_process_wait(PRODUCERS_WAIT_MS);
	return status;
}
