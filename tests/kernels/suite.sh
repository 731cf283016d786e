#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs in a guest of dev/kernels: what can tell one kernel from another. From memory, since exec through 9p takes 40 ms.
# SUITE=short is what ./dev/test has time for: what the verifier counts, the system calls that a run has left, the truth of
# all figures, with fentry and without, both books of the kernel over a small load, one test of the filter, one kill of the
# agent. SUITE=whole is all of these whole, in each arm, the agent's processes that read files, and the other tests of
# tests/integration that look at what a kernel may do in another way. Left out is what needs a server, engine,
# container or second machine: it says nothing of the kernel that these do not, and starts JVMs, which takes minutes here.
# So are findings and placement, which want the controllers of a host that systemd has set up; run_ending and agent_forks,
# whose slow programs 5.10 does not load; max_processes, which 7.2 does not pass: all are reported there, and those beyond the
# limit are counted as lost nevertheless; and what is about the agent's own answers: stop, settle, terminals, users, privacy,
# power cuts.
set -euo pipefail
tree=${SLUICE_TREE:?is set by dev/kernels}
build=${SLUICE_BUILD:?is set by dev/kernels}
suite=${SUITE:?is set by dev/kernels}
here=/dev/shm/suite
failed=()

# The tree as it is, but for the tests and the build, which are copied.
mkdir -p "$here/build" "$here/tests"
ln -s "$tree"/{LICENSE,config,docs,examples,ops,schemas,src} "$here"
cp -R "$tree/tests/integration" "$tree/tests/skips.tsv" "$here/tests"
mkdir -p "$here/build/release/tests/integration"
cp "$build/sluice" "$here/build/release"
cp "$build/tests/integration/"{truth,filter_driver,core_types_alike,blocked_read} "$here/build/release/tests/integration"
[ "$(uname -m)" != x86_64 ] || cp "$build/tests/integration/inject_call" "$here/build/release/tests/integration"
cd "$here/tests/integration"
unset SLUICE_BUILD
export TMPDIR=$here PYTHONDONTWRITEBYTECODE=1
hosts=$(mktemp) # sudo asks for the machine's name
{ cat /etc/hosts && echo "127.0.0.1 $(hostname)"; } >"$hosts"
mount --bind "$hosts" /etc/hosts

# check NAME ARGUMENT…: one file of tests, and what it took.
check() {
	local begin=$SECONDS status=0
	"${SUITE_PYTHON:-$tree/build/venv/bin/python}" "$@" || status=$?
	echo "== $*: status $status, $((SECONDS - begin)) s"
	[ "$status" = 0 ] || failed+=("$*")
}

uname -sr
SLUICE_BUILD=$build check "$tree/tests/kernels/test_verifier.py" Running
check test_core_types.py

PATIENCE=4 check test_run_confined.py Processes.test_command_has_what_it_had Injected

# An emulated exit takes milliseconds: where no process waits for a child, its own figure is that much short.
slow=(--tolerance-ms 50)
export SWAPS=20 LOAD_RATE=30 EMULATED=1 PATIENCE=4
if [ "$suite" = short ]; then
	export KILLS=1 BOOKS_ROUNDS=4
	check truth_check.py "${slow[@]}"
	check test_books.py Books.test_each_process_of_a_run
	check test_filter.py Filter.test_each_condition
	check test_agent_restart.py Restart.test_kill_9_under_load_loses_and_repeats_nothing
else
	# Another user's process at which ps hangs: here no other user is.
	modprobe fuse
	mount -t fusectl fusectl /sys/fs/fuse/connections
	OWN_HOST=1 check test_reader.py
	check test_agent_confined.py
	"$here/build/release/sluice" doctor || true # for the reader: what this kernel cannot tell
	cp "$build/tests/integration/"{sluice_last_word_never,sluice_other_comment,sluice_more_state,sluice_other_meaning,probes_switch} "$here/build/release/tests/integration"
	export KILLS=5 BOOKS_ROUNDS=12
	check truth_check.py "${slow[@]}"
	check truth_check.py "${slow[@]}" --agent
	check truth_check.py "${slow[@]}" --agent --kills 2
	# From 7.0 the kernel may skip an exit: only the program that this arm takes away makes up for that.
	[ "$(uname -r | cut -d. -f1)" -ge 7 ] || check truth_check.py "${slow[@]}" --made-up
	check test_agent_sight.py Lock Sight.test_a_stall_longer_than_the_watchdog Sight.test_a_frozen_agent
	modprobe loop
	for test in books filter agent_restart namespaces agent_opens run_reused run_crash run_environment run_exit run_paths run_storm run_survivors run_waits; do
		check "test_$test.py"
	done
fi
# Where functions are hooked: the truth again without, as on a kernel that refuses that. Last, since it holds for all.
if "$here/build/release/sluice" doctor | grep -E ' f(entry|exit)/' >/dev/null; then
	echo 0 >/proc/sys/kernel/ftrace_enabled
	! "$here/build/release/sluice" doctor | grep -E ' f(entry|exit)/' || failed+=("doctor with kernel.ftrace_enabled=0")
	check truth_check.py "${slow[@]}"
fi
[ ${#failed[@]} = 0 ] || {
	printf 'failed: %s\n' "${failed[@]}"
	exit 1
}
