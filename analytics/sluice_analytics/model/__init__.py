# SPDX-License-Identifier: Apache-2.0
"""Records made into tables of programs, tasks, runs, hosts and activity: Ibis expressions, the same on every engine."""
