"""Signs of life from a process to the one that started it, and from one that nobody watches."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from src.platform import environment, pulse
from src.platform.child import Child, Process
from src.platform.pulse import Phase, Pulse, Sign

SUITE = Path(__file__).resolve().parents[2]


def child(program: str, folder: Path) -> Child:
    return Child(Process("rank 0", [sys.executable, "-c", program], log=folder / "log", cwd=SUITE))


def ended(child: Child) -> Child:
    end = time.monotonic() + 20
    while child.alive and time.monotonic() < end:
        child.poll()
        time.sleep(0.01)
    return child


def test_the_last_sign_is_read(tmp_path: Path) -> None:
    begin = time.monotonic()
    found = ended(
        child(
            "from src.platform.pulse import Phase, give\n"
            "give(Phase.STARTING)\ngive(Phase.TRAINING, 3, 17)\ngive(Phase.VALIDATING, step=2)",
            tmp_path,
        )
    )
    assert found.code == 0
    assert found.sign[:4] == (3, Phase.VALIDATING, 3, 2)
    assert begin < found.sign.time < time.monotonic()
    assert str(found.sign) == "validating in epoch 4 after step 2"


def test_a_process_that_says_nothing(tmp_path: Path) -> None:
    assert ended(child("", tmp_path)).sign == Sign()


def test_without_a_supervisor_signs_go_nowhere(tmp_path: Path) -> None:
    program = "from src.platform.pulse import *; answer_for_stacks(); give(Phase.STARTING); print('on')"
    done = subprocess.run([sys.executable, "-c", program], cwd=SUITE, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("on\n", "")


def test_a_descriptor_of_another_file_is_not_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "own").open("w+") as file:
        monkeypatch.setenv(environment.PULSE, str(file.fileno()))
        assert environment.pulse_fd() is None
    assert environment.pulse_fd() is None  # closed


def test_a_grandchild_has_no_part_in_it(tmp_path: Path) -> None:
    grandchild = "from src.platform.pulse import Phase, give; give(Phase.FAILING)"
    found = ended(
        child(
            "import subprocess, sys; from src.platform.pulse import Phase, give; give(Phase.STARTING)\n"
            f"sys.exit(subprocess.run([sys.executable, '-c', {grandchild!r}], close_fds=False).returncode)",
            tmp_path,
        )
    )
    assert (found.code, found.sign.phase) == (0, Phase.STARTING)


def test_a_sign_costs_next_to_nothing() -> None:
    file = pulse.open_file()
    pulses = Pulse(file.fileno())
    begin = time.process_time()
    for step in range(1000):
        pulses.give(Phase.TRAINING, 0, step)
    assert time.process_time() - begin < 0.2  # 5 ms in practice
    assert pulse.read(file).number == 1000


def test_a_process_tells_its_stacks_when_asked(tmp_path: Path) -> None:
    program = (
        "import time; from src.platform.pulse import *\nanswer_for_stacks(); give(Phase.STARTING)\n"
        "def stuck(): time.sleep(60)\nstuck()"
    )
    found = child(program, tmp_path)
    end = time.monotonic() + 20
    while not found.sign.number and time.monotonic() < end:
        time.sleep(0.01)
    stacks = found.stacks()
    found.poll()
    assert found.alive
    found.kill()
    assert any("in stuck" in line for line in stacks)
    assert found.stacks() == []


def test_a_process_that_cannot_tell_them_yet_is_not_asked(tmp_path: Path) -> None:
    found = child("import time; time.sleep(60)", tmp_path)
    assert found.stacks() == []
    time.sleep(0.2)
    found.poll()
    assert found.alive
    found.kill()
