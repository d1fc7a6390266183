"""Runs a set of processes that live and die together, and tells how they ended. Knows nothing of MindSpore.

Ctrl-C on the terminal reaches only the supervisor, which decides what to pass on.
"""

import contextlib
import dataclasses
import signal
import time
from typing import Callable, Dict, Iterator, List, Optional

from src.errors import SuiteError
from src.platform import culprit as culprits
from src.platform.child import Child, Process
from src.platform.hanging import START_HANG_S, Watch
from src.platform.pulse import Phase
from src.platform.signals import SAVE

POLL_S = 0.05
UNBEGUN_GRACE_S = 0.5  # before all have joined there is nothing to save
FAILURE_GRACE_S = 5.0  # a rank blocked in a collective never answers SIGTERM: its Python handler cannot run
STOP_GRACE_S = 60.0  # to end a step, agree on stopping, and write checkpoint and report
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a plan ended."""

    code: int
    """what the supervisor should exit with"""
    message: str = ""
    """a sentence (and the last lines of a log), unless all went well"""
    interrupted: bool = False
    """it was asked to stop, and did not fail"""
    all_well: bool = False
    """every rank was started and ended with 0, whatever it was asked"""


def supervise(
    plan: List[Process],
    failure_grace_s: float = FAILURE_GRACE_S,
    stop_grace_s: float = STOP_GRACE_S,
    start_hang_s: float = START_HANG_S,
    hang_s: float = 0.0,
) -> Outcome:
    """Start the processes of `plan` and stay until none is left.

    A process that fails ends the others (SIGTERM, then SIGKILL), and so does a rank that hangs in start-up
    for `start_hang_s`, or all anywhere for `hang_s`; 0 is no limit (src/platform/hanging.py). The first
    SIGTERM, SIGINT or SIGHUP to the supervisor is passed on as one SIGTERM to each process but the services;
    the second one kills. SIGUSR1 is passed on to one rank, as soon as that can save.
    Raises SuiteError if a process cannot be started.
    """
    family = _Family(plan, failure_grace_s, stop_grace_s, Watch(start_hang_s, hang_s))
    with _signals_to(family.on_signal, family.on_save_request):
        try:
            for process in plan:
                family.start(process)
            while not family.finished():
                time.sleep(POLL_S)
        finally:
            family.end()
    return family.outcome()


class _Family:
    """The started processes and what has happened to them so far."""

    def __init__(
        self, plan: List[Process], failure_grace_s: float, stop_grace_s: float, watch: Watch
    ) -> None:
        self.plan, self.watch = plan, watch
        self.failure_grace_s, self.stop_grace_s = failure_grace_s, stop_grace_s
        self.children: List[Child] = []
        self.culprit: Optional[Child] = None
        self.culprit_ended = False  # before the others were asked to
        self.hang: List[str] = []  # what is told of it
        self.received: Optional[int] = None
        self.forwarded = False
        self.save_asked = False
        self.deadline: Optional[float] = None
        self.killed: List[str] = []

    def start(self, process: Process) -> None:
        if self.received is not None:
            return
        try:
            self.children.append(Child(process))
        except OSError as error:
            raise SuiteError(f"{process.name} cannot be started: {error}") from None

    def on_signal(self, number: int) -> None:
        self._allow(0.0 if self.received is not None else self.stop_grace_s)
        self.received = self.received or number

    def on_save_request(self) -> None:
        self.save_asked = True

    def finished(self) -> bool:
        """Take note of what has happened and act on it; whether all but the services have ended."""
        for child in self.children:
            child.poll()
        if self.received is not None and not self.forwarded:
            self.forwarded = True
            self._terminate()
        if self.save_asked:
            self._pass_on_save_request()
        self._look_for_culprit()
        self._look_for_hang()
        running = [child for child in self.children if child.alive and not child.process.service]
        if self.deadline is not None and time.monotonic() > self.deadline:
            for child in running:
                self.killed.append(child.process.name)
                child.kill()
            return True
        return not running

    def _look_for_culprit(self) -> None:
        ranks_left = any(child.alive and not child.process.service for child in self.children)
        failed = [
            c for c in self.children if c.code not in (None, 0) and (ranks_left or not c.process.service)
        ]
        if self.culprit is not None or not failed:
            return
        failing = [child for child in self.children if child.alive and culprits.is_failing(child)]
        self.culprit = culprits.first_to_fail([*failed, *failing])
        self.culprit_ended = not self.culprit.alive
        if self.received is None:
            self._terminate()
            self._allow(self.failure_grace_s)
        elif (self.culprit.code or 0) < 0:
            self._allow(self.failure_grace_s)  # it cannot take part in an agreement to stop any more

    def _look_for_hang(self) -> None:
        if self.culprit is not None or self.received is not None:
            return
        ranks = [child for child in self.children if child.alive and not child.process.service]
        hang = self.watch.find(ranks)
        if hang is None:
            return
        self.culprit, self.hang = hang.children[0], hang.told()
        self._terminate()
        self._allow(UNBEGUN_GRACE_S if hang.in_start else self.failure_grace_s)

    def _pass_on_save_request(self) -> None:
        """To one rank: all do what any of them was asked. Kept until it has joined, and can hear it."""
        for child in self.children:
            if child.alive and Phase.JOINED <= child.sign.phase < Phase.LEAVING:
                child.signal(SAVE)
                self.save_asked = False
                return

    def _terminate(self) -> None:
        for child in self.children:
            if not child.process.service and not culprits.is_failing(child):  # that ends by itself
                child.signal(signal.SIGTERM)

    def _allow(self, seconds: float) -> None:
        """No process may live longer than this from now on."""
        deadline = time.monotonic() + seconds
        self.deadline = deadline if self.deadline is None else min(self.deadline, deadline)

    def end(self) -> None:
        """Leave no process behind: services are no longer needed, and after an error nothing is."""
        for child in self.children:
            child.kill()

    def _all_well(self) -> bool:
        """Every process of the plan was started, and every rank ended with 0."""
        ranks = [child for child in self.children if not child.process.service]
        return len(self.children) == len(self.plan) and all(child.code == 0 for child in ranks)

    def outcome(self) -> Outcome:
        if self.received is not None:
            name = signal.Signals(self.received).name
            late = f"; {', '.join(self.killed)} had to be killed" if self.killed else ""
            told = f"stopped by {name}{late}"
            return Outcome(128 + self.received, told, interrupted=True, all_well=self._all_well())
        if self.culprit is None:
            return Outcome(0, all_well=self._all_well())
        if self.hang:
            return Outcome(1, "\n".join(self.hang))
        code = self.culprit.code or 0
        was_ended = not self.culprit_ended and code < 0
        told = "\n".join(culprits.told(self.culprit, was_ended))
        return Outcome(1 if was_ended else culprits.exit_code(code), told)


@contextlib.contextmanager
def _signals_to(stop: Callable[[int], None], save: Callable[[], None]) -> Iterator[None]:
    """Call `stop` with the number of a signal that asks to stop; an ignored SIGHUP (nohup) stays so."""
    before: Dict[signal.Signals, object] = {SAVE: signal.signal(SAVE, lambda *_: save())}
    for number in FORWARDED:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            before[number] = signal.signal(number, lambda received, _: stop(received))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
