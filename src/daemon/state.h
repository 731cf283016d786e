/*
 * SPDX-License-Identifier: Apache-2.0
 * state: the parts of a running daemon; shared only by the files of daemon/.
 */
#ifndef SLUICE_DAEMON_STATE_H
#define SLUICE_DAEMON_STATE_H

#include <event2/event.h>

#include "agent/host.h"
#include "attach/filter.h"
#include "base/incarnation.h"
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
#include "lake/retention.h"
#include "model/losses.h"
#include "registry/registry.h"
#include "rules/rules.h"
#include "spool/spool.h"

#define DAEMON_UUID_SIZE 37

/* The secrets, read once at the start while the agent is still root. */
struct daemon_secrets {
	char **kafka;			/* in the order of config.kafka.secrets; owned, as is each */
	size_t n_kafka;
	char *registry_password;
	char *registry_token;
};

/* An address at which metrics are served. */
struct metrics_listener {
	const char *address;		/* the configuration's */
	struct http *http;		/* owned; NULL: another program has the port */
	uint64_t retry_ns;		/* CLOCK_BOOTTIME; 0: no retry */
	char error[256];		/* why it is not served; "": it is */
};

struct daemon {
	const struct daemon_options *options;
	struct event_base *base;	/* owned, as are all pointers below unless noted */
	struct config *config;		/* in force */
	struct ruleset *rules;		/* in force; a reference */
	uid_t rules_owner;		/* who may own files of rules besides root */
	bool has_rules_owner;		/* that is known; else root alone may */
	struct rules_extra *extra;	/* added at run time; owned, its strings too */
	size_t n_extra;
	struct waiting_tag *tags;	/* owned; see tag.c */
	struct settle *settle;
	struct letter_batch *letter_batch;	/* NULL: none; see dead_letters.c */
	struct disk *letter_disk;	/* of the folder of dead letters; NULL: none were asked for yet */
	struct daemon_secrets secrets;
	struct spool *spool;
	struct nursery *nursery;	/* of the agent's readers */
	struct agent *agent;
	struct registry *registry;	/* NULL: files */
	struct dead_letters *dead;
	struct delivery *delivery;
	struct delivery_stats stats;	/* of the last query; names in a status point into it */
	struct loss_list losses;	/* of the last query; a status points into it */
	struct output *output;		/* owned by delivery; NULL until it is open */
	bool is_kafka;
	pid_t lake_maker;		/* the process that makes the lake's folder; 0: none, or it has ended */
	struct control *control;
	struct control *runs;		/* NULL: it is off, or could not be opened */
	struct metrics_listener metrics[CONFIG_METRICS_MAX];
	size_t n_metrics;
	struct notify *notify;
	struct event *on_term;
	struct event *on_int;
	struct event *on_hup;
	struct event *on_tick;		/* timer while the daemon stops; until then the agent's second is enough */
	struct event *on_synced;
	int synced_fd;			/* eventfd that the spool's thread writes to; closed after the spool */

	char agent_id[DAEMON_UUID_SIZE];
	struct incarnation incarnation;	/* of the spool */
	char renewed[384];		/* why agent_id is new although the spool had one; "": it is not */
	char privileges[256];
	uint64_t generation;
	int64_t start_us;
	uint64_t start_ns;		/* the same in CLOCK_BOOTTIME, which cannot be set */
	int64_t reload_us;
	bool reload_failed;
	char reload_error[1024];
	char restart_wanted[512];	/* changed keys that need a restart; "": none */
	bool is_stopping;
	int status;			/* with which it exits */
	char blind_reason[320];		/* "": the agent sees */
	uint64_t seconds;		/* since the start */
	bool lacks_room;		/* for more processes, as was logged last */
	enum output_state output_state;	/* last logged state, as are the next ones */
	enum registry_state registry_state;
	int disk_error;
	bool was_at_floor;		/* the spool */
	struct lake_retention_stats lake;
	const char *waits[TOPIC_COUNT];	/* why a topic waits, static; NULL: it does not */
	int socket_states[CONFIG_SOCKETS_MAX];	/* values of agent_socket_state() */
	struct instance *instance;	/* NULL: the metadata service is not asked */
	int kubelet_state;		/* value of kubelet_state(), as was logged last */
};

/* doors.c */
/* Opens the control socket and the metrics, while the agent is still root. 0, or -1 after it logged the error. */
int daemon_open_doors(struct daemon *d);
/* Tries the ports again that other programs had; called once a second. */
void daemon_retry_metrics(struct daemon *d);
void daemon_close_metrics(struct daemon *d);

/* deliver.c. Each returns 0, or -1 after it logged the error. */
/* Opens the spool and reads the agent's id, while the agent is still root. */
int daemon_open_spool(struct daemon *d);
/* identity.c */
/* Reads what is known of this machine, while the agent is still root. */
void daemon_read_machine(struct daemon *d);
/* Reads or makes the agent's id, as the agent's account. 0 or a negative errno. */
int daemon_read_agent_id(struct daemon *d);

