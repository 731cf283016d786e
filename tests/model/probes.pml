/*
 * SPDX-License-Identifier: Apache-2.0
 * A model of who reports the events of a process, and who records them, each once: the lease, the watchdog, hand-over
 * from one load of the probes to the next, the entries of processes and their keys, the ring, the commit to the spool,
 * and the agent, which is killed between any two of its steps. README.md maps the parts to functions of the sources,
 * and lists what is left out. model.py runs it.
 *
 * The sizes are macros:
 *
 *	LIVES		processes
 *	ADDRESSES	which they use one after another
 *	EXECS		the first so many of them may exec
 *	WORKERS		in the first so many a thread may exit before the last one
 *	SLOW		the first so many may be freed late
 *	THREADS		that others begin: each is a fork, at which the watchdog may expire
 *	KILLS		of the agent; each is followed by another agent
 *	STALLS		of it, or times without one, that are longer than the watchdog
 *	SUSPENDS	of the host
 *	LAYOUTS		1: one of the next agents may have another layout of the maps
 *	RING		events that the ring holds
 *	AT_ONCE		a program acts in the step in which it reads the lease
 *
 * With CYCLES the search is one for ENDS: but for passes that find nothing, no steps repeat for ever. A macro M_… is a
 * defect, which the property that is named beside it in mutants.tsv must reveal.
 */
#define LOADS (KILLS + 1)		/* each agent attaches its own */
#define SAME_KEY(i, j) ((i) == (j))	/* address and start: no two processes have the same */
#define SAME_ADDRESS(i, j) ((i) % ADDRESSES == (j) % ADDRESSES)
#ifdef M_KEY_WITHOUT_START
#define IS_KEY_OF(i, j) SAME_ADDRESS(i, j)
#else
#define IS_KEY_OF(i, j) SAME_KEY(i, j)
#endif
#ifdef M_FORGET_WITHOUT_START
#define IS_FORGOTTEN(i, j) SAME_ADDRESS(i, j)
#else
#define IS_FORGOTTEN(i, j) IS_KEY_OF(i, j)
#endif
#ifdef M_LEASE_WITHOUT_EPOCH
#define HAS_LEASE(load) (lease != 0)
#else
#define HAS_LEASE(load) (lease == epoch[load])
#endif

/* The properties. What the search prints of an assertion that fails has the name. With ONLY no other is checked. */
#ifdef ONLY
#define IS_CHECKED false
#else
#define IS_CHECKED true
#endif
hidden byte AT_MOST_ONCE = IS_CHECKED;	/* no event of a process is written to the ring, and no end recorded, twice */
hidden byte EXACTLY_ONCE = IS_CHECKED;	/* what was seen with the lease is recorded, or counted as lost once */
hidden byte IS_WATCHED = IS_CHECKED;		/* after a discovery each process has an entry, of the program that it runs */
hidden byte OWN_COUNTERS = IS_CHECKED;	/* an end has the counters of its own process and program */
hidden byte OWN_ENTRY = IS_CHECKED;		/* only the entry of a process that was recorded as ended is forgotten */
hidden byte IS_FINAL = IS_CHECKED;		/* an end is synthesized only of a process that was reaped */
hidden byte GAP_COVERS = IS_CHECKED;		/* times in which events were not reported are in a GAP record */
hidden byte SEES_AGAIN = IS_CHECKED;		/* an agent that runs has the lease in the end */
hidden byte IS_EMPTY = IS_CHECKED;		/* no entry remains of a process that was freed */
hidden byte WAS_STALLED = IS_CHECKED;		/* the watchdog takes the lease only from an agent that did not run for long */
hidden byte KEEPS_PINS = IS_CHECKED;		/* what outlives an agent outlives it for the next one, too */

#define CHECK(property, holds) assert((holds) || !property)

