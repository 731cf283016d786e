/*
 * SPDX-License-Identifier: Apache-2.0
 * The daemon's stages after the stream: spool, registry, and Kafka or files, by the configuration.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attach/privileges.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/disk.h"
#include "base/host_id.h"
#include "base/log.h"
#include "codec/encode.h"
#include "daemon/state.h"
#include "deliver/file_output.h"
#include "kafka/kafka.h"

#define REGISTRY_CACHE_FILE "registry-ids.json"
#define PATH_SPACE 4096
#define WAIT_IS_NEWS_US INT64_C(5000000)
#define DISK_PATIENCE_MS 1000	/* in which the ring has room for what happens */

/* Returns whether the folder is empty, apart from lost+found of a new file system. False on errors. */
static bool
is_empty(int fd)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
	const struct dirent *e;
	bool found = d == NULL;

	if (d == NULL && copy >= 0)
		close(copy);
	while (!found && (e = readdir(d)) != NULL)
		found = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
		    strcmp(e->d_name, "lost+found") != 0;
	if (d != NULL)
		closedir(d);
	return !found;
}

/*
 * Makes the account the owner of an open folder. As root this could take any folder, so one that
 * contains other users' files, such as /tmp or a home, is refused.
 */
static int
give_folder(int fd, const char *path, mode_t mode, uid_t uid, gid_t gid)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != uid && (geteuid() != 0 || st.st_uid != 0 || !is_empty(fd))) {
		log_event(LOG_LEVEL_ERROR, "agent.folders", "%s belongs to uid %u%s: name another folder, or give it to "
		    "the agent's account: chown -R %u:%u %s", path, (unsigned)st.st_uid,
		    geteuid() == 0 && st.st_uid == 0 ? " and is not empty" : "", (unsigned)uid, (unsigned)gid, path);
		return -EPERM;
	}
	/* A private folder loses others' access before it changes owner; a lake's readers are up to its owner. */
	if ((mode & 077) == 0 && (st.st_mode & 077) != 0 && fchmod(fd, mode) < 0)
		return -errno;
	if ((st.st_uid != uid || st.st_gid != gid) && fchown(fd, uid, gid) < 0)
		return -errno;
	return 0;
}

/*
 * Creates a folder and its parents; the last one becomes the account's, so that the agent can write to
 * it without privileges. Only a symbolic link made by root is followed: with a link, any other user
 * could have an arbitrary folder given to the account.
 */
