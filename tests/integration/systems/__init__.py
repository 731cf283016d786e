# SPDX-License-Identifier: Apache-2.0
"""Real schedulers and container runtimes for the tests: each started in a folder of its own, and gone at the end."""
