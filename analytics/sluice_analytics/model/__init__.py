# SPDX-License-Identifier: Apache-2.0
"""The model: records as tables of programs, tasks, runs, hosts and activity, the same Ibis on every engine."""