static int
make_folder(const char *path, mode_t mode, uid_t uid, gid_t gid)
{
	char at[PATH_SPACE];
	struct stat st;
	int fd, r;

	if (snprintf(at, sizeof(at), "%s", path) >= (int)sizeof(at))
		return -ENAMETOOLONG;
	for (char *slash = strchr(at + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(at, 0755) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	/* Even mkdir(2) of a folder that exists waits while its file system is frozen. */
	if (lstat(at, &st) < 0 && ((mkdir(at, mode) < 0 && errno != EEXIST) || lstat(at, &st) < 0))
		return -errno;
	if (S_ISLNK(st.st_mode) && st.st_uid != 0) {
		log_event(LOG_LEVEL_ERROR, "agent.folders", "%s is a symbolic link of uid %u: only one of root's is "
		    "followed", at, (unsigned)st.st_uid);
		return -ELOOP;
	}
	fd = open(at, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (S_ISLNK(st.st_mode) ? 0 : O_NOFOLLOW));
	if (fd < 0)
		return -errno;
	r = give_folder(fd, at, mode, uid, gid);
	close(fd);
	return r;
}

/*
 * Makes the lake's folder as make_folder() does, in a process of its own: only root can give it to the account, no
 * thread runs before the agent has become that account, and the lake's disk may hang. Waits for at most the disk's
 * patience; a process that takes longer is d->lake_maker, for which the lake's writer waits. 0 or a negative errno.
 */
static int
make_lake(struct daemon *d, uid_t uid, gid_t gid)
{
	static const struct timespec moment = { .tv_nsec = 2000000 };
	const int64_t until = clock_ms(CLOCK_MONOTONIC) + DISK_PATIENCE_MS;
	const pid_t parent = getpid(), pid = fork();
	pid_t ended;
	int status;

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* Sockets and locks must not outlive the agent because of a disk that hangs. */
		if (getppid() != parent || descriptors_close_from(STDERR_FILENO + 1) < 0)
			_exit(ECANCELED);
		_exit(-make_folder(d->config->lake, 0750, uid, gid));	/* private: it records what every user ran */
	}
	while ((ended = waitpid(pid, &status, WNOHANG)) == 0 && clock_ms(CLOCK_MONOTONIC) < until)
		nanosleep(&moment, NULL);
	if (ended == 0)
		d->lake_maker = pid;
	if (ended <= 0)
		return ended < 0 ? -errno : 0;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -ECANCELED;
}

/* Writes the path of a file in the spool's folder. Returns false where it is too long. */
static bool
spool_file(const struct daemon *d, const char *name, char out[PATH_SPACE])
{
	return snprintf(out, PATH_SPACE, "%s/%s", d->config->spool.dir, name) < PATH_SPACE;
}

/* Runs on the spool's thread. */
static void
on_synced(void *arg)
{
	(void)!eventfd_write(((struct daemon *)arg)->synced_fd, 1);
}

int
daemon_open_spool(struct daemon *d)
{
	const struct config *c = d->config;
	struct spool_options o = { .dir = c->spool.dir, .max_bytes = c->spool.max_bytes,
		.memory_bytes = c->spool.memory_bytes, .sync_ms = (uint32_t)c->spool.sync_ms,
		.is_sync_first = true, .on_synced = on_synced, .on_synced_arg = d, .patience_ms = DISK_PATIENCE_MS,
		.free_min = c->disk_free_min_bytes };
	struct spool_recovery found;
	char error[512] = "", where[PATH_SPACE + 64];
	const uid_t own_uid = geteuid();
	const gid_t own_gid = getegid();
	uid_t uid = 0;
	gid_t gid = 0;
	int r;

	d->synced_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (d->synced_fd < 0) {
		log_event(LOG_LEVEL_ERROR, "spool.open", "eventfd: %s", strerror(errno));
		return -1;
	}
	r = privileges_user_ids(c->user, &uid, &gid, error, sizeof(error));
	if (r < 0) {
		log_event(LOG_LEVEL_ERROR, "agent.user", "%s: %s", config_where(c, "user", where, sizeof(where)), error);
		return -1;
	}
	r = make_folder(c->spool.dir, 0700, uid, gid);
	if (r == 0)
		r = make_folder(c->dead_letters, 0700, uid, gid);
	if (r < 0) {
		log_event(LOG_LEVEL_ERROR, "agent.folders", "cannot create the folders of spool and dead letters: %s",
		    strerror(-r));
		return -1;
	}
	r = c->kafka.is_set ? 0 : make_lake(d, uid, gid);
	if (r < 0) {
		log_event(LOG_LEVEL_ERROR, "agent.folders", "cannot create the lake %s: %s; name another folder at %s", c->lake,
		    strerror(-r), config_where(c, "lake", where, sizeof(where)));
		return -1;
	}
	daemon_read_machine(d);
	/* Opened as the agent's account, so that all files in it belong to that account. */
	if (setegid(gid) < 0 || seteuid(uid) < 0) {
		log_event(LOG_LEVEL_ERROR, "agent.user", "cannot become '%s': %s", c->user, strerror(errno));
		return -1;
	}
	for (int t = 0; t < TOPIC_COUNT; t++)
		o.schemas[t] = encode_schema((enum topic)t, NULL);
	r = spool_open(&o, &d->spool, &found, error, sizeof(error));
	if (r == 0) {
		r = daemon_read_agent_id(d);
		if (r < 0)
			snprintf(error, sizeof(error), "cannot keep the agent's id in %s: %s", c->spool.dir, strerror(-r));
	}
	if (seteuid(own_uid) < 0 || setegid(own_gid) < 0)
		r = -EPERM;
	if (r < 0) {
		log_event(LOG_LEVEL_ERROR, "spool.open", "%s", error);
		return -1;
	}
	if (found.unknown > 0)
		log_fields(LOG_LEVEL_WARNING, "spool.unknown_topics", LOG_FIELDS(LOG_U64("records", found.unknown)),
		    "records of topics that only a later version knows are kept for it; all others are delivered");
	if (found.torn_bytes > 0 || found.corrupt_batches > 0 || found.unreadable > 0)
		log_fields(LOG_LEVEL_WARNING, "spool.recovered", LOG_FIELDS(LOG_U64("torn_bytes", found.torn_bytes),
		    LOG_U64("corrupt_batches", found.corrupt_batches), LOG_U64("corrupt_bytes", found.corrupt_bytes),
		    LOG_U64("unreadable_segments", found.unreadable), LOG_U64("records", found.records)),
		    "data of the spool that a crash damaged was skipped");
	else if (!found.is_fresh)
		log_fields(LOG_LEVEL_INFO, "spool.opened", LOG_FIELDS(LOG_U64("records", found.records),
		    LOG_BOOL("clean", found.was_clean)), "the spool is continued");
	return 0;
}

/* Reads one secret, if it is configured; the caller frees it. 0 or -1, and an error is logged. */
static int
fetch(const struct daemon *d, const struct config_secret *from, const char *what, char **ret)
{
	char error[2 * PATH_MAX];
	uid_t uid = 0;
	gid_t gid;

	if (!config_secret_is_set(from))
		return 0;
	(void)privileges_user_ids(d->config->user, &uid, &gid, error, sizeof(error));	/* open_agent() reports it */
	if (config_secret_read(from, uid, ret, error, sizeof(error)) < 0) {
		log_event(LOG_LEVEL_ERROR, "agent.secret", "%s: %s", what, error);
		return -1;
	}
	return 0;
}

int
daemon_fetch_secrets(struct daemon *d)
{
	const struct config_pairs *kafka = &d->config->kafka.secrets;

	if (kafka->n > 0) {
		d->secrets.kafka = calloc(kafka->n, sizeof(*d->secrets.kafka));
		if (d->secrets.kafka == NULL)
			return -1;
		d->secrets.n_kafka = kafka->n;
	}
	for (size_t i = 0; i < kafka->n; i++) {
		if (fetch(d, &kafka->list[i].secret, kafka->list[i].name, &d->secrets.kafka[i]) < 0)
			return -1;
	}
	if (fetch(d, &d->config->registry.password, "registry.password", &d->secrets.registry_password) < 0 ||
	    fetch(d, &d->config->registry.token, "registry.token", &d->secrets.registry_token) < 0)
		return -1;
	return 0;
}

void
daemon_forget_secrets(struct daemon *d)
{
	for (size_t i = 0; i < d->secrets.n_kafka; i++)
		config_secret_free(d->secrets.kafka[i]);
	free(d->secrets.kafka);
	config_secret_free(d->secrets.registry_password);
	config_secret_free(d->secrets.registry_token);
	d->secrets = (struct daemon_secrets){ 0 };
}

static void
on_registry_change(void *arg)
{
	struct daemon *d = arg;

	if (d->output != NULL && d->is_kafka)
		kafka_registry_changed(d->output, registry_epoch(d->registry));
}

static int
on_schema_id(void *arg, const char *subject, const struct spool_record *r, int32_t *ret_id)
{
	struct daemon *d = arg;
	const char *text = spool_schema(d->spool, r->schema);

	if (text == NULL)
		return errno == ENOENT ? -ENOENT : -EAGAIN;
	return registry_id(d->registry, subject, r->schema, text, ret_id);
}

static void
on_kafka_log(int level, const char *facility, const char *text, void *arg)
{
	(void)arg;
	/* librdkafka's errors concern connections, which it restores itself: warnings for the agent. */
	log_fields(level <= 4 ? LOG_LEVEL_WARNING : level <= 6 ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG, "kafka.log",
	    LOG_FIELDS(LOG_TEXT("facility", facility)), "%s", text);
}

static int
open_registry(struct daemon *d, char *error, size_t error_size)
{
	const struct config *c = d->config;
	char cache[PATH_SPACE];
	struct registry_options o = {
		.urls = (const char *const *)c->registry.urls.list,
		.n_urls = c->registry.urls.n,
		.user = c->registry.user,
		.password = d->secrets.registry_password,
		.token = d->secrets.registry_token,
		.ca_file = c->registry.ca_file,
		.cert_file = c->registry.cert_file,
		.key_file = c->registry.key_file,
		.lookup_only = !c->registry.auto_register,
		.cache_file = spool_file(d, REGISTRY_CACHE_FILE, cache) ? cache : NULL,
		.disk = spool_disk(d->spool),
		.timeout_ms = (uint32_t)c->registry.timeout_ms,
		.recheck_ms = (uint32_t)c->registry.recheck_ms,
	};

	return registry_open(d->base, &o, on_registry_change, d, &d->registry, error, error_size);
}

static int
open_kafka(struct daemon *d, const struct output_events *events, char *error, size_t error_size)
{
	const struct config *c = d->config;
	size_t n = c->kafka.properties.n + d->secrets.n_kafka;
	struct kafka_property *properties = calloc(n > 0 ? n : 1, sizeof(*properties));
	struct kafka_options o = {
		.brokers = (const char *const *)c->kafka.brokers.list,
		.n_brokers = c->kafka.brokers.n,
		.properties = properties,
		.n_properties = n,
		.topic_prefix = c->kafka.topics.prefix,
		.create_topics = c->kafka.topics.create,
		.partitions = (uint32_t)c->kafka.topics.partitions,
		.replication = (uint32_t)c->kafka.topics.replication,
		.retention_ms = (int64_t)c->kafka.topics.retention_ms,
		.agent_version = SLUICE_VERSION,
		.schema_id = on_schema_id,
		.on_log = on_kafka_log,
		.arg = d,
	};
	int r;

	if (properties == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < c->kafka.properties.n; i++)
		properties[i] = (struct kafka_property){ c->kafka.properties.list[i].name,
			c->kafka.properties.list[i].value };
	for (size_t i = 0; i < d->secrets.n_kafka; i++)
		properties[c->kafka.properties.n + i] = (struct kafka_property){
			c->kafka.secrets.list[i].name, d->secrets.kafka[i] };
	r = kafka_open(d->base, &o, events, &d->output, error, error_size);
	free(properties);
	return r;
}

static const char *
on_schema_text(void *arg, uint64_t fingerprint)
{
	return spool_schema(((struct daemon *)arg)->spool, fingerprint);
}

static void
on_lake_repaired(const struct lake_repair *repair, void *arg)
{
	(void)arg;
	if (repair->files > 0 || repair->empty > 0)
		log_fields(LOG_LEVEL_INFO, "lake.repaired", LOG_FIELDS(LOG_U64("files", repair->files + repair->empty),
		    LOG_U64("records", repair->records), LOG_U64("torn_bytes", repair->torn_bytes)),
		    "files that an agent left open when it died, or when a sync failed, were repaired");
	if (repair->failed > 0)
		log_fields(LOG_LEVEL_WARNING, "lake.repair", LOG_FIELDS(LOG_TEXT("path", repair->failed_path),
		    LOG_U64("files", repair->failed)), "a file that an agent left open cannot be repaired: %s; %s",
		    strerror(-repair->error), repair->error == -EBADMSG ? "it ends in .bad now" :
		    "it is tried again each minute");
}

static int
open_files(struct daemon *d, const struct output_events *events, char *error, size_t error_size)
{
	const struct lake_limits limits = { .max_bytes = d->config->lake_max_bytes,
		.keep_us = (int64_t)d->config->lake_keep_ms * 1000, .free_min = d->config->disk_free_min_bytes };
	struct file_output_options o = { .writer = { .appender = { .lake = d->config->lake, .agent_id = d->agent_id,
		.limits = limits },
		.maker = d->lake_maker, .on_repaired = on_lake_repaired }, .schema = on_schema_text, .schema_arg = d };
	char where[PATH_SPACE + 64], hint[PATH_SPACE + 512];
	struct host_id host;
	int r;

	/* What the process could not make is made by root alone. In what is mounted later nothing is written. */
	snprintf(hint, sizeof(hint), "name another folder at %s, or let user '%s' write in this one%s",
	    config_where(d->config, "lake", where, sizeof(where)), d->config->user,
	    d->lake_maker != 0 ? ", and restart the agent" : "; if it was mounted since the agent began, restart the agent");
	o.hint = hint;
	r = host_id_read("", &host);
	if (r == 0) {
		o.writer.appender.host_id = host.id;
		r = file_output_open(d->base, &o, events, &d->output);
	}
	if (r < 0)
		snprintf(error, error_size, "cannot write the lake %s: %s; %s", d->config->lake, strerror(-r), hint);
	return r;
}

int
daemon_open_delivery(struct daemon *d)
{
	const struct config *c = d->config;
	struct delivery_options o = { 0 };
	struct output_events events;
	char error[512] = "out of memory";
	int r;

	r = dead_letters_open(c->dead_letters, c->dead_letters_max_bytes, c->disk_free_min_bytes, &d->dead);
	if (r < 0) {
		log_event(LOG_LEVEL_ERROR, "dead_letters.open", "cannot use %s: %s", c->dead_letters, strerror(-r));
		return -1;
	}
	o.dead = d->dead;
	r = delivery_open(d->base, d->spool, &o, &events, &d->delivery);
	d->is_kafka = c->kafka.is_set;
	if (r == 0 && d->is_kafka) {
		r = open_registry(d, error, sizeof(error));
		if (r == 0 && error[0] != '\0')
			log_event(LOG_LEVEL_WARNING, "registry.cache", "%s", error);
		if (r == 0)
			r = open_kafka(d, &events, error, sizeof(error));
	} else if (r == 0) {
		r = open_files(d, &events, error, sizeof(error));
	}
	if (r < 0) {
		log_fields(LOG_LEVEL_ERROR, "output.open", LOG_FIELDS(LOG_TEXT("former_event", "outlet.open")), "%s",
		    error);
		return -1;
	}
	delivery_set_output(d->delivery, d->output);
	return 0;
}

/* Logs that a topic waits, or no longer does. */
static void
watch_waits(struct daemon *d, const struct spool_stats *spool)
{
	int64_t now_us = clock_us(CLOCK_REALTIME);

	for (int t = 0; t < TOPIC_COUNT; t++) {
		const char *reason = daemon_waits_for(d, spool, (enum topic)t);
		int64_t since_us = d->stats.waits[t].since_us;

		/*
		 * An id that was just requested is no news, nor is a topic that is being created. While none is
		 * delivered, that is logged with its reason.
		 */
		if (reason == d->waits[t] || (reason != NULL && (d->output_state != OUTPUT_UP ||
		    (now_us >= since_us && now_us - since_us < WAIT_IS_NEWS_US))))
			continue;
		if (reason != NULL)
			log_fields(LOG_LEVEL_WARNING, "delivery.waits", LOG_FIELDS(LOG_TEXT("topic", topic_name(t)),
			    LOG_TEXT("reason", reason), LOG_U64("records", spool->waiting[t])),
			    "records of %s wait in the spool, those of other topics do not", topic_name(t));
		else
			log_fields(LOG_LEVEL_INFO, "delivery.goes_on", LOG_FIELDS(LOG_TEXT("topic", topic_name(t))),
			    "records of %s are delivered", topic_name(t));
		d->waits[t] = reason;
	}
}

/* Logs which old files of the lake were removed since the last call. */
static void
watch_lake(struct daemon *d, const struct lake_retention_stats *lake)
{
	for (int reason = 0; lake != NULL && reason < LAKE_REMOVALS; reason++) {
		const struct lake_removed *now = &lake->removed[reason];
		struct lake_removed *then = &d->lake.removed[reason];

		if (now->files != then->files)
			log_fields(LOG_LEVEL_INFO, "lake.removed", LOG_FIELDS(
			    LOG_TEXT("reason", lake_removal_name((enum lake_removal)reason)),
			    LOG_U64("files", now->files - then->files), LOG_U64("records", now->records - then->records),
			    LOG_U64("bytes", now->bytes - then->bytes)), "old files of the lake were removed");
	}
	if (lake != NULL && lake->errors != d->lake.errors && lake->last_error != d->lake.last_error)
		log_event(LOG_LEVEL_WARNING, "lake.remove", "an old file of the lake %s cannot be removed: %s", d->config->lake,
		    strerror(-lake->last_error));
	if (lake != NULL)
		d->lake = *lake;
}

void
daemon_watch_delivery(struct daemon *d)
{
	struct output_status output;
	struct spool_stats spool;

	d->output->ops->status(d->output, &output);
	watch_lake(d, output.lake);
	if (output.state != d->output_state) {
		if (output.state == OUTPUT_DOWN)
			log_fields(LOG_LEVEL_WARNING, "output.down", LOG_FIELDS(LOG_TEXT("former_event", "outlet.down")),
			    "records wait in the spool: %s", output.error);
		else if (output.state == OUTPUT_UP)
			log_fields(LOG_LEVEL_INFO, "output.up", LOG_FIELDS(LOG_TEXT("kind", output.kind),
			    LOG_TEXT("former_event", "outlet.up")), "records are delivered");
		d->output_state = output.state;
	}
	if (d->registry != NULL) {
		struct registry_status registry;

		registry_status(d->registry, &registry);
		if (registry.state != d->registry_state) {
			if (registry.state == REGISTRY_AWAY || registry.state == REGISTRY_REFUSED)
				log_fields(registry.state == REGISTRY_AWAY ? LOG_LEVEL_WARNING : LOG_LEVEL_ERROR,
				    registry.state == REGISTRY_AWAY ? "registry.away" : "registry.refused",
				    LOG_FIELDS(LOG_TEXT("url", registry.url)), "%s", registry.error);
			else if (registry.state == REGISTRY_OK)
				log_fields(LOG_LEVEL_INFO, "registry.ok", LOG_FIELDS(LOG_TEXT("url", registry.url),
				    LOG_U64("ids", registry.known)), "schema ids are known");
			d->registry_state = registry.state;
		}
	}
	spool_stats(d->spool, &spool);
	watch_waits(d, &spool);
	if (spool.is_at_floor != d->was_at_floor) {
		if (spool.is_at_floor)
			log_fields(LOG_LEVEL_ERROR, "spool.disk_floor", LOG_FIELDS(LOG_TEXT("dir", d->config->spool.dir),
			    LOG_U64("free_bytes", spool.free_bytes), LOG_U64("floor_bytes", spool.floor_bytes)),
			    "the spool's disk is almost full: the spool does not grow; free some room there, or lower disk_free_min");
		else
			log_event(LOG_LEVEL_INFO, "spool.disk_floor_left", "the spool's disk has room again");
		d->was_at_floor = spool.is_at_floor;
	}
	if (spool.last_error != d->disk_error) {
		if (spool.last_error != 0)
			log_fields(LOG_LEVEL_ERROR, "spool.disk", LOG_FIELDS(LOG_TEXT("dir", d->config->spool.dir)),
			    "the spool's disk refuses writes: %s; records wait in memory", disk_error_text(spool.last_error));
		else
			log_event(LOG_LEVEL_INFO, "spool.disk_back", "the spool's disk accepts writes again");
		d->disk_error = spool.last_error;
	}
}