/* The kernel's processes. */
mtype = { UNBORN, ALIVE, DYING, REAPED, FREED };	/* DYING: its last thread exits, and then it is a zombie */
mtype kernel[LIVES] = UNBORN;
bit execs[LIVES];		/* self_exec_id: programs that it has begun */
bit is_begun[LIVES];		/* the hooks of its fork have run */
bit is_old[LIVES];		/* 5 s have passed since it was reaped */
bit is_in_exec[LIVES];		/* it is between the new self_exec_id and the end of its hooks */

/* struct proc: its entry in procs, that of the key of the process with this number. */
typedef entry {
	bit is_there;
	bit execs;		/* exec_id */
	bit has_end;		/* end_ns != 0 */
	bit is_reported;
	byte dead;		/* sums of its threads that exited: here how many */
	byte swept;		/* the last retake: 1: only its first pass has seen it; 2: no pass removes it any more; 0: else */
};
entry procs[LIVES];

/* .data.shared */
byte lease;
bit is_quiet;			/* quiet_since_ns != 0 */
bit is_heartbeat_old;		/* the heartbeat is older than the watchdog allows */
bit is_only_suspended;		/* though only since the host was suspended */
bit follow_all;

/* Loads of the programs: those of agent 0, 1, … */
byte epoch[LOADS];
byte retaker;			/* the one whose retake_ns is the number of the last retake */
byte attached;			/* a bit for each load */
byte under_way;			/* programs that have read the lease and are yet to act */
byte pinned;			/* of these, those whose links outlive their agent */

/* The ring. An event is the number of a process, plus LIVES if it is the end. */
byte ring[2 * LIVES];
byte producer, consumer;	/* positions */
byte ring_id;			/* of the maps; 0: there are none */

/* The spool: what the agent has committed. */
mtype = { UNKNOWN, KNOWN, OVER };	/* what the correlator has of a process */
mtype spooled[LIVES] = UNKNOWN;
bit spooled_gone[LIVES];
byte spooled_position, spooled_ring_id;
bit has_batch;
byte ends[LIVES];		/* END records */

/* The agent's memory. */
byte agents;			/* number of the present agent */
bit is_killed;
mtype known[LIVES] = UNKNOWN;
bit gone[LIVES];		/* the correlator has its last event */
byte new_ends[LIVES];		/* END records that are not committed */
bit found[LIVES];		/* in the list of a discovery */
bit stale[LIVES];		/* in the list of a sweep */
bit stale_execs[LIVES];
bit seen[LIVES];		/* by the present pass */
bit forget[LIVES];		/* a->forget */
byte position;			/* in the ring */
byte is_gap_written;		/* a GAP record: 1: in memory, 2: committed */
bit is_restored;
mtype = { FRESH, RESUMED, WERE_QUIET, WERE_OTHER };
mtype origin;

/* What only the properties look at. */
bit is_end_sent[LIVES];		/* its last event was written to the ring */
bit is_exec_sent[LIVES];
bit is_end_lost[LIVES];		/* it was counted as lost, since the ring was full */
bit was_entered[LIVES];		/* it has had an entry */
bit may_lack_end[LIVES];	/* no load saw it end, or it ended during a retake */
bit is_uncovered;		/* something was not reported since what the last GAP record covers */
bit is_uncovered_since;		/* something was not reported since the one that is not committed */

inline missed() {
	if
	:: has_batch && is_gap_written == 1 -> is_uncovered_since = 1
	:: has_batch && is_gap_written != 1 -> is_uncovered = 1
	:: else
	fi
}

/* Sets at to the entry that a hook finds for process i; LIVES: none. */
inline lookup(i, at) {
	at = 0;
	do
	:: at < LIVES && !(procs[at].is_there && IS_KEY_OF(i, at)) -> at++
	:: else -> break
	od
}

/* Writes an event. is_full: it was lost. */
inline submit(event, is_full) {
	if
	:: producer - consumer < RING ->
		ring[producer] = event;
		producer++;
		is_full = 0
	:: else -> is_full = 1
	fi
}

