# SPDX-License-Identifier: Apache-2.0
"""Why a run was slow or expensive, and what would be right."""
