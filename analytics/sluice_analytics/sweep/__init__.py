# SPDX-License-Identifier: Apache-2.0
"""The question of what is paid for and does nothing."""
