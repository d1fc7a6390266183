"""Tells ranks that hang from ranks that work or wait, by their signs of life and by what the kernel counts.

Two ways to hang are known:

* A rank hangs in start-up, where it waits for nobody: no new sign, no processor time, no input or output, for
  a few seconds. Bringing data, opening the device and waiting for the other ranks may take their time.
* All ranks of this node hang, at any time: no new sign and no core kept busy, for very long. One rank that
  moves excuses the others: they may be waiting for it.
"""

import dataclasses
import math
import os
import time
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from src.platform.child import Child
from src.platform.pulse import Phase, Sign

START_HANG_S = 7.0  # with the time to ask for stacks and to end the others it stays below 10 s
LOOK_S = 0.5
MAX_STACKS = 4  # ranks
# Of a core, what a rank may use and be idle: MindSpore's threads that keep in touch with other ranks use up
# to half of one while the rank waits, or hangs (2.10 on the CPU, with MS_RETRY_INTERVAL_UPPER below 1).
IDLE_SHARE = 0.8
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
WORKING = "RDt"  # runs, waits for a disk, or is held by a debugger
STOPPED = "T"


@dataclasses.dataclass(frozen=True)
class Activity:
    """What a process and its descendants have done so far, and what they are doing."""

    cpu_s: float
    calls: Tuple[int, ...]
    """bytes and numbers of reads and writes of any kind"""
    storage: Tuple[int, ...]
    """bytes from and to disks"""
    working: bool
    stopped: bool
    """by a signal (SIGSTOP); its descendants do not matter then"""


def activity(pid: int) -> Optional[Activity]:
    """None where it cannot be told."""
    try:
        state, ticks = _stat(pid)
        states, io = [state], [_io(pid)]
        for each in _descendants(pid):
            try:
                other, more = _stat(each)
                states.append(other)
                io.append(_io(each))
                ticks += more
            except OSError:  # ended meanwhile
                continue
    except OSError:
        return None
    sums = [sum(column) for column in zip(*io)]
    working = any(one in WORKING for one in states)
    return Activity(ticks / TICKS_PER_S, tuple(sums[:4]), tuple(sums[4:]), working, state == STOPPED)


def _stat(pid: int) -> Tuple[str, int]:
    """State, and clock ticks of all threads and of children that have ended (proc(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return fields[0], sum(int(fields[i]) for i in (11, 12, 13, 14))


def _io(pid: int) -> List[int]:
    """rchar, wchar, syscr, syscw, read_bytes, write_bytes; zeros where the kernel does not tell."""
    try:
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    except OSError:
        return [0] * 6
    return [int(line.split()[1]) for line in lines[:6]]


def _descendants(pid: int) -> List[int]:
    found: List[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            children = (task / "children").read_text().split()
        except OSError:  # the thread has ended, or the kernel does not tell
            continue
        for child in map(int, children):
            found.append(child)
            try:
                found += _descendants(child)
            except OSError:  # it has ended
                continue
    return found


@dataclasses.dataclass
class _Rank:
    """What was last seen of a rank."""

    sign: Sign = dataclasses.field(default_factory=Sign)
    activity: Optional[Activity] = None
    quiet_s: float = 0.0

    def look(self, child: Child, passed_s: float) -> None:
        sign, before = child.sign, self.activity
        moved = sign.number != self.sign.number
        self.sign = sign
        # A step may be done a thousand times a second; only the quiet are worth a closer look.
        self.activity = None if moved else activity(child.pid)
        if self.activity is None or before is None or self._has_moved(before, self.activity, passed_s):
            self.quiet_s = 0.0
        else:
            self.quiet_s += passed_s

    def _has_moved(self, before: Activity, now: Activity, passed_s: float) -> bool:
        if now.working or now.stopped != before.stopped:
            return True
        used_s = now.cpu_s - before.cpu_s
        if self.sign.phase <= Phase.STARTING:
            return used_s != 0 or now.calls != before.calls or now.storage != before.storage
        return used_s > IDLE_SHARE * passed_s or now.storage != before.storage

    @property
    def waits_for_nobody(self) -> bool:
        stopped = self.activity is not None and self.activity.stopped
        return self.sign.phase <= Phase.STARTING or (stopped and self.sign.phase < Phase.JOINED)


@dataclasses.dataclass(frozen=True)
class Hang:
    """Who hangs, and how that was seen."""

    children: Sequence[Child]
    """where that cannot be told from their signs, those of which one hangs and the others wait for it"""
    sentence: str
    in_start: bool

    def told(self) -> List[str]:
        """The sentence, and where the Python threads of the first few are."""
        lines = [self.sentence]
        for child in self.children[:MAX_STACKS]:
            stacks, log = child.stacks(), child.process.log
            if stacks:
                lines += [f"Python stacks of {child.process.name}, as in {log}:", *stacks]
            elif log is None and child.sign.number:
                lines.append(f"Python stacks of {child.process.name}: above")
        return lines


class Watch:
    """Looks at the ranks every now and then; a limit of 0 s is none."""

    def __init__(
        self, start_limit_s: float, limit_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.start_limit_s, self.limit_s, self._clock = start_limit_s or math.inf, limit_s or math.inf, clock
        self._last_look = clock()
        self._ranks: Dict[Child, _Rank] = {}

    def find(self, children: Sequence[Child]) -> Optional[Hang]:
        """Whether one of these ranks, or all of them together, hang. Cheap, to be called often."""
        passed_s = self._clock() - self._last_look
        if passed_s < LOOK_S:
            return None
        self._last_look += passed_s
        # Where this process was stopped, or its machine, so were the ranks perhaps.
        passed_s = min(passed_s, 2 * LOOK_S)
        ranks = [self._ranks.setdefault(child, _Rank()) for child in children]
        for child, rank in zip(children, ranks):
            rank.look(child, passed_s)
        for child, rank in zip(children, ranks):
            if rank.waits_for_nobody and rank.quiet_s >= self.start_limit_s:
                return Hang([child], _in_start(child, rank), in_start=True)
        if ranks and all(rank.quiet_s >= self.limit_s for rank in ranks):
            return self._all(children)
        return None

    def _all(self, children: Sequence[Child]) -> Hang:
        oldest = min((child.sign for child in children), key=lambda sign: sign.time)
        found = [child for child in children if child.sign[1:4] == oldest[1:4]]  # came no further than it
        names = ", ".join(child.process.name for child in found)
        signs = ", ".join(f"{child.process.name} {child.sign}" for child in children)
        verb = "hangs" if len(found) == 1 else "hang, or wait for the one that does"
        told = f"no sign of life for {self.limit_s:g} s (--hang-timeout), and no core kept busy; last signs: "
        return Hang(found, f"{names} {verb}: {told}{signs}", in_start=False)


def _in_start(child: Child, rank: _Rank) -> str:
    last = f"its last sign of life: {rank.sign}" if rank.sign.number else "it never gave a sign of life"
    if rank.activity is not None and rank.activity.stopped:
        return f"{child.process.name} hangs: a signal stopped it {rank.quiet_s:.0f} s ago; {last}"
    seen = f"no processor time, input or output for {rank.quiet_s:.0f} s"
    return f"{child.process.name} hangs in start-up: {seen}; {last}"
