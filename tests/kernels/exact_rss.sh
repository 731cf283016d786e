#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs in a guest with many CPUs (CPUS=66 dev/kernels run VERSION this; from 6.2 on each keeps a part of the counters).
set -euo pipefail
tree=${SLUICE_TREE:?is set by dev/kernels}
build=${SLUICE_BUILD:?is set by dev/kernels}

cp "$build/sluice" "$build/tests/kernels/exact_rss" /dev/shm
cd /dev/shm
export TMPDIR=/dev/shm PYTHONDONTWRITEBYTECODE=1
uname -sr
python3 "$tree/tests/kernels/exact_rss.py" ./sluice ./exact_rss