inline enter(i) {
	lookup(i, at);
	if
	:: at == LIVES ->
		procs[i].is_there = 1;
		procs[i].execs = execs[i];
		procs[i].has_end = 0;
		procs[i].is_reported = 1;
		procs[i].dead = 0;
		procs[i].swept = 0;
		was_entered[i] = 1
	:: else		/* -EEXIST */
	fi
}

/* entry.h, exec.h, exit.h, free.bpf.c: what the program of one load does at an event of process i. */
inline on_exec(i) {
	lookup(i, at);
	if
	:: at < LIVES && procs[at].execs != execs[i] ->
		procs[at].execs = execs[i];
		procs[at].is_reported = 1;
		CHECK(AT_MOST_ONCE, !is_exec_sent[i]);
		is_exec_sent[i] = 1;
		submit(i, is_full)
	:: else		/* another load was first, or it has no entry yet */
	fi;
	at = 0;
	is_full = 0
}

/* program_catch_up(): the program that ends is the one that the process runs. A load knows its own retake. */
inline catch_up(i) {
#ifndef M_PROGRAM_NOT_COMPARED
	if
	:: load == retaker && procs[at].swept == 1 -> procs[at].execs = execs[i]
	:: else
	fi
#else
	skip
#endif
}

inline on_exit(i) {
	lookup(i, at);
	if
	:: at < LIVES -> procs[at].has_end = 1;
		catch_up(i)
	:: else
	fi;
	at = 0
}

inline on_free(i) {
	lookup(i, at);
	if
	:: at < LIVES && procs[at].is_reported ->
		catch_up(i);
		CHECK(OWN_COUNTERS, at == i && procs[at].execs == execs[i] && procs[at].dead <= 1);
		CHECK(AT_MOST_ONCE, !is_end_sent[i]);
		is_end_sent[i] = 1;
		submit(at + LIVES, is_full);
		is_end_lost[i] = is_full;
		procs[at].is_there = 0
	:: at < LIVES && !procs[at].is_reported ->
		procs[at].is_there = 0;
		may_lack_end[i] = 1
	:: at == LIVES && !was_entered[i] -> may_lack_end[i] = 1
	:: else
	fi;
	at = 0;
	is_full = 0
}

/* The watchdog in fork_seen(). */
inline expire() {
	CHECK(WAS_STALLED, !is_only_suspended);
	is_quiet = 1;
	lease = 0
}

/*
 * At an event the programs of all attached loads are called, one after another. Each reads the lease when its turn
 * comes, and acts later: load is the next one that will act; LOADS: none.
 */
#define ACTS(load) ((attached >> load & 1) && HAS_LEASE(load))
mtype = { FORK, EXEC, EXIT, FREE };

/* Lets the next load read the lease. */
inline next_load(i, kind) {
	do
	:: load < LOADS && !ACTS(load) -> load++
	:: else -> break
	od;
	if
	:: load < LOADS && kind == FORK -> under_way++; is_expired = is_heartbeat_old
	:: load < LOADS && kind != FORK -> under_way++; is_handled = 1
	:: load == LOADS && !is_handled && i < LIVES ->
		may_lack_end[i] = may_lack_end[i] || kind == EXIT || kind == FREE;
		missed()
	:: else
	fi
}

/* The program of the load that has read the lease acts, and the next one reads it. */
inline act(i, kind) {
	under_way--;
	if
	:: kind == FORK && is_expired -> expire()
	:: kind == FORK && !is_expired && i < LIVES && follow_all ->
		is_handled = 1;
		enter(i);
		at = 0
	:: kind == EXEC -> on_exec(i)
	:: kind == EXIT -> on_exit(i)
	:: kind == FREE -> on_free(i)
	:: else
	fi;
	load++;
	is_expired = 0;
	next_load(i, kind)
}

