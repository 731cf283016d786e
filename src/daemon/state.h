/*
 * SPDX-License-Identifier: Apache-2.0
 * state: what a running daemon owns; shared by the daemon*.c files alone.
 */
#ifndef SLUICE_DAEMON_STATE_H
#define SLUICE_DAEMON_STATE_H

#include <event2/event.h>

#include "agent/host.h"
#include "attach/filter.h"
#include "config/config.h"
#include "control/control.h"
#include "control/http.h"
#include "control/notify.h"
#include "control/status.h"
#include "daemon/daemon.h"
#include "daemon/settling.h"
#include "deliver/dead_letter.h"
#include "deliver/delivery.h"
#include "deliver/output.h"
#include "model/losses.h"
#include "registry/registry.h"
#include "rules/rules.h"
#include "spool/spool.h"

#define DAEMON_UUID_SIZE 37

/* Fetched once, at the start, while we are still root. */
struct daemon_secrets {
	char **kafka;			/* by the order of config.kafka.secrets; owned, each too */
	size_t n_kafka;
	char *registry_password;
	char *registry_token;
};

struct daemon {
	const struct daemon_options *options;
	struct event_base *base;	/* owned, as all pointers below */
	struct config *config;		/* in force */
	struct ruleset *rules;		/* likewise; a reference */
	struct rules_extra *extra;	/* added at run time; owned, its strings too */
	size_t n_extra;
	struct waiting_tag *tags;	/* owned; see rules.c */
	struct settle *settle;
	struct daemon_secrets secrets;
	struct spool *spool;
	struct agent *agent;
	struct registry *registry;	/* NULL: files */
	struct dead_letters *dead;
	struct delivery *delivery;
	struct delivery_stats stats;	/* as last asked for: names in a status point into it */
	struct loss_list losses;	/* likewise */
	struct output *output;		/* delivery's; NULL until it is open */
	bool is_kafka;
	struct control *control;
	struct http *http;		/* NULL: no metrics, or not yet */
	uint64_t metrics_retry_ns;	/* CLOCK_BOOTTIME; 0: not wanted */
	struct notify *notify;
	struct event *on_term;
	struct event *on_int;
	struct event *on_hup;
	struct event *on_tick;
	struct event *on_second;

	char agent_id[DAEMON_UUID_SIZE];
	char privileges[256];
	uint64_t generation;
	int64_t start_us;
	uint64_t start_ns;		/* the same, of a clock that nobody sets */
	int64_t reload_us;
	bool reload_failed;
	char reload_error[1024];
	char restart_wanted[512];	/* keys that have changed since the start and wait; "" none */
	bool is_stopping;
	unsigned quiet_ticks;		/* in a row, with nothing in the spool */
	bool is_idle;
	uint64_t seconds;		/* since the start */
	int status;			/* to exit with */
	enum output_state output_state;	/* as last told in the log */
	enum registry_state registry_state;
	int disk_error;
	int socket_states[CONFIG_SOCKETS_MAX];	/* likewise; as of agent_socket_state() */
};


/* deliver.c: before and after privileges are given up. 0 or -1: told in the log. */
int daemon_open_spool(struct daemon *d);
int daemon_fetch_secrets(struct daemon *d);
int daemon_open_delivery(struct daemon *d);
/* Once a second: what has changed goes to the log. */
void daemon_watch_delivery(struct daemon *d);
void daemon_forget_secrets(struct daemon *d);

/* containers.c: once privileges are given up, and once a second. 0 or negative: told in the log. */
int daemon_open_containers(struct daemon *d);
void daemon_watch_containers(struct daemon *d);

/* status.c */
void daemon_fill_status(struct agent_status *s, void *arg);
void daemon_describe(struct agent_record *r, void *arg);
void daemon_losses(struct loss_list *to, void *arg);

/* reload.c */
void daemon_config_errors(const struct config_errors *errors);
void daemon_apply_log(const struct config *c);
/* What is kept of arguments; strings are c's. */
struct redaction_options daemon_redaction(const struct config *c);
/* True: in force. False: nothing has changed, d->reload_error says why. */
bool daemon_reload(struct daemon *d);
void daemon_on_reload_request(struct control_request *req, const struct json_t *args, void *arg);

/* rules.c */
int daemon_read_rules(struct daemon *d, const struct config *c, struct ruleset **ret, struct config_errors *errors);
void daemon_use_rules(struct daemon *d, struct ruleset *rules);	/* takes the reference */
void daemon_free_rules(struct daemon *d);
void daemon_free_tags(struct daemon *d);	/* before the control socket closes */
void daemon_on_rules_request(struct control_request *req, const struct json_t *args, void *arg);
void daemon_on_tag_request(struct control_request *req, const struct json_t *args, void *arg);
/* A request's pid=PID, or its first word; false: it has none. */
bool daemon_get_pid(const struct json_t *args, uint32_t *ret);

/* signals.c */
/* Switches the optional signals of which the two configurations differ; before NULL: they are all on. */
void daemon_switch_signals(struct daemon *d, const struct config *before, const struct config *after);
void daemon_on_attach_request(struct control_request *req, const struct json_t *args, void *arg);
void daemon_on_detach_request(struct control_request *req, const struct json_t *args, void *arg);

/* settle.c: 0 or -ENOMEM */
int daemon_open_settle(struct daemon *d);

/* explain.c */
void daemon_on_explain_request(struct control_request *req, const struct json_t *args, void *arg);

#endif
