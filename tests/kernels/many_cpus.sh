#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs in a guest with many CPUs (CPUS=16 dev/kernels run VERSION this): all of them start and end programs at once
# (many_cpus.py). The machine below has fewer: this shows what is right, and who waits for whom, not how fast it is.
set -euo pipefail
tree=${SLUICE_TREE:?is set by dev/kernels}
build=${SLUICE_BUILD:?is set by dev/kernels}

# exec through 9p takes 40 ms
cp "$build/sluice" "$build/tests/kernels/many_cpus" "$build/tests/bench/bench-cpus" /dev/shm
cd /dev/shm
export TMPDIR=/dev/shm PYTHONDONTWRITEBYTECODE=1
uname -sr
python3 "$tree/tests/kernels/many_cpus.py" ./sluice ./many_cpus ./bench-cpus 40
