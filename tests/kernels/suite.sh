#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs in a guest of dev/kernels, in the tree: the truth suite, the filter of rules, then a host-wide agent that is
# killed under load and goes on. From memory, since exec through 9p takes 40 ms.
set -euo pipefail
tree=${SLUICE_TREE:?is set by dev/kernels}
here=/dev/shm/suite

mkdir "$here"
cp "$tree/build/release/sluice" "$tree/build/release/tests/integration/"{truth,filter_driver} "$here"
cp -R "$tree/tests/integration" "$here/tests"
cp "$tree/tests/skips.tsv" "$here"
cd "$here"

uname -sr
./sluice doctor || true # for the reader: what this kernel cannot tell
# An emulated exit takes milliseconds: where nobody waits for a child, its own figure is that much short.
"$tree/build/venv/bin/python" tests/truth_check.py --tolerance-ms 50 --sluice "$here/sluice" --truth "$here/truth"
SWAPS=20 FILTER_DRIVER="$here/filter_driver" "$tree/build/venv/bin/python" tests/test_filter.py ${FILTER_TESTS:-}
exec env SLUICE="$here/sluice" TMPDIR="$here" KILLS=2 LOAD_RATE=30 "$tree/build/venv/bin/python" tests/test_agent_restart.py \
	Restart.test_kill_9_under_load_loses_and_repeats_nothing Restart.test_what_ran_already_is_found_once
