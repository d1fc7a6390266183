"""Child processes that may die, hang or be killed: what they say, how they ended, that they end with us."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
from multiprocessing.connection import Connection, wait
from typing import Any, Callable, Iterable, Iterator

from failure import OTHER

ORPHANED_EVERY_S = 2
END_WITHIN_S = 5
PR_SET_PDEATHSIG = 1


class ChildDied(Exception):
    """`number`: of the signal that ended it, or 0; the text names it, or else the exit code."""

    def __init__(self, exit_code: int) -> None:
        self.number = max(0, -exit_code)
        super().__init__(signal.Signals(self.number).name if self.number else f"exit code {exit_code}")

    @property
    def from_outside(self) -> bool:
        """No decoder's doing: SIGKILL comes from a person, or from the kernel when memory is short."""
        return self.number in (signal.SIGKILL, signal.SIGTERM)


class Child:
    """One process, which runs target(its end of the pipe, *arguments), and our end of the pipe."""

    def __init__(self, target: Callable[..., None], *arguments: Any) -> None:
        sys.stdout.flush()
        sys.stderr.flush()  # a forked child would print what is still in the buffers again
        context = multiprocessing.get_context("fork")  # inherits all that was read and imported
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=target, args=(theirs, *arguments), daemon=True)
        self.process.start()
        theirs.close()  # so that the death of the process is the end of the file here

    def send(self, order: Any) -> None:
        with contextlib.suppress(BrokenPipeError):  # of its death, the next receive() tells
            self.connection.send(order)

    def receive(self) -> Any:
        """The next thing that it sends.  Raises ChildDied."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
        raise ChildDied(self.process.exitcode or 0)

    def end(self) -> None:
        for end in (self.process.terminate, self.process.kill):
            if self.process.is_alive():
                end()
                self.process.join(END_WITHIN_S)  # not even SIGKILL ends one that waits for a broken disk
        self.connection.close()


def orders(connection: Connection, parent: int) -> Iterator[Any]:
    """In a child: what the process `parent` sends, up to None."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends us
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent()
    os.environ.setdefault("GLOG_v", "4")  # our own sentences say what MindSpore's warnings would
    while True:
        while not connection.poll(ORPHANED_EVERY_S):
            leave_if_orphaned(parent)
        order = connection.recv()
        if order is None:
            return
        yield order


def end_with_parent() -> None:
    """Linux ends us when our parent is killed; elsewhere leave_if_orphaned() does, a little later."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
    except (AttributeError, OSError):
        return


def leave_if_orphaned(parent: int) -> None:
    if os.getppid() != parent:
        os._exit(OTHER)


def answer(connection: Connection, work: Callable[[Any], Any], parent: int) -> None:
    for item in orders(connection, parent):
        connection.send(work(item))


def in_processes(
    work: Callable[[Any], Any], items: Iterable[Any], num_processes: int
) -> Iterator[tuple[Any, Any]]:
    """(item, work(item)) in any order; (item, ChildDied) for an item that its process did not survive."""
    waiting = list(items)[::-1]
    busy: dict[Any, tuple[Child, Any]] = {}

    def give(child: Child) -> None:
        item = waiting.pop()
        child.send(item)
        busy[child.connection] = child, item

    try:
        for _ in range(min(num_processes, len(waiting))):
            give(Child(answer, work, os.getpid()))
        while busy:
            for connection in wait(list(busy)):
                child, item = busy[connection]
                try:
                    result = child.receive()
                except ChildDied as death:
                    result = death
                yield item, result
                del busy[connection]
                if waiting and not isinstance(result, ChildDied):
                    give(child)
                    continue
                child.end()
                if waiting:
                    give(Child(answer, work, os.getpid()))
    finally:
        for child, _ in busy.values():
            child.end()
