#compdef sluice
# SPDX-License-Identifier: Apache-2.0
# MADE
# Completion of sluice for zsh: of its commands and options, and of what they take.

# TABLE
_sluice "$@"
