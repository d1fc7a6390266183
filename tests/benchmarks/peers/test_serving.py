"""What a contestant measures of itself."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from benchmarks.peers.serving import cpu_seconds, repeated, steady


def slow_at_first():
    for number in range(6):
        time.sleep(0.2 if number < 2 else 0.01)
        yield [0] * 10, None


def test_the_first_batches_do_not_count():
    figures = steady(slow_at_first(), skip=2)
    assert figures["images"] == 40
    assert 0.04 <= figures["seconds"] < 0.2


def test_without_batches_to_skip_the_first_one_counts_from_its_making():
    figures = steady(slow_at_first(), skip=0)
    assert figures["images"] == 60
    assert figures["seconds"] >= 0.44


def test_an_epoch_of_skipped_batches_alone_is_refused():
    with pytest.raises(AssertionError, match="no batch after the first 6"):
        steady(slow_at_first(), skip=6)


def test_every_call_is_timed():
    waits = iter([0.01, 0.05])
    figures = repeated(lambda: time.sleep(next(waits)), 2, 8)
    assert figures["images"] == 16
    first, second = figures["step_seconds"]
    assert 0.01 <= first < second
    assert figures["seconds"] == pytest.approx(first + second)


def test_the_work_of_children_counts_while_they_live():
    begin = cpu_seconds()
    code = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        assert cpu_seconds() - begin >= 0.25
        child.communicate(b"\n")
