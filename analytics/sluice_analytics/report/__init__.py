# SPDX-License-Identifier: Apache-2.0
"""Presentation: answers as tables, JSON, CSV and one HTML page; emit/ has them as configuration for an engine."""