/* Calls the programs at an event of process i; LIVES: of a thread, or of a process that the model does not have. */
inline hooks(i, kind) {
	d_step {
		load = 0;
		is_handled = 0;
		next_load(i, kind);
#ifdef AT_ONCE
		do
		:: load < LOADS -> act(i, kind)
		:: else -> break
		od
#endif
	};
#ifndef AT_ONCE
	do
	:: d_step { load < LOADS -> act(i, kind) }
	:: load == LOADS -> break
	od;
#endif
	load = 0
}

/* A thread that is not the last one exits. The programs of all loads run within a microsecond here: see README.md. */
inline thread_exits(i) {
	d_step {
		load = 0;
		do
		:: load < LOADS && ACTS(load) ->
			lookup(i, at);
			if
			:: at < LIVES -> procs[at].dead++
			:: else
			fi;
			load++
		:: load < LOADS && !ACTS(load) -> load++
		:: load == LOADS -> break
		od;
		at = 0
	}
}

proctype process(byte me) {
	byte load, at;
	bit is_handled, is_expired, is_full;

	/* The kernel uses an address again once the process before is freed. */
	if
	:: me < ADDRESSES -> kernel[me] = ALIVE
	:: atomic { me >= ADDRESSES && kernel[me - ADDRESSES] == FREED -> kernel[me] = ALIVE }
	fi;
	hooks(me, FORK);
	is_begun[me] = 1;
	if
	:: d_step { me < EXECS -> execs[me] = 1; is_in_exec[me] = 1 };
		hooks(me, EXEC);
		is_in_exec[me] = 0
	:: true
	fi;
	if
	:: me < WORKERS -> thread_exits(me)
	:: true
	fi;
	kernel[me] = DYING;
	hooks(me, EXIT);
	kernel[me] = REAPED;
	if
	:: me < SLOW -> is_old[me] = 1
	:: true
	fi;
	hooks(me, FREE);
	d_step {
		kernel[me] = FREED;
		is_old[me] = 0
	}
}

/* Time passes, the host is suspended, threads begin, and somebody kills the agent. */
proctype host() {
	byte load, at, stalls, suspends, threads, kills, me = LIVES;
	bit is_handled, is_expired, is_full;

	do
	:: d_step { stalls < STALLS && !is_heartbeat_old ->
			stalls++;
			is_heartbeat_old = 1;
			is_only_suspended = 0
		}
	:: d_step { suspends < SUSPENDS && !is_heartbeat_old ->
			suspends++;
#ifdef M_WATCHDOG_COUNTS_SUSPEND
			is_heartbeat_old = 1;
			is_only_suspended = 1
#else
			skip
#endif
		}
	:: threads < THREADS -> threads++;
		hooks(me, FORK)
	:: d_step { kills < KILLS && !is_killed -> kills++; is_killed = 1 }
	:: break
	od
}

/* The spool has the batch, and only then the kernel gets the ring's space. */
inline commit() {
#ifdef M_RELEASE_BEFORE_COMMIT
	consumer = position;
#endif
	d_step {
		i = 0;
		do
		:: i < LIVES ->
			spooled[i] = known[i];
			spooled_gone[i] = gone[i];
			ends[i] = ends[i] + new_ends[i];
			CHECK(AT_MOST_ONCE, ends[i] <= 1);
			new_ends[i] = 0;
			i++
		:: else -> break
		od;
		i = 0;
		spooled_position = position;
		spooled_ring_id = ring_id;
		has_batch = 1;
		if
		:: is_gap_written -> is_uncovered = is_uncovered_since; is_uncovered_since = 0; is_gap_written = 2
		:: else
		fi
	};
	if
	:: d_step { is_gap_written -> is_quiet = 0; is_gap_written = 0 };
		consumer = position
	:: d_step { !is_gap_written -> consumer = position }
	fi
}

