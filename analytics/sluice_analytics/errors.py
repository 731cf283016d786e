# SPDX-License-Identifier: Apache-2.0
"""What a user is told when something cannot be done."""


class UserError(Exception):
    """A mistake or a lack that the user can mend: printed as one sentence, exit status 2.

    Attributes:
        message: what is wrong, naming the file, option or value.
        mend: what to do about it; may be empty.
    """

    def __init__(self, message: str, mend: str = "") -> None:
        super().__init__(message + (f"; {mend}" if mend else ""))
        self.message = message
        self.mend = mend


class NotFound(UserError):
    """What was asked for is not in the lake: exit status 1, the answer is no."""
