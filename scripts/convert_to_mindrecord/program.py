"""How every program of this folder begins and ends."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import sys
from typing import Callable, NoReturn, Optional

from failure import OTHER, ConvertError
from progress import Log

ENDING = (signal.SIGINT, signal.SIGTERM)


def end_by_signal(number: int, frame: object) -> NoReturn:
    for one in ENDING:  # another one would disturb the cleaning up
        signal.signal(one, signal.SIG_IGN)
    raise SystemExit(128 + number)


def run(program: str, work: Callable[[list[str], Log], Optional[int]], argv: list[str]) -> int:
    """Do it, with one sentence and the right exit code for whatever ends it."""
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:  # as for a job in the background of a shell
            signal.signal(number, end_by_signal)
    log = Log(program)
    try:
        return work(argv, log) or 0
    except ConvertError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # whoever read what we print has enough, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        print(f"{program}: {error.strerror}: {error.filename}; nothing was published", file=sys.stderr)
        return OTHER
    except SystemExit as error:
        names = {128 + number: number.name for number in ENDING}
        if error.code in names:
            print(f"{program}: ended by {names[error.code]}; nothing was published", file=sys.stderr)
        return int(error.code or 0)


def leave(code: int) -> NoReturn:
    """A child that waits for a broken disk survives even SIGKILL; sys.exit would wait for it."""
    if multiprocessing.active_children():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
