"""The runner: what it refuses, what it starts, and how it ends. Ranks are small Python programs here."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, List, Optional

import numpy as np
import pytest

from src import cli
from src.platform.supervisor import Outcome
from src.report.report import Report
from src.weights import checkpoint

SUITE = Path(__file__).resolve().parent.parent
# The runner with another folder in the suite's place, so that it starts the stand-in below.
DRIVER = """
import sys
from pathlib import Path
from src import launch
from src.platform.workspace_lock import WorkspaceLock
launch.SUITE = Path(sys.argv[1])
WorkspaceLock.wait_s = float(sys.argv[2])
sys.exit(launch.main(sys.argv[3:]))
"""
STAND_IN = """
import json, os, signal, sys, time
rank = int(os.environ.get("RANK_ID", "0"))
folder = os.path.dirname(os.path.abspath(__file__))
def note(name, text):
    with open(os.path.join(folder, name + ".tmp"), "w") as file:
        file.write(text)
    os.replace(os.path.join(folder, name + ".tmp"), os.path.join(folder, name))
def stop(number, frame):
    print("rank", rank, "tidied up", flush=True)
    sys.exit(143)
signal.signal(signal.SIGTERM, stop)
facts = {"pid": os.getpid(), "argv": sys.argv[1:], "cwd": os.getcwd(), "environ": dict(os.environ)}
note(f"rank_{rank}.json", json.dumps(facts))
exec(open(os.path.join(folder, "programs", str(rank))).read())
"""
SCHEDULER = """
import json, os, time
with open("scheduler.json", "w") as file:
    json.dump({"pid": os.getpid(), "environ": dict(os.environ)}, file)