/* agent_drain_all(): what is read is in memory alone until the commit, so that it is one step. */
inline drain() {
	d_step {
		do
		:: position < producer ->
			i = ring[position] % LIVES;
			if
			:: ring[position] < LIVES && known[i] == UNKNOWN -> known[i] = KNOWN
			:: ring[position] >= LIVES -> take_end(i); seen[i] = 1
			:: else
			fi;
			position++
		:: else -> break
		od;
		i = 0
	};
	commit()
}

/* correlator_state() with the last event of a process. */
inline take_end(i) {
	if
	:: known[i] != OVER -> known[i] = OVER; new_ends[i]++
	:: else
	fi;
	gone[i] = 1
}

#define IS_IN_TASK_LIST(i) (kernel[i] == ALIVE || kernel[i] == DYING)

/* entries_retake(): the first pass, and the removal of what it did not see. */
inline entries_retake() {
	d_step {
		under_way == 0;
		retaker = agents;
		i = 0;
		do
		:: i < LIVES -> procs[i].swept = 0; i++
		:: else -> break
		od;
		i = 0
	};
	do
	:: d_step { i < LIVES -> entry_retake(1); i++ }
	:: i == LIVES -> break
	od;
	i = 0;
	do
	:: d_step { i < LIVES ->
#ifndef M_RETAKE_KEEPS_ENDED
			if
#ifdef M_RETAKE_REMOVES_ALL_ENDED
			:: procs[i].is_there && procs[i].swept == 0 -> procs[i].is_there = 0
#else
			:: procs[i].is_there && procs[i].swept == 0 && !procs[i].has_end -> procs[i].is_there = 0
#endif
			:: else
			fi;
#endif
			i++
		}
	:: i == LIVES -> break
	od;
	i = 0
}

/* entry_retake() */
inline entry_retake(number) {
	if
	:: procs[i].is_there && IS_IN_TASK_LIST(i) ->
		procs[i].swept = (number == 1 && procs[i].has_end -> 2 : number);
		if
		:: kernel[i] == DYING -> procs[i].has_end = 1
		:: else
		fi;
		if
		:: procs[i].execs != execs[i] -> procs[i].execs = execs[i]; procs[i].is_reported = 0
		:: else
		fi
	:: else
	fi
}

/* The second pass, with the lease: what changed between the first pass and the lease. */
inline entries_retake_again() {
#ifdef M_RETAKE_IN_ONE_PASS
	skip
#else
	under_way == 0;
	do
	:: d_step { i < LIVES -> entry_retake(2); i++ }
	:: i == LIVES -> break
	od;
	i = 0;
	do
	:: d_step { i < LIVES ->
			if
			:: procs[i].is_there && procs[i].swept == 1 -> procs[i].is_there = 0; may_lack_end[i] = 1
			:: else
			fi;
			i++
		}
	:: i == LIVES -> break
	od;
	i = 0
#endif
}

/* lease_take(): is_blind: the load before does not have the lease any more. */
inline lease_take(from) {
	d_step { is_heartbeat_old = 0; is_only_suspended = 0 };
	d_step {
		if
#ifdef M_LEASE_NOT_COMPARED
		:: lease = epoch[agents]
#else
		:: lease == from -> lease = epoch[agents]
		:: lease != from -> is_blind = 1
#endif
		fi
	}
}

/* host_discover(), host_discover_missed(): one pass that enters and judges, then what it found and no event brought. */
inline discover() {
	under_way == 0;
	do
	:: d_step { i < LIVES ->
			if
			:: kernel[i] == ALIVE ->
				lookup(i, at);
				if
				:: at == LIVES ->
					enter(i);
					found[i] = 1
				:: at < LIVES && !procs[at].is_reported && !procs[at].has_end ->
					procs[at].is_reported = 1;
					found[i] = 1
				:: at < LIVES && procs[at].is_reported && known[i] == UNKNOWN ->
					found[i] = 1
				:: else
				fi;
				at = 0
			:: else
			fi;
			i++
		}
	:: i == LIVES -> break
	od;
	i = 0;
	drain();
	d_step {
		do
		:: i < LIVES ->
			if
			:: found[i] && known[i] == UNKNOWN -> known[i] = KNOWN
			:: else
			fi;
			CHECK(IS_WATCHED, lease != epoch[agents] || kernel[i] != ALIVE || !is_begun[i] ||
			    (procs[i].is_there && procs[i].is_reported && (procs[i].execs == execs[i] || is_in_exec[i])));
			found[i] = 0;
			i++
		:: else -> break
		od;
		i = 0
	};
	commit()
}

