# SPDX-License-Identifier: Apache-2.0
"""What ran, what it used and what did nothing: answers from the lake that sluice writes."""

__version__ = "0.1.0"