time.sleep(60)
"""
FOREVER = "time.sleep(60)"
OUTLIVES = f"import ctypes; ctypes.CDLL(None).prctl(1, 0)  # PR_SET_PDEATHSIG: none\n{FOREVER}"
WRITE_REPORT = """
from src.report.report import Report
words = dict(model="resnetv15", num_devices=2, cmd=[], config={}, environment={}, dataset={})
Report(folder + "/ws/report.json", **words).write()
"""
SMALL = ("--data-backend", "synthetic", "-b", "2")


class Stage:
    """A folder that stands in for the suite, and the runner on it."""

    wait_s = 0.3  # for another run to leave the workspace

    def __init__(self, folder: Path, workspace: Optional[Path] = None) -> None:
        self.folder, self.workspace = folder, workspace or folder / "ws"
        (folder / "programs").mkdir(parents=True)
        (folder / "src" / "platform").mkdir(parents=True)
        (folder / "train.py").write_text(STAND_IN)
        (folder / "src" / "platform" / "scheduler.py").write_text(SCHEDULER)

    def start(self, *programs: str, options: "tuple[str, ...]" = ()) -> "subprocess.Popen[str]":
        """The runner with one rank for each program."""
        for rank, program in enumerate(programs):
            (self.folder / "programs" / str(rank)).write_text(program)
        words = ["-n", str(len(programs)), "--workspace", str(self.workspace), *SMALL, *options]
        command = [sys.executable, "-c", DRIVER, str(self.folder), str(self.wait_s), *words]
        return subprocess.Popen(command, cwd=SUITE, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def ready(self, num_ranks: int) -> "Stage":
        """Wait until all ranks run."""
        end = time.monotonic() + 20
        while not all((self.folder / f"rank_{rank}.json").exists() for rank in range(num_ranks)):
            assert time.monotonic() < end, "the ranks did not start"
            time.sleep(0.02)
        return self

    def facts(self, name: str) -> Dict[str, object]:
        return dict(json.loads((self.folder / f"{name}.json").read_text()))

    def survivors(self) -> List[str]:
        """Processes that still run two seconds from now."""
        end = time.monotonic() + 2
        while True:
            found = [
                path.stem for path in self.folder.glob("*.json") if runs(int(self.facts(path.stem)["pid"]))
            ]  # type: ignore[call-overload]
            if not found or time.monotonic() > end:
                return found
            time.sleep(0.05)


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "suite")


def runner(
    *options: str, cwd: Path = SUITE, variables: Optional[Dict[str, str]] = None
) -> "subprocess.CompletedProcess[str]":
    """The real runner."""
    return subprocess.run(
        [sys.executable, str(SUITE / "runner"), *options],
        cwd=cwd,
        env={**os.environ, **(variables or {})},
        capture_output=True,
        text=True,
    )


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            (("-n", "0"), "-n/--num-devices is 0; it must be at least 1"),
            (("-n", "-3"), "-n/--num-devices is -3; it must be at least 1"),
            (("-n", "two"), "'two'"),
            (("--grace", "0"), "--grace is 0.0; it must be > 0"),
            (("--hang-timeout", "-1"), "--hang-timeout is -1.0; it must be >= 0"),
            (("-n", "100000"), f"-n/--num-devices is 100000, but {len(os.sched_getaffinity(0))} core"),
            (("--device-target", "Ascend"), "--device-target Ascend: there is none on this machine"),
            (
                ("-n", "2", "--mode", "pred", "--load", "x", "--data-pred", "y"),
                "--mode pred runs on one device",
            ),
        ],
    )
    def test_what_cannot_work_is_told_in_a_sentence(
        self, options: "tuple[str, ...]", sentence: str, tmp_path: Path
    ) -> None:
        done = runner(*SMALL, *options, cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr.startswith("runner: ")
        assert sentence in done.stderr
        assert done.stderr.count("\n") == 1
        assert list(tmp_path.iterdir()) == []

    def test_more_devices_than_present(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        from src import launch

        monkeypatch.setattr(launch.environment, "detect_device", lambda requested: "GPU")
        monkeypatch.setattr(launch.environment, "num_devices_present", lambda device: 2)
        assert launch.main(["-n", "3", *SMALL]) == 2
        assert "-n/--num-devices is 3, but this machine has 2 GPU" in capsys.readouterr().err

    def test_absent_data_is_told_before_anything_starts(self, tmp_path: Path) -> None:
        done = runner("-n", "2", "--data-root", str(tmp_path / "nowhere"), cwd=tmp_path)
        assert done.returncode == 3
        assert str(tmp_path / "nowhere") in done.stderr
        assert list(tmp_path.iterdir()) == []

    def test_the_stale_compile_cache_is_refused(self, tmp_path: Path) -> None:
        done = runner(*SMALL, cwd=tmp_path, variables={"MS_COMPILER_CACHE_ENABLE": "1"})
        assert done.returncode == 2
        assert "MS_COMPILER_CACHE_ENABLE" in done.stderr

    def test_ranks_of_another_launcher_are_not_multiplied(self, tmp_path: Path) -> None:
        done = runner(*SMALL, cwd=tmp_path, variables={"RANK_SIZE": "8", "RANK_ID": "3"})
        assert done.returncode == 2
        assert "already rank 3 of 8" in done.stderr

    def test_an_unwritable_workspace(self) -> None:
        done = runner(*SMALL, "--workspace", "/proc/nothing/can/be/made/here")
        assert done.returncode == 2
        assert "--workspace /proc/nothing/can/be/made/here cannot be written" in done.stderr


def test_help_answers_at_once_from_anywhere(tmp_path: Path) -> None:
    os.symlink(SUITE / "runner", tmp_path / "link")
    before = os.times()
    done = subprocess.run(
        [sys.executable, str(tmp_path / "link"), "--help"], cwd=tmp_path, capture_output=True, text=True
    )
    after = os.times()
    assert done.returncode == 0
    assert "--num-devices" in done.stdout
    assert "--batch-size" in done.stdout
    busy_s = after.children_user + after.children_system - before.children_user - before.children_system
    assert busy_s < 1.0  # 0.3 s in practice; processor time, because the machine may have other work


def test_dry_run_is_a_recipe(tmp_path: Path) -> None:
    options = ["-n", "2", *SMALL, "--lr-steps", "30,60", "--workspace", "a: b #c", "--resume", "off"]
    first = runner(*options, "--dry-run", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert list(tmp_path.iterdir()) == []
    assert "MS_WORKER_NUM=2" in first.stdout
    (tmp_path / "recipe.yaml").write_text(first.stdout)
    second = runner("-n", "2", "--config", "recipe.yaml", "--dry-run", cwd=tmp_path)

    def options_of(text: str) -> List[str]:
        return [line for line in text.splitlines() if not line.startswith("#")]

    assert options_of(second.stdout) == options_of(first.stdout)
    assert len(options_of(first.stdout)) > 30
    assert second.stdout.count("--lr-steps 30.0 60.0") == 2


class TestRuns:
    def test_two_ranks(self, stage: Stage) -> None:
        started = stage.start("print('hello')", "print('quiet')", options=("--lr", "0.5"))
        out, err = started.communicate(timeout=20)
        assert (started.returncode, err) == (0, "")
        assert out == "hello\n"
        log = (stage.workspace / "ranks" / "rank_1.log").read_text().splitlines()
        assert log[0].startswith("--- ")
        assert log[1:] == ["quiet"]
        facts = [stage.facts(f"rank_{rank}") for rank in (0, 1)]
        assert facts[0]["argv"] == facts[1]["argv"]
        assert "--num-devices" not in str(facts[0]["argv"])
        assert "--lr 0.5" in " ".join(facts[0]["argv"])  # type: ignore[arg-type]
        assert facts[0]["cwd"] == str(SUITE)  # the user's, so that relative paths hold
        environ: List[Dict[str, str]] = [fact["environ"] for fact in (*facts, stage.facts("scheduler"))]  # type: ignore[misc]
        assert [e.get("RANK_ID") for e in environ] == ["0", "1", None]
        assert len({e["MS_SCHED_PORT"] for e in environ}) == 1
        assert json.loads(environ[1]["SUITE_COMMAND"])[:3] == ["runner", "-n", "2"]
        assert stage.survivors() == []

    def test_one_rank_needs_no_scheduler(self, stage: Stage) -> None:
        started = stage.start("")
        started.communicate(timeout=20)
        assert started.returncode == 0
        assert not (stage.folder / "scheduler.json").exists()
        assert not (stage.workspace / "ranks").exists()

    def test_two_runs_at_once(self, tmp_path: Path) -> None:
        stages = [Stage(tmp_path / name) for name in "ab"]
        wait = "while not os.path.exists(folder + '/go'): time.sleep(0.02)"
        started = [stage.start(wait, wait) for stage in stages]
        ports = {stage.ready(2).facts("rank_0")["environ"]["MS_SCHED_PORT"] for stage in stages}  # type: ignore[index]
        for stage in stages:
            (stage.folder / "go").touch()
        for run in started:
            run.communicate(timeout=20)
        assert [run.returncode for run in started] == [0, 0]
        assert len(ports) == 2

    def test_two_runs_in_one_workspace(self, stage: Stage, tmp_path: Path) -> None:
        """The second is refused, and again while a rank outlives its runner; then nothing is in the way."""
        first = stage.start(OUTLIVES, OUTLIVES)
        stage.ready(2)
        log = (stage.workspace / "ranks" / "rank_1.log").read_bytes()
        second = Stage(tmp_path / "second", stage.workspace)

        def refused(*options: str) -> str:
            started = second.start("", "", options=options)
            out, err = started.communicate(timeout=20)
            assert (started.returncode, out) == (2, "")
            return err

        told = refused("--overwrite")
        assert told.startswith(f"runner: --workspace {stage.workspace} is in use by another run (process ")
        assert f"(process {first.pid} on " in told
        assert told.count("\n") == 1
        first.kill()
        first.wait()
        os.kill(int(stage.facts("rank_0")["pid"]), signal.SIGKILL)  # type: ignore[call-overload]
        assert refused() == told, "held by the last of them"
        assert (stage.workspace / "ranks" / "rank_1.log").read_bytes() == log
        assert sorted(path.name for path in stage.workspace.iterdir()) == [".lock", "ranks"]
        os.kill(int(stage.facts("rank_1")["pid"]), signal.SIGKILL)  # type: ignore[call-overload]
        third = second.start("", "")
        assert third.communicate(timeout=20) == ("", "")
        assert third.returncode == 0

    def test_commands_that_do_not_train_work_beside_a_run(self, stage: Stage, tmp_path: Path) -> None:
        first = stage.start(FOREVER)
        stage.ready(1)
        other = Stage(tmp_path / "other", stage.workspace)
        started = other.start("print('reads')", options=("--test-io",))
        assert started.communicate(timeout=20) == ("reads\n", "")
        first.kill()
        first.communicate()

    def test_a_second_run_appends_to_the_logs(self, stage: Stage) -> None:
        for word in ("first", "second"):
            stage.start("", f"print('{word}')").communicate(timeout=20)
        log = (stage.workspace / "ranks" / "rank_1.log").read_text().splitlines()
        assert [line for line in log if not line.startswith("---")] == ["first", "second"]


class TestWorkspaces:
    """What an earlier run left, as rank 0 would have written it."""

    def leave(self, stage: Stage, status: str, *options: str) -> None:
        words = ["--workspace", str(stage.workspace), *SMALL, *options]
        config = {**cli.parse(words, prog="test").plain(), "seed": 1}
        stage.workspace.mkdir()
        path = stage.workspace / "report.json"
        Report(
            path, model="resnetv15", num_devices=2, cmd=[], config=config, environment={}, dataset={}
        ).write()
        path.write_text(json.dumps({**json.loads(path.read_text()), "status": status}))
        checkpoint.save(stage.workspace / "model_last.safetensors", {"a": np.zeros(1, np.float32)}, {})

    def test_the_same_command_goes_on(self, stage: Stage) -> None:
        self.leave(stage, "interrupted")
        started = stage.start("print('goes on')", "")
        assert started.communicate(timeout=20) == ("goes on\n", "")
        assert (stage.workspace / "model_last.safetensors").exists()

    def test_what_is_done_is_decided_when_no_other_run_has_the_workspace_any_more(
        self, stage: Stage, tmp_path: Path
    ) -> None:
        """The first has saved nothing yet when the second looks: its files would be moved aside."""
        left = Stage(tmp_path / "left")
        self.leave(left, "interrupted")
        program = "from pathlib import Path\ndef bring(name):\n"
        program += f"    os.replace(Path({str(left.workspace)!r}, name), Path(folder, 'ws', name))\n"
        program += "bring('report.json')\n"
        program += "while not os.path.exists(folder + '/go'): time.sleep(0.02)\n"
        first = stage.start(program + "bring('model_last.safetensors')", "")
        while not (stage.workspace / "report.json").exists():
            assert first.poll() is None
            time.sleep(0.02)
        second = Stage(tmp_path / "second", stage.workspace)
        second.wait_s = 20.0
        started = second.start("print('goes on')", "")
        files = Path(f"/proc/{started.pid}/fd")
        while not any(path.resolve().name == ".lock" for path in files.iterdir()):  # it has looked, and waits
            assert started.poll() is None
            time.sleep(0.02)
        (stage.folder / "go").touch()
        assert started.communicate(timeout=20) == ("goes on\n", "")
        assert first.wait(20) == 0
        assert (stage.workspace / "model_last.safetensors").exists()

    def test_another_run_is_refused(self, stage: Stage) -> None:
        self.leave(stage, "interrupted", "--lr", "0.5")
        started = stage.start("", "")
        _, err = started.communicate(timeout=20)
        assert started.returncode == 2
        assert "holds another run" in err
        assert not (stage.workspace / "ranks").exists()

    def test_overwrite_moves_the_old_files_but_not_the_new_logs(self, stage: Stage) -> None:
        self.leave(stage, "interrupted", "--lr", "0.5")
        (stage.workspace / "ranks").mkdir()
        (stage.workspace / "ranks" / "rank_1.log").write_text("old\n")
        started = stage.start("", "print('new')", options=("--overwrite",))
        out, _ = started.communicate(timeout=20)
        assert started.returncode == 0
        assert "previous-1" in out
        assert (stage.workspace / "previous-1" / "ranks" / "rank_1.log").read_text() == "old\n"
        assert (stage.workspace / "ranks" / "rank_1.log").read_text().endswith("new\n")


class TestEnds:
    def test_a_failed_rank(self, stage: Stage) -> None:
        stage.workspace.mkdir()
        go = "folder + '/go'"
        # rank 0 has written a report before rank 1 dies
        report = f"sys.path.insert(0, {str(SUITE)!r})\n{WRITE_REPORT}\nopen({go}, 'w')\n{FOREVER}"
        dies = f"while not os.path.exists({go}): time.sleep(0.02)\n"
        dies += "print('last words', flush=True)\nos.kill(os.getpid(), 9)"
        started = stage.start(report, dies)
        begin = time.monotonic()
        _, err = started.communicate(timeout=20)
        assert started.returncode == 137
        assert "runner: rank 1 was killed by SIGKILL; the end of " in err
        assert err.endswith("last words\n")
        assert time.monotonic() - begin < 10
        assert stage.survivors() == []
        written = json.loads((stage.workspace / "report.json").read_text())
        assert written["status"] == "failed"
        assert written["status_reason"].startswith("rank 1 was killed by SIGKILL")

    def status(self, stage: Stage) -> "tuple[str, str]":
        written = json.loads((stage.workspace / "report.json").read_text())
        return written["status"], written["status_reason"]

    def test_a_death_before_there_is_a_report(self, stage: Stage) -> None:
        started = stage.start("os.kill(os.getpid(), 9)", FOREVER)
        started.communicate(timeout=20)
        assert started.returncode == 137
        assert self.status(stage) == ("failed", "rank 0 was killed by SIGKILL")
        assert json.loads((stage.workspace / "report.json").read_text())["config"]["batch-size"] == 2

    def test_a_death_before_a_continued_run_goes_on(self, stage: Stage) -> None:
        TestWorkspaces().leave(stage, "interrupted")
        started = stage.start("os.kill(os.getpid(), 9)", FOREVER)
        started.communicate(timeout=20)
        assert self.status(stage) == ("failed", "rank 0 was killed by SIGKILL")
        assert json.loads((stage.workspace / "report.json").read_text())["config"]["seed"] == 1  # the run's

    def test_a_signal_before_there_is_a_report(self, stage: Stage) -> None:
        started = stage.start(FOREVER, FOREVER)
        stage.ready(2)
        started.send_signal(signal.SIGTERM)
        started.communicate(timeout=20)
        assert self.status(stage) == ("interrupted", "stopped by SIGTERM")

    def test_ranks_that_outstay_the_grace_are_interrupted_all_the_same(self, stage: Stage) -> None:
        deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        report = f"sys.path.insert(0, {str(SUITE)!r})\n{WRITE_REPORT}\n"
        started = stage.start(
            f"{deaf}{report}note('deaf.json', json.dumps(facts))\n{FOREVER}", options=("--grace", "0.5")
        )
        end = time.monotonic() + 20
        while not (stage.folder / "deaf.json").exists() and time.monotonic() < end:
            time.sleep(0.02)
        started.send_signal(signal.SIGTERM)
        started.communicate(timeout=20)
        assert started.returncode == 143
        assert self.status(stage) == ("interrupted", "stopped by SIGTERM; rank 0 had to be killed")

    @pytest.mark.parametrize(("end", "code"), [(".finish('completed')", 0), (".write()", 143)])
    def test_a_signal_after_all_was_done(self, end: str, code: int, stage: Stage) -> None:
        report = f"sys.path.insert(0, {str(SUITE)!r})\n{WRITE_REPORT}\n".replace(".write()", end)
        leave = "signal.signal(signal.SIGTERM, lambda *_: os._exit(0))\n"
        started = stage.start(f"{leave}{report}note('done.json', json.dumps(facts))\n{FOREVER}")
        end_s = time.monotonic() + 20
        while not (stage.folder / "done.json").exists() and time.monotonic() < end_s:
            time.sleep(0.02)
        started.send_signal(signal.SIGTERM)
        started.communicate(timeout=20)
        assert started.returncode == code

    def test_an_end_that_a_rank_wrote_stays(self, stage: Stage) -> None:
        report = f"sys.path.insert(0, {str(SUITE)!r})\n{WRITE_REPORT}\n".replace(
            ".write()", ".finish('failed', 'told')"
        )
        stage.start(f"{report}sys.exit(4)").communicate(timeout=20)
        assert self.status(stage) == ("failed", "told")

    def test_the_exit_code_of_a_rank_is_the_runners(self, stage: Stage) -> None:
        started = stage.start("sys.exit(4)")
        _, err = started.communicate(timeout=20)
        assert (started.returncode, err) == (4, "runner: rank 0 ended with code 4\n")

    @pytest.mark.slow
    def test_ranks_that_hang_in_start_up_end_the_run_within_ten_seconds(self, stage: Stage) -> None:
        started = stage.start(FOREVER, f"time.sleep(0.5)\n{FOREVER}")
        stage.ready(2)
        begin = time.monotonic()
        _, err = started.communicate(timeout=20)
        assert time.monotonic() - begin < 10
        assert started.returncode == 1
        assert err.startswith("runner: rank 0 hangs in start-up: no processor time, input or output for 7 s")
        assert stage.survivors() == []
        status, reason = self.status(stage)
        assert (status, reason) == ("failed", err[len("runner: ") :].strip())

    @pytest.mark.parametrize(
        ("words", "limits"),
        [((), (7.0, 1800.0)), (("--hang-timeout", "20"), (7.0, 20.0)), (("--hang-timeout", "0"), (0.0, 0.0))],
    )
    def test_how_long_ranks_may_hang(
        self,
        words: "tuple[str, ...]",
        limits: "tuple[float, float]",
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        from src import launch

        given: Dict[str, float] = {}
        monkeypatch.setattr(launch, "supervise", lambda plan, **limits: given.update(limits) or Outcome(0))
        assert launch.main([*SMALL, "--workspace", str(tmp_path), *words]) == 0
        assert (given["start_hang_s"], given["hang_s"]) == limits

    @pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
    def test_a_signal_to_the_runner(self, number: signal.Signals, code: int, stage: Stage) -> None:
        started = stage.start(FOREVER, FOREVER)
        stage.ready(2)
        started.send_signal(number)
        out, err = started.communicate(timeout=20)
        assert started.returncode == code
        assert out == "rank 0 tidied up\n"
        assert "rank 1 tidied up" in (stage.workspace / "ranks" / "rank_1.log").read_text()
        assert err == f"runner: stopped by {number.name}\n"
        assert stage.survivors() == []

    def test_a_wish_to_save_that_nobody_can_hear_yet_kills_nothing(self, stage: Stage) -> None:
        started = stage.start(FOREVER, FOREVER)
        stage.ready(2)
        started.send_signal(signal.SIGUSR1)
        time.sleep(0.3)
        started.send_signal(signal.SIGTERM)
        out, err = started.communicate(timeout=20)
        assert (started.returncode, out, err) == (143, "rank 0 tidied up\n", "runner: stopped by SIGTERM\n")

    def test_a_wish_to_save_before_ranks_are_started_kills_nothing(self) -> None:
        program = "import os, signal, sys; from src import launch\n"
        program += "launch._run = lambda argv: os.kill(os.getpid(), signal.SIGUSR1) or 5\n"
        program += "sys.exit(launch.main([]))"
        assert subprocess.run([sys.executable, "-c", program], cwd=SUITE).returncode == 5

    def test_a_killed_runner_leaves_nothing_behind(self, stage: Stage) -> None:
        started = stage.start(FOREVER, FOREVER)
        stage.ready(2)
        started.kill()
        started.communicate(timeout=20)
        assert started.returncode == -signal.SIGKILL
        assert stage.survivors() == []
