"""What a started process may not do: outlive its supervisor, or leave processes of its own behind."""

import signal
import subprocess
import sys
import time
from pathlib import Path

SUITE = Path(__file__).resolve().parents[2]
SUPERVISOR = """
import sys
from src.platform.supervisor import Process, supervise
programs = sys.argv[1:]
plan = [Process(f"rank {i}", [sys.executable, "-c", text]) for i, text in enumerate(programs)]
sys.exit(supervise(plan).code)
"""
NOTE_PID = "import os, sys, time; os.write(1, b'%d\\n' % os.getpid());"
GRANDCHILD = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', {!r}]);"


def start(*programs: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", SUPERVISOR, *programs]
    return subprocess.Popen(command, cwd=SUITE, stdout=subprocess.PIPE, text=True)


def gone(pid: int) -> bool:
    """Whether the process ends within two seconds (a zombie has ended)."""
    for _ in range(40):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.05)
    return False


def read_pid(supervisor: "subprocess.Popen[str]") -> int:
    assert supervisor.stdout is not None
    return int(supervisor.stdout.readline())


def test_nothing_outlives_a_killed_supervisor() -> None:
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    supervisor = start(deaf + NOTE_PID + "time.sleep(60)", NOTE_PID + "time.sleep(60)")
    pids = [read_pid(supervisor), read_pid(supervisor)]
    supervisor.kill()
    supervisor.wait()
    assert all(gone(pid) for pid in pids)


def test_a_process_takes_its_own_children_along() -> None:
    supervisor = start(
        GRANDCHILD.format(NOTE_PID + "time.sleep(60)") + "import time; time.sleep(0.5); sys.exit(3)"
    )
    pid = read_pid(supervisor)
    assert supervisor.wait(timeout=10) == 3
    assert gone(pid)


def test_the_terminals_interrupt_reaches_only_the_supervisor() -> None:
    tidy = "lambda *_: (os.write(1, b'told once\\n'), sys.exit(0))"
    program = f"import signal; signal.signal(signal.SIGTERM, {tidy}); {NOTE_PID} time.sleep(60)"
    command = [sys.executable, "-c", SUPERVISOR, program]
    supervisor = subprocess.Popen(
        command, cwd=SUITE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    pid = read_pid(supervisor)
    subprocess.run(
        ["kill", "-INT", "--", f"-{supervisor.pid}"], check=True
    )  # as Ctrl-C does: the whole group
    output, _ = supervisor.communicate(timeout=10)
    assert output == "told once\n"
    assert supervisor.returncode == 128 + signal.SIGINT
    assert gone(pid)


def test_a_wish_to_save_does_not_kill_what_cannot_save() -> None:
    supervisor = start("import os, signal, sys; os.kill(os.getpid(), signal.SIGUSR1); sys.exit(3)")
    assert supervisor.wait(timeout=10) == 3
