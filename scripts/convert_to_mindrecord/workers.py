"""Deals shards to worker processes, and notices at once when one of them dies."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
import traceback
from multiprocessing.connection import Connection, wait
from typing import Any, Optional

from failure import DATA_UNUSABLE, OTHER, ConvertError
from progress import Progress
from shards import Job, PageTooSmall, write_shard

REPORT_EVERY_S = 0.3


def serve(connection: Connection, job: Job, parent: int) -> None:
    """A worker's life: receive the number of a shard, write it, send what is to be said of it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends us
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.environ.setdefault("GLOG_v", "3")  # our own sentences say what MindSpore's warnings would
    news = [0, 0]
    sent = time.monotonic()

    def report(tasks: int, rows: int) -> None:
        nonlocal sent
        news[0] += tasks
        news[1] += rows
        if time.monotonic() - sent > REPORT_EVERY_S:
            leave_if_orphaned(parent)
            connection.send(("progress", *news))
            news[:] = [0, 0]
            sent = time.monotonic()

    while True:
        while not connection.poll(2):
            leave_if_orphaned(parent)
        index = connection.recv()
        if index is None:
            return
        answer = attempt(job, index, report)
        connection.send(("progress", *news))
        news[:] = [0, 0]
        connection.send(answer)


def leave_if_orphaned(parent: int) -> None:
    if os.getppid() != parent:
        os._exit(OTHER)


def attempt(job: Job, index: int, report: Any) -> tuple:
    try:
        return ("done", index, write_shard(job, index, report))
    except PageTooSmall as error:
        return ("grow", error.row_bytes)
    except ConvertError as error:
        return ("failed", str(error), error.exit_code)
    except (ValueError, OSError) as error:
        return ("failed", f"the plug-in {job.plugin.name} gave up: {error}", DATA_UNUSABLE)
    except Exception as error:  # a plug-in's own mistake: its author needs the traceback
        traceback.print_exc()
        return ("failed", f"the plug-in {job.plugin.name} failed: {type(error).__name__}: {error}", OTHER)


class Worker:
    """One process and our end of its pipe."""

    def __init__(self, job: Job) -> None:
        context = multiprocessing.get_context("fork")  # inherits the plug-in with all it has read
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, job, os.getpid()), daemon=True)
        self.process.start()
        theirs.close()  # so that the death of the process is the end of the file here
        self.shard: Optional[int] = None

    def give(self, shard: Optional[int]) -> None:
        self.shard = shard
        self.connection.send(shard)

    def receive(self, job: Job) -> tuple:
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
        code = self.process.exitcode or 0
        how = (
            f"was ended by signal {-code} ({signal.Signals(-code).name})"
            if code < 0
            else f"exited with {code}"
        )
        shard = "before its first shard" if self.shard is None else f"while writing {job.names[self.shard]}"
        hint = "; out of memory? try fewer --mindrecord_workers" if code == -signal.SIGKILL else ""
        raise ConvertError(f"a worker process {how} {shard}{hint}; nothing was published")

    def end(self) -> None:
        if self.process.is_alive():
            self.process.terminate()
            self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.connection.close()


def write_all(job: Job, num_workers: int, progress: Progress) -> list[dict]:
    """The reports of all shards, in their order, whatever worker wrote them."""
    waiting = list(range(job.layout.num_shards))
    reports: dict[int, dict] = {}
    sys.stdout.flush()
    sys.stderr.flush()  # a forked child would print what is still in the buffers again
    workers: list[Worker] = []
    try:
        for _ in range(min(num_workers, len(waiting))):
            workers.append(Worker(job))
            workers[-1].give(waiting.pop(0))
        while len(reports) < job.layout.num_shards:
            by_connection = {worker.connection: worker for worker in workers if worker.shard is not None}
            for connection in wait(list(by_connection), timeout=REPORT_EVERY_S):
                worker = by_connection[connection]  # type: ignore[index]
                kind, *news = worker.receive(job)
                if kind == "progress":
                    progress.add(*news)
                elif kind == "done":
                    reports[news[0]] = news[1]
                    worker.give(waiting.pop(0) if waiting else None)
                elif kind == "grow":
                    raise PageTooSmall(news[0])
                else:
                    raise ConvertError(news[0], news[1])
            progress.show()
    finally:
        for worker in workers:
            worker.end()
    return [reports[index] for index in sorted(reports)]
