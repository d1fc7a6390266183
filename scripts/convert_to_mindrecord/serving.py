"""A worker process's life: receive the number of a shard, write it, send what is to be said of it."""

from __future__ import annotations

import ctypes
import os
import signal
import time
import traceback
from multiprocessing.connection import Connection

from failure import DATA_UNUSABLE, OTHER, ConvertError, DiskFull
from shards import Job, PageTooSmall, Report, RowAtHand, write_shard
from space import is_disk_full

REPORT_EVERY_S = 0.3
PR_SET_PDEATHSIG = 1


def serve(connection: Connection, job: Job, at_hand: RowAtHand, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends us
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent()
    os.environ.setdefault("GLOG_v", "4")  # our own sentences say what MindSpore's warnings would
    news = [0, 0, 0]
    sent = time.monotonic()

    def send_news() -> None:
        nonlocal sent
        connection.send(("progress", *news))
        news[:] = [0, 0, 0]
        sent = time.monotonic()

    def report(tasks: int, rows: int, num_bytes: int) -> None:
        news[0] += tasks
        news[1] += rows
        news[2] += num_bytes
        if time.monotonic() - sent > REPORT_EVERY_S:
            leave_if_orphaned(parent)
            send_news()

    while True:
        while not connection.poll(2):
            leave_if_orphaned(parent)
        order = connection.recv()
        if order is None:
            return
        index, killers = order
        answer = attempt(job, index, report, at_hand, killers)
        send_news()
        connection.send(answer)


def end_with_parent() -> None:
    """Linux ends us when our parent is killed; elsewhere leave_if_orphaned() does, a little later."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
    except (AttributeError, OSError):
        return


def leave_if_orphaned(parent: int) -> None:
    if os.getppid() != parent:
        os._exit(OTHER)


def attempt(job: Job, index: int, report: Report, at_hand: RowAtHand, killers: dict) -> tuple:
    try:
        return ("done", index, write_shard(job, index, report, at_hand, killers))
    except PageTooSmall as error:
        return ("grow", error.row_bytes)
    except DiskFull as error:
        return ("full", str(error))
    except ConvertError as error:
        return ("failed", str(error), error.exit_code)
    except (ValueError, OSError) as error:
        if is_disk_full(error):
            return ("full", str(error))
        return ("failed", f"the plug-in {job.plugin.name} gave up: {error}", DATA_UNUSABLE)
    except Exception as error:  # a plug-in's own mistake: its author needs the traceback
        traceback.print_exc()
        return ("failed", f"the plug-in {job.plugin.name} failed: {type(error).__name__}: {error}", OTHER)
