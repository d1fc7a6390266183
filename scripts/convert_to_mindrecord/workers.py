"""Deals shards to worker processes, and notices at once when one of them dies."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from multiprocessing.connection import wait
from typing import Any, Optional

from failure import ConvertError, DiskFull
from progress import Progress
from serving import REPORT_EVERY_S, serve
from shards import Job, PageTooSmall, RowAtHand

MOST_KILLERS = 20  # images that end their worker; more, and it is not the images
Killers = dict[tuple[int, int], str]


class WorkerDied(Exception):
    """While it decoded row `at_hand` = (task, row); `how` names the signal or exit code."""

    def __init__(self, at_hand: tuple[int, int], how: str) -> None:
        super().__init__(how)
        self.at_hand = at_hand
        self.how = how


class Worker:
    """One process and our end of its pipe."""

    def __init__(self, job: Job) -> None:
        context = multiprocessing.get_context("fork")  # inherits the plug-in with all it has read
        self.connection, theirs = context.Pipe()
        self.at_hand = RowAtHand()
        self.process = context.Process(
            target=serve, args=(theirs, job, self.at_hand, os.getpid()), daemon=True
        )
        self.process.start()
        theirs.close()  # so that the death of the process is the end of the file here
        self.shard: Optional[int] = None

    def give(self, shard: Optional[int], killers: Killers) -> None:
        self.shard = shard
        self.connection.send(None if shard is None else (shard, killers))

    def receive(self, job: Job) -> tuple:
        """Raises WorkerDied if an image did that, ConvertError if anything else did."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
        code = self.process.exitcode or 0
        name = signal.Signals(-code).name if code < 0 else ""
        at_hand = self.at_hand.deadly
        # SIGKILL is no decoder's doing: it comes from a person, or from the kernel when memory is short.
        if at_hand and code not in (-signal.SIGKILL, -signal.SIGTERM):
            raise WorkerDied(at_hand, name or f"exit code {code}")
        how = f"was ended by signal {-code} ({name})" if name else f"exited with {code}"
        shard = "before its first shard" if self.shard is None else f"while writing {job.names[self.shard]}"
        hint = "; out of memory? try fewer --mindrecord_workers" if code == -signal.SIGKILL else ""
        raise ConvertError(
            f"a worker process {how} {shard}{hint}; nothing was published", keeps_work=bool(hint)
        )

    def end(self) -> None:
        if self.process.is_alive():
            self.process.terminate()
            self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.connection.close()


class Crew:
    """The workers of one conversion, the shards that wait, and the reports of those that are done."""

    def __init__(self, job: Job, progress: Progress) -> None:
        self.job, self.progress = job, progress
        self.waiting = list(job.shards)
        self.reports: dict[int, dict] = {}
        self.workers: list[Worker] = []
        self.killers: Killers = {}

    def hire(self, shard: int) -> None:
        self.workers.append(Worker(self.job))
        self.workers[-1].give(shard, self.killers)

    def work(self) -> None:
        """One round: hear all workers that have something to say."""
        busy = {worker.connection: worker for worker in self.workers if worker.shard is not None}
        for connection in wait(list(busy), timeout=REPORT_EVERY_S):
            worker = busy[connection]  # type: ignore[index]
            try:
                self.hear(worker, *worker.receive(self.job))
            except WorkerDied as death:
                self.replace(worker, death)
        self.progress.show()

    def hear(self, worker: Worker, kind: str, *news: Any) -> None:
        if kind == "progress":
            self.progress.add(*news)
        elif kind == "done":
            index, report = news
            self.reports[index] = report
            self.progress.finished(report)
            worker.give(self.waiting.pop(0) if self.waiting else None, self.killers)
        elif kind == "grow":
            raise PageTooSmall(*news)
        elif kind == "full":
            raise DiskFull(*news)
        else:
            raise ConvertError(*news)

    def replace(self, worker: Worker, death: WorkerDied) -> None:
        """The shard is written again by a new process, which leaves the image out."""
        self.killers[death.at_hand] = death.how
        if len(self.killers) > MOST_KILLERS:
            raise ConvertError(
                f"{len(self.killers)} images ended the processes that decoded them (the last: {death.how}): "
                "it may be Pillow that is broken; nothing was published"
            )
        assert worker.shard is not None
        self.workers.remove(worker)
        worker.end()
        self.hire(worker.shard)


def write_all(job: Job, num_workers: int, progress: Progress) -> list[dict]:
    """The reports of this machine's shards, in their order, whatever worker wrote them."""
    sys.stdout.flush()
    sys.stderr.flush()  # a forked child would print what is still in the buffers again
    crew = Crew(job, progress)
    try:
        for _ in range(min(num_workers, len(job.shards))):
            crew.hire(crew.waiting.pop(0))
        while len(crew.reports) < len(job.shards):
            crew.work()
    finally:
        for worker in crew.workers:
            worker.end()
    return [crew.reports[index] for index in sorted(crew.reports)]