#ifdef M_SWEEP_SLOW
#define IS_STALE(i) (procs[i].is_there && procs[i].has_end)
#define IS_SWEPT(i) stale[i]
#else
#define IS_STALE(i) (procs[i].is_there && procs[i].has_end && (is_old[i] || kernel[i] == FREED))
#define IS_SWEPT(i) (stale[i] && !seen[i])
#endif
#ifdef M_FORGOTTEN_WHILE_SWEPT
#define CAN_BE_FORGOTTEN(i) (known[i] == OVER && gone[i])
#else
#define CAN_BE_FORGOTTEN(i) (known[i] == OVER && gone[i] && !seen[i])
#endif
#define UNUSED_EPOCH (4 * (agents + 1))	/* no forgotten link has it */

/* agent_snapshot() */
inline pass() {
	drain();
	d_step {
		do
		:: i < LIVES -> seen[i] = 0; i++
		:: else -> break
		od;
		i = 0
	};
	do
	:: d_step { i < LIVES ->
			if
			:: IS_IN_TASK_LIST(i) && procs[i].is_there && procs[i].is_reported ->
				seen[i] = 1;
				if
				:: kernel[i] == DYING && procs[i].has_end && known[i] != OVER ->	/* a zombie whose counters are final */
					known[i] = OVER;
					new_ends[i]++
				:: else
				fi
			:: else
			fi;
			i++
		}
	:: i == LIVES -> break
	od;
	i = 0;
	do		/* on_stale() */
	:: d_step { i < LIVES ->
			if
			:: IS_STALE(i) && procs[i].is_reported -> stale[i] = 1; stale_execs[i] = procs[i].execs
			:: IS_STALE(i) && !procs[i].is_reported -> procs[i].is_there = 0; may_lack_end[i] = 1
			:: else
			fi;
			i++
		}
	:: i == LIVES -> break
	od;
	i = 0;
	d_step {
		do
		:: i < LIVES ->
			if
			:: IS_SWEPT(i) ->
				CHECK(IS_FINAL, is_old[i] || kernel[i] == FREED);
				CHECK(OWN_COUNTERS, stale_execs[i] == execs[i]);
				take_end(i);
				seen[i] = 1;
				forget[i] = 1
			:: else
			fi;
			stale[i] = 0;
			stale_execs[i] = 0;
			i++
		:: else -> break
		od;
		i = 0
	};
	drain();
	do		/* correlator_snapshot_end(): forgets what ended 1.5 s ago, and what no pass has seen for 15 s */
	:: atomic { i < LIVES ->
			if
			:: CAN_BE_FORGOTTEN(i) -> known[i] = UNKNOWN; gone[i] = 0
			:: CAN_BE_FORGOTTEN(i) -> skip
			:: known[i] == KNOWN && !seen[i] && !procs[i].is_there && kernel[i] == FREED -> known[i] = UNKNOWN
			:: else
			fi;
			i++
		}
	:: i == LIVES -> break
	od;
	i = 0;
	commit();
	do		/* probes_forget() */
	:: d_step { i < LIVES ->
			at = 0;
			do
			:: forget[i] && at < LIVES ->
				if
				:: procs[at].is_there && IS_FORGOTTEN(i, at) ->
					CHECK(OWN_ENTRY, at == i);
					procs[at].is_there = 0
				:: else
				fi;
				at++
			:: else -> break
			od;
			at = 0;
			forget[i] = 0;
			i++
		}
	:: i == LIVES -> break
	od;
	i = 0;
	d_step {
		do
		:: i < LIVES -> seen[i] = 0; i++
		:: else -> break
		od;
		i = 0
	}
}

