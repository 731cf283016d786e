# SPDX-License-Identifier: Apache-2.0
"""The errors that a command prints."""


class UserError(Exception):
    """An error that the user can fix: printed as one sentence, exit status 2.

    Attributes:
        message: what is wrong, naming the file, option or value.
        hint: what to do about it; may be empty.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message + (f"; {hint}" if hint else ""))
        self.message = message
        self.hint = hint


class NotFound(UserError):
    """What was asked for is not in the lake: exit status 1, the answer is no."""
