# SPDX-License-Identifier: Apache-2.0
"""The commands: sluice-tune, sluice-sweep, sluice-lake."""
