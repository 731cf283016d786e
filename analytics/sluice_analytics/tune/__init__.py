# SPDX-License-Identifier: Apache-2.0
"""Questions about runs: why one was slow or expensive, and what would be right."""
