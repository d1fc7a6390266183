"""Deals shards to worker processes, and notices at once when one of them dies, and soon when one hangs."""

from __future__ import annotations

import os
import signal
from multiprocessing.connection import wait
from typing import Any, NoReturn, Optional

from children import Child, ChildDied
from failure import ConvertError, DiskFull
from progress import Progress
from serving import REPORT_EVERY_S, serve
from shards import Job, PageTooSmall
from watch import IMAGE_TIMEOUT_S, Patience, RowAtHand, what_it_does

MOST_KILLERS = 20  # images that end their worker; more, and it is not the images
Killers = dict[tuple[int, int], str]
CHECKING, READING, WRITING = range(3)


class WorkerDied(Exception):
    """While it decoded row `at_hand` = (task, row); `how` names the signal or exit code."""

    def __init__(self, at_hand: tuple[int, int], how: str) -> None:
        super().__init__(how)
        self.at_hand = at_hand
        self.how = how


class Worker(Child):
    """A process that writes one shard after another."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.checked, self.asked, self.patience = RowAtHand(), RowAtHand(), Patience()
        self.shard: Optional[int] = None
        self.num_heard = 0
        self.gone = False  # all that it wrote is on the disk
        super().__init__(serve, job, self.checked, self.asked, os.getpid())

    @property
    def place(self) -> str:
        if self.shard is None:
            return "while its last shards went to the disk"
        return f"while writing {self.job.names[self.shard]}"

    def give(self, shard: Optional[int], killers: Killers) -> None:
        self.shard = shard
        self.send(None if shard is None else (shard, killers))

    def hear(self) -> tuple:
        """Raises WorkerDied if an image did that, ConvertError if anything else did."""
        self.num_heard += 1
        try:
            return self.receive()
        except ChildDied as death:
            at_hand = self.checked.pending
            if at_hand and not death.from_outside:
                raise WorkerDied(at_hand, str(death)) from None
            how = f"was ended by signal {death.number} ({death})" if death.number else f"ended with {death}"
            short = death.number == signal.SIGKILL
            hint = "; out of memory? try fewer --mindrecord_workers" if short else ""
            sentence = f"a worker process {how} {self.place}{hint}; nothing was published"
            raise ConvertError(sentence, keeps_work=short) from None

    @property
    def doing(self) -> tuple[int, tuple[int, ...]]:
        """CHECKING or READING and (task, row), or WRITING and what changes while rows go by."""
        if checking := self.checked.pending:
            return CHECKING, checking
        if reading := self.asked.pending:
            return READING, reading
        return WRITING, (self.shard or 0, self.num_heard)


class Crew:
    """The workers of one conversion, the shards that wait, and the reports of those that are done."""

    def __init__(self, job: Job, progress: Progress, timeout_s: int) -> None:
        self.job, self.progress, self.timeout_s = job, progress, timeout_s
        self.waiting = list(job.shards)
        self.reports: dict[int, dict] = {}
        self.workers: list[Worker] = []
        self.killers: Killers = {}

    def hire(self, shard: int) -> None:
        self.workers.append(Worker(self.job))
        self.workers[-1].give(shard, self.killers)

    def work(self) -> None:
        """One round: hear all workers that have something to say, and look at all others."""
        busy = {worker.connection: worker for worker in self.workers if not worker.gone}
        for connection in wait(list(busy), timeout=REPORT_EVERY_S):
            worker = busy[connection]
            try:
                self.hear(worker, *worker.hear())
            except WorkerDied as death:
                self.replace(worker, death)
        for worker in [worker for worker in self.workers if not worker.gone]:
            what, where = worker.doing
            if worker.patience.with_state((what, where)) > self.timeout_s:
                self.end_waiting(worker, what, where)
        self.progress.show()

    def end_waiting(self, worker: Worker, what: int, where: tuple[int, ...]) -> None:
        if what == CHECKING:
            self.replace(worker, WorkerDied((where[0], where[1]), f"it took longer than {self.timeout_s} s"))
        elif what == READING:
            self.give_up(worker, *where)
        else:  # to sum up and flush a large shard may take long: no reason to end it
            worker.patience = Patience()
            self.progress.log.note(
                f"a worker has been silent for {self.timeout_s} s {worker.place}"
                f"{what_it_does(worker.process.pid)}: is the disk at work?"
            )

    def give_up(self, worker: Worker, task: int, row: int) -> NoReturn:
        raise ConvertError(
            f"the plug-in {self.job.plugin.name} has not given row {row} of task {task} within "
            f"{self.timeout_s} s{what_it_does(worker.process.pid)}: does the disk or network folder of the "
            "data answer? a source that is so slow needs a larger --image-timeout of writer.py; nothing was "
            "published",
            keeps_work=True,
        )

    def hear(self, worker: Worker, kind: str, *news: Any) -> None:
        if kind == "progress":
            self.progress.add(*news)
        elif kind == "done":
            index, report = news
            self.reports[index] = report
            self.progress.finished(report)
            worker.give(self.waiting.pop(0) if self.waiting else None, self.killers)
        elif kind == "flushed":
            worker.gone = True
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


def write_all(job: Job, num_workers: int, progress: Progress, timeout_s: int = IMAGE_TIMEOUT_S) -> list[dict]:
    """The reports of this machine's shards, in their order, whatever worker wrote them."""
    crew = Crew(job, progress, timeout_s)
    try:
        for _ in range(min(num_workers, len(job.shards))):
            crew.hire(crew.waiting.pop(0))
        while not all(worker.gone for worker in crew.workers):
            crew.work()
    finally:
        for worker in crew.workers:
            worker.end()
    return [crew.reports[index] for index in sorted(crew.reports)]
