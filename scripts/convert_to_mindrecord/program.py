"""How every program of this folder begins and ends."""

from __future__ import annotations

import errno
import signal
import sys
from typing import Callable, NoReturn, Optional

from failure import OTHER, ConvertError
from progress import Log


def end_by_signal(number: int, frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def run(program: str, work: Callable[[list[str], Log], Optional[int]], argv: list[str]) -> int:
    """Do it, with one sentence and the right exit code for whatever ends it."""
    signal.signal(signal.SIGTERM, end_by_signal)
    log = Log(program)
    try:
        return work(argv, log) or 0
    except ConvertError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        print(f"{program}: {error.strerror}: {error.filename}; nothing was published", file=sys.stderr)
        return OTHER
    except KeyboardInterrupt:
        print(f"{program}: interrupted; nothing was published", file=sys.stderr)
        return 130