/* deliver.c */
/* Reads the secrets, while the agent is still root. */
int daemon_fetch_secrets(struct daemon *d);
/* Opens dead letters, delivery and output, after privileges were dropped. */
int daemon_open_delivery(struct daemon *d);
/* Logs changes of the output, the registry and the spool's disk; called once a second. */
void daemon_watch_delivery(struct daemon *d);
/* Wipes and frees the secrets. */
void daemon_forget_secrets(struct daemon *d);

/* host_facts.c */
/* Sets the facts of the host that the configuration has. */
void daemon_configured_facts(const struct config *c, struct host_facts *ret);
/* Asks the metadata service, if it is configured, after privileges were dropped. 0, or negative after logging. */
int daemon_ask_instance(struct daemon *d);

/* containers.c */
/* Registers runtimes' sockets and the kubelet, after privileges were dropped. 0, or negative after logging. */
int daemon_open_containers(struct daemon *d);
/* Logs changes of the sockets and asks again for names; called once a second. */
void daemon_watch_containers(struct daemon *d);

/* status.c */
/* Fill in a status, an Agent record and the counts of losses; arg is the struct daemon. */
void daemon_fill_status(struct agent_status *s, void *arg);
/* Returns why the output takes none of the topic's records in the spool, a static word; NULL: it takes them. */
const char *daemon_waits_for(struct daemon *d, const struct spool_stats *spool, enum topic topic);
void daemon_describe(struct agent_record *r, void *arg);
void daemon_losses(struct loss_list *to, void *arg);

/* reload.c */
/* Logs each error of a configuration. */
void daemon_config_errors(const struct config_errors *errors);
/* Sets level and format of the log. */
void daemon_apply_log(const struct config *c);
/* Returns the options for redacting arguments; the strings belong to c. */
struct redaction_options daemon_redaction(const struct config *c);
/* Reloads the configuration. Returns false where nothing changed; d->reload_error is then set. */
bool daemon_reload(struct daemon *d);
/* Answers `sluice ctl reload`; arg is the struct daemon, as for all request functions. */
void daemon_on_reload_request(struct control_request *req, const struct json_t *args, void *arg);

/* rules.c */
/* Loads the rules of c and those added at run time. Returns 0 or a negative errno, with errors filled in. */
int daemon_read_rules(struct daemon *d, const struct config *c, struct ruleset **ret, struct config_errors *errors);
/* Puts rules in force, and takes over the caller's reference. */
void daemon_use_rules(struct daemon *d, struct ruleset *rules);
/* Frees the rules in force and those added at run time. */
void daemon_free_rules(struct daemon *d);
/* Answers `sluice ctl rules`. */
void daemon_on_rules_request(struct control_request *req, const struct json_t *args, void *arg);

/* tag.c */
/* Answers the waiting tag requests; call before control_close(). */
void daemon_free_tags(struct daemon *d);
/* Answers `sluice ctl tag`, at once or when the process is known. */
void daemon_on_tag_request(struct control_request *req, const struct json_t *args, void *arg);
/* Answers `sluice run`, which asks for the events of the run that it begins. */
void daemon_on_subscribe_request(struct control_request *req, const struct json_t *args, void *arg);
/* Reads the PID of a request, from its option pid or its first word. Returns false where there is none. */
bool daemon_get_pid(const struct json_t *args, uint32_t *ret);

/* dead_letters.c */
/* Answers the pending batch, and ends the thread that reads letters; call before control_close(). */
void daemon_free_letter_batch(struct daemon *d);
/* Answers `sluice dead-letters replay`. */
void daemon_on_dead_letters_request(struct control_request *req, const struct json_t *args, void *arg);

/* confine.c */
/*
 * Takes from the agent, for good, all files but its own and all system calls but those that it makes; after privileges
 * were dropped, and before there is any thread. Adds that to d->privileges. 0, or -1 after it logged the error.
 */
int daemon_confine(struct daemon *d);

/* signals.c */
/* Switches the optional signals that differ between the two configurations. before NULL: all are attached. */
void daemon_switch_signals(struct daemon *d, const struct config *before, const struct config *after);
/* Answer `sluice ctl attach` and `sluice ctl detach`. */
void daemon_on_attach_request(struct control_request *req, const struct json_t *args, void *arg);
void daemon_on_detach_request(struct control_request *req, const struct json_t *args, void *arg);

/* settle.c: opens d->settle. Returns 0 or -ENOMEM. */
int daemon_open_settle(struct daemon *d);

/* explain.c */
/* Answers `sluice ctl explain`. */
void daemon_on_explain_request(struct control_request *req, const struct json_t *args, void *arg);

#endif