#define IS_NEW (origin == FRESH || origin == WERE_OTHER)

/* The watchdog has expired, or an agent was killed between a retake and the commit of its GAP. */
#ifdef M_QUIET_IS_NOT_KEPT
#define WAS_BLIND (from == 0 && !IS_NEW)
#else
#define WAS_BLIND ((from == 0 && !IS_NEW) || is_quiet)
#endif

/* probes_open(), from the lock of the pins to the end of probes_pins_take_over(). */
inline open_probes() {
	if
	:: d_step { ring_id != 0 && layouts < LAYOUTS && under_way == 0 -> layouts++; other_layout() }
	:: ring_id != 0 && under_way == 0 -> skip
	:: ring_id == 0 -> d_step { origin = FRESH; epoch[agents] = 1; ring_id = 1 }
	fi;
	d_step {		/* probes_pins_find() */
		if
		:: origin == RESUMED && lease != 0 ->
			epoch[agents] = lease + 1;
#ifndef M_OTHER_LINKS_STAY
			at = 0;
			do
			:: at < LOADS ->
				if
				:: at != agents && epoch[at] != lease -> attached = attached & ~(1 << at); pinned = pinned & ~(1 << at)
				:: else
				fi;
				at++
			:: else -> break
			od;
			at = 0
#endif
		:: origin == RESUMED && lease == 0 ->
			origin = WERE_QUIET;
			epoch[agents] = UNUSED_EPOCH;
			attached = 0;
			pinned = 0
		:: else
		fi
	};
	attached = attached | (1 << agents);
	follow_all = (origin == RESUMED || origin == WERE_QUIET);
	d_step {		/* probes_pins_take_over() */
		do
		:: at < LOADS ->
			CHECK(KEEPS_PINS, at == agents || !(pinned >> at & 1) || epoch[at] != epoch[agents]);
			at++
		:: else -> break
		od;
		at = 0;
		pinned = pinned | (1 << agents);
		from = lease;
		is_blind = WAS_BLIND
	};
	if
#ifdef M_LEASE_BEFORE_RETAKE
	:: lease_take(lease)
#else
	:: !is_blind -> lease_take(from)
	:: is_blind
#endif
	fi;
	if
	:: is_blind -> origin = WERE_QUIET; retake()
	:: !is_blind
	fi;
	d_step { from = 0; is_blind = 0; attached = 1 << agents; pinned = 1 << agents }
}

/* Nothing of another layout is used: its maps are removed with what their ring holds. */
inline other_layout() {
	origin = WERE_OTHER;
	epoch[agents] = UNUSED_EPOCH;
	ring_id++;
	i = 0;
	do
	:: i < LIVES ->
		if
		:: kernel[i] != UNBORN && kernel[i] != ALIVE -> may_lack_end[i] = 1
		:: else
		fi;
		procs[i].is_there = 0;
		was_entered[i] = 0;
		i++
	:: else -> break
	od;
	i = 0;
	producer = 0;
	consumer = 0;
	lease = 0;
	is_quiet = 0;
	is_heartbeat_old = 0;
	is_only_suspended = 0;
	attached = 0;
	pinned = 0;
	missed()
}

/* probes_retake() */
inline retake() {
	d_step { lease = 0; is_quiet = 1 };
	entries_retake();
#ifndef M_RETAKE_WITHOUT_LEASE
	lease_take(0);
#endif
	entries_retake_again()
}

/* write_first_gap() */
inline first_gap() {
	d_step {
		if
		:: has_batch && (!is_restored || origin == WERE_QUIET) -> is_gap_written = 1
		:: else
		fi
	}
}

