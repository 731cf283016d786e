# SPDX-License-Identifier: Apache-2.0
"""What is paid for and does nothing."""
