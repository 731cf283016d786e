# SPDX-License-Identifier: Apache-2.0
"""The commands: `sluice tune`, `sluice sweep`, `sluice lake`."""

import sys
from types import TracebackType

_others = sys.excepthook


def _without_a_traceback(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    """Ctrl-C while a command loads its libraries, before common.run() is there to take it, needs no explanation."""
    if not issubclass(kind, KeyboardInterrupt):
        _others(kind, error, where)


sys.excepthook = _without_a_traceback