/* agent_open_host(), after probes_open() */
inline open_host() {
	d_step {
		position = consumer;
		is_restored = (origin == RESUMED || origin == WERE_QUIET);
		if
		:: spooled_ring_id == ring_id && spooled_position > position -> position = spooled_position
		:: spooled_ring_id == ring_id && spooled_position < position -> is_restored = 0	/* unspooled_bytes */
#ifndef M_RESTORED_FROM_ANOTHER_RING
		:: spooled_ring_id != ring_id -> is_restored = 0
#endif
		:: else
		fi;
		i = 0;
		do
		:: i < LIVES && is_restored -> known[i] = spooled[i]; gone[i] = spooled_gone[i]; i++
		:: else -> break
		od;
		i = 0
	};
	follow_all = 1;
#ifdef M_GAP_AFTER_DISCOVERY
	drain();
	discover();
	first_gap();
#else
	first_gap();
	drain();
	discover();
#endif
	commit()
}

/* see_again() */
inline see_again() {
	drain();
	retake();
	discover();
	is_gap_written = 1;
	commit()
}

/* What is in memory is gone, and programs whose links are not pinned are detached. */
inline die() {
	i = 0;
	do
	:: i < LIVES ->
		known[i] = UNKNOWN;
		gone[i] = 0;
		new_ends[i] = 0;
		found[i] = 0;
		stale[i] = 0;
		stale_execs[i] = 0;
		seen[i] = 0;
		forget[i] = 0;
		i++
	:: else -> break
	od;
	i = 0;
	at = 0;
	from = 0;
	is_blind = 0;
	position = 0;
	is_gap_written = 0;
	is_uncovered = is_uncovered || is_uncovered_since;
	is_uncovered_since = 0;
	is_restored = 0;
	attached = pinned;
	agents++;
	is_killed = 0
}

/* There is something for a pass to do. */
#define HAS_ENDED(i) ((IS_STALE(i) && !(IS_IN_TASK_LIST(i))) || (kernel[i] == DYING && procs[i].is_there && \
    procs[i].has_end && procs[i].is_reported && known[i] != OVER) || (known[i] == OVER && gone[i]) || \
    (known[i] == KNOWN && !procs[i].is_there && kernel[i] == FREED))
#if LIVES == 1
#define HAS_WORK HAS_ENDED(0)
#elif LIVES == 2
#define HAS_WORK (HAS_ENDED(0) || HAS_ENDED(1))
#else
#define HAS_WORK (HAS_ENDED(0) || HAS_ENDED(1) || HAS_ENDED(2))
#endif

proctype agent() {
	byte i, at, layouts, from;
	bit is_blind;

	do
	:: {
			d_step { origin = RESUMED };
			open_probes();
			open_host();
end_idle:		do
			:: position < producer -> drain()
			:: HAS_WORK ->
progress:			pass()
			:: lease == epoch[agents] && is_heartbeat_old ->	/* probes_heartbeat(): first it compares */
				d_step { is_heartbeat_old = 0; is_only_suspended = 0 }
#ifndef M_BLIND
			:: lease != epoch[agents] -> see_again()
#endif
			od
		} unless {
			is_killed;
			d_step { die() }
		}
	od
}

init {
	byte n;

#ifdef ONLY
	ONLY = true;
#endif
	atomic {
		do
		:: n < LIVES -> run process(n); n++
		:: else -> break
		od;
		n = 0;
		run host();
		run agent()
	}
	timeout;	/* all processes are freed, and the agent has nothing to do */
	d_step {
		do
		:: n < LIVES ->
			CHECK(EXACTLY_ONCE, ends[n] == 1 || is_end_lost[n] || may_lack_end[n]);
			CHECK(IS_EMPTY, !procs[n].is_there);
			n++
		:: else -> break
		od;
		n = 0;
		CHECK(GAP_COVERS, !is_uncovered);
		CHECK(SEES_AGAIN, lease == epoch[agents])
	}
}
