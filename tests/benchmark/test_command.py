"""benchmark.py as a whole, on a stand-in for runner: what it starts, refuses, reads, ends and writes."""

from __future__ import annotations

import csv
import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from src.benchmark import command as benchmark
from src.report.report import load
from tests.benchmark.sweeps import MEASURES, Sweeps, runs
from tests.support import command

FOREVER = "time.sleep(600)"
# A process that no longer belongs to runner's session, and does not end by itself or by being asked to.
STRANGER = """
code = "import json, os, signal, sys, time; signal.signal(15, signal.SIG_IGN); signal.signal(2, signal.SIG_IGN)\\n"
code += "json.dump({'pid': os.getpid()}, open(sys.argv[1] + '.tmp', 'w')); os.rename(sys.argv[1] + '.tmp', sys.argv[1])\\n"
code += "time.sleep(600)"
subprocess.Popen([sys.executable, "-c", code, os.path.join(folder, "stranger")], start_new_session=True)
while not os.path.exists(os.path.join(folder, "stranger")): time.sleep(0.02)
"""  # noqa: E501
DEAF = "for number in (2, 15): signal.signal(number, signal.SIG_IGN)\n"


@pytest.fixture
def sweeps(tmp_path: Path) -> Sweeps:
    return Sweeps(tmp_path)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Sweeps, str]:
    """A sweep over 1 and 2 devices and batch sizes 4 and 8, and what it told."""
    sweeps = Sweeps(tmp_path_factory.mktemp("measured"))
    code, out, err = sweeps.run("-n", "1,2", "-b", "4,8", "-i", 50, "-e", 3, "-w", 1, "--mode", "train")
    assert (code, out) == (0, ""), err
    return sweeps, err


class TestFigures:
    def test_the_published_keys(self, measured: tuple[Sweeps, str]) -> None:
        found = measured[0].report()
        assert list(found)[:5] == ["model", "ngpus", "bs", "metric_keys", "metrics"]
        assert (found["model"], found["ngpus"], found["bs"]) == ("resnetv15", [1, 2], [4, 8])
        latencies = [f"train.latency_{which}" for which in ("avg", "50", "90", "95", "99", "100")]
        assert found["metric_keys"] == ["train.total_ips", *latencies]
        assert found["metrics"] == {
            n: {
                b: {
                    "train.total_ips": 300.0 * int(n),
                    **dict.fromkeys(latencies, pytest.approx(int(b) / 300)),
                }
                for b in ("4", "8")
            }
            for n in ("1", "2")
        }

    def test_tables_on_stderr_and_in_files(self, measured: tuple[Sweeps, str]) -> None:
        sweeps, err = measured
        row = ["2", "8", "600.0", "0.0_%", "2.00", "100_%", *["26.67"] * 6]
        assert row in [line.replace(" %", "_%").split() for line in err.splitlines()]
        markdown = sweeps.output.with_suffix(".md").read_text()
        assert "| " + " | ".join(row).replace("_", " ") + " |" in markdown
        with sweeps.output.with_suffix(".csv").open() as file:
            lines = list(csv.DictReader(file))
        assert [(line["ngpus"], line["bs"]) for line in lines] == [
            ("1", "4"),
            ("1", "8"),
            ("2", "4"),
            ("2", "8"),
        ]

    def test_how_a_figure_came_about_stands_beside_it(self, measured: tuple[Sweeps, str]) -> None:
        sweeps, _ = measured
        found = sweeps.report()
        cell = found["cells"]["1"]["4"]
        assert (cell["state"], cell["exit_code"], cell["reasons"]) == ("completed", 0, {})
        assert cell["epochs"]["train.total_ips"] == [100.0, 300.0, 300.0]
        assert cell["options"] == sweeps.argv("started_1_4")
        assert load(Path(cell["workspace"]) / "report.json")["model"] == "resnetv15"
        assert (found["status"], found["mode"]) == ("completed", "train")
        assert (found["epochs"], found["warmup"], found["benchmark_iters"]) == (3, 1, 50)
        assert found["environment"]["mindspore"] == "2.10.0"
        assert found["dataset"] == {"train": {"path": "synthetic"}}
        assert found["cmd"][:2] == ["benchmark.py", "-o"]
        assert "harmonic" in found["aggregation"]


class TestRuns:
    def test_each_run_has_its_options_and_a_workspace_of_its_own(self, sweeps: Sweeps) -> None:
        options = ("-l", "0.5", "--random_mirror", "0", "--metrics", "--lr-steps", "30,60", "--num-layers=18")
        assert sweeps.run("-n", "1,2", "-b", "4,8", "-i", 50, "-e", 3, *options)[0] == 0
        assert sweeps.started() == ["started_1_4", "started_1_8", "started_2_4", "started_2_8"]
        words = sweeps.argv("started_2_8")
        own = ["--num-devices=2", "--batch-size=8", "--benchmark-iters=50", "--run-epochs=3"]
        own += ["--mode=train_val", f"--workspace={sweeps.output.parent}/bench_runs/1/n2_b8"]
        assert words[-6:] == own
        taken = "-l 0.5 --random-mirror 0 --metrics --lr-steps 30,60 --num-layers=18"
        assert words[:-6] == [
            "--no-metrics",
            "--save-frequency=0",
            "--data-backend",
            "synthetic",
            *taken.split(),
        ]

    def test_options_of_the_command_line_win_over_those_for_measuring_only(self, sweeps: Sweeps) -> None:
        checks = (
            "sys.path.insert(0, os.getcwd())\nfrom src import cli\nfrom src.config import RunnerConfig\n"
            "config = cli.parse(sys.argv[1:], 'runner', RunnerConfig)\n"
            "found = config.training.metrics, config.output.save_frequency, config.model.num_layers\n"
            "assert found == (True, 2, 18)"
        )
        code, _, err = sweeps.run(
            "-b", 4, "--metrics", "--save-frequency", 2, "--num-layers", 18, checks=checks
        )
        assert code == 0, err

    def test_what_a_run_prints_is_kept_and_not_mixed_with_the_tables(self, sweeps: Sweeps) -> None:
        program = "print('to stdout'); print('to stderr', file=sys.stderr)\n" + MEASURES
        _, out, err = sweeps.run("-b", 4, program=program)
        assert "to std" not in out + err
        console = Path(sweeps.report()["cells"]["1"]["4"]["workspace"]) / "console.log"
        assert sorted(console.read_text().splitlines()) == ["to stderr", "to stdout"]
        assert str(console) in err

    def test_dry_run_prints_the_commands_and_starts_and_writes_nothing(self, sweeps: Sweeps) -> None:
        code, out, _ = sweeps.run("-n", "1,2", "-b", 4, "--dry-run")
        lines = out.splitlines()
        assert (code, len(lines)) == (0, 2)
        assert all(line.startswith(sys.executable) for line in lines)
        assert "--num-devices=2 --batch-size=4" in lines[1]
        assert sweeps.started() == []
        assert not sweeps.output.parent.exists()


class TestFailures:
    def test_a_failed_run_is_null_with_its_reason_and_the_others_are_measured(self, sweeps: Sweeps) -> None:
        program = f"if n == 2 and b == 4: sys.exit('runner: rank 1 was killed')\n{MEASURES}"
        code, _, err = sweeps.run("-n", "1,2", "-b", "4,8", "--mode", "train", program=program)
        assert code == 1
        assert sweeps.started() == ["started_1_4", "started_1_8", "started_2_4", "started_2_8"]
        found = sweeps.report()
        assert set(found["metrics"]["2"]["4"].values()) == {None}
        assert found["metrics"]["2"]["8"]["train.total_ips"] == 200
        cell, reason = found["cells"]["2"]["4"], "runner ended with code 1: runner: rank 1 was killed"
        assert (cell["state"], cell["exit_code"]) == ("failed", 1)
        assert cell["reasons"] == dict.fromkeys(found["metric_keys"], reason)
        assert found["scaling"]["train.total_ips"]["2"]["4"] == {"speedup": None, "efficiency": None}
        assert found["status"] == "completed"
        assert f"no figures of 2 devices, batch size 4: {reason}" in err
        assert reason in sweeps.output.with_suffix(".md").read_text()
        assert reason in sweeps.output.with_suffix(".csv").read_text()

    def test_figures_of_a_run_that_then_failed_do_not_count(self, sweeps: Sweeps) -> None:
        program = f"{MEASURES}\nsys.exit(4)"
        assert sweeps.run("-b", 4, program=program)[0] == 1
        found = sweeps.report()
        assert found["metrics"]["1"]["4"]["train.total_ips"] is None
        assert "code 4" in found["cells"]["1"]["4"]["reasons"]["train.total_ips"]

    def test_nothing_of_an_earlier_sweep_is_read(self, sweeps: Sweeps) -> None:
        assert sweeps.run("-b", 4)[0] == 0
        first = sweeps.output.read_text()
        code, _, err = sweeps.run("-b", 4, program="pass  # ends well, and leaves no report")
        assert code == 1
        found = sweeps.report()
        assert set(found["metrics"]["1"]["4"].values()) == {None}
        assert "cannot read the report" in found["cells"]["1"]["4"]["reasons"]["train.total_ips"]
        earlier = sweeps.output.parent / "bench_runs" / "1"
        assert (earlier / "bench.json").read_text() == first
        assert {path.name for path in earlier.iterdir()} == {"bench.json", "bench.md", "bench.csv", "n1_b4"}
        assert f"the earlier bench.json and its tables are now in {earlier}" in err

    def test_an_earlier_report_is_gone_before_the_first_run_ends(self, sweeps: Sweeps) -> None:
        assert sweeps.run("-b", 4)[0] == 0
        look = f"import shutil; shutil.copy({str(sweeps.output)!r}, os.path.join(folder, 'seen'))\n{MEASURES}"
        assert sweeps.run("-b", 4, program=look)[0] == 0
        seen = json.loads((sweeps.folder / "seen").read_text())
        assert seen["status"] == "running"
        assert set(seen["metrics"]["1"]["4"].values()) == {None}
        assert seen["cells"]["1"]["4"]["state"] == "waiting"

    def test_a_full_disk_does_not_hide_the_tables(self, sweeps: Sweeps) -> None:
        away = f"import shutil; shutil.rmtree({str(sweeps.output.parent)!r})"
        code, _, err = sweeps.run("-b", 4, program=f"{MEASURES}\nopen('/dev/null')\n{away}")
        assert code == 1
        assert "benchmark.py: -o/--output" in err
        assert "devices  batch" in err


class TestEnds:
    def test_a_time_limit_ends_every_process_of_the_run(self, sweeps: Sweeps) -> None:
        program = f"if b == 4:\n  exec({STRANGER!r})\n  {FOREVER}\n{MEASURES}"
        begin = time.monotonic()
        code, _, _ = sweeps.run("-b", "4,8", "--timeout", "1.5", program=program)
        assert (code, sweeps.started()) == (1, ["started_1_4", "started_1_8"])
        assert time.monotonic() - begin < 20
        found = sweeps.report()
        assert found["cells"]["1"]["4"]["reasons"]["val.total_ips"] == "no end within --timeout 1.5"
        assert set(found["metrics"]["1"]["4"].values()) == {None}
        assert found["metrics"]["1"]["8"]["train.total_ips"] == 100
        for name in ("started_1_4.json", "stranger"):
            assert not runs(sweeps.await_file(name)), name

    def test_a_run_that_hears_no_signal_is_killed(self, sweeps: Sweeps) -> None:
        sweeps.grace_s = 0.2
        code, _, _ = sweeps.run("-b", 4, "--timeout", "0.5", program=DEAF + FOREVER)
        assert code == 1
        assert sweeps.report()["cells"]["1"]["4"]["exit_code"] == -signal.SIGKILL
        assert not runs(sweeps.await_file("started_1_4.json"))

    @pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    def test_a_signal_ends_the_run_and_keeps_what_was_measured(
        self, sweeps: Sweeps, number: int, code: int
    ) -> None:
        program = f"if b == 8:\n  exec({STRANGER!r})\n  {FOREVER}\n{MEASURES}"
        started = sweeps.start("-b", "4,8,16", program=program)
        stranger = sweeps.await_file("stranger")
        started.send_signal(number)
        _, err = started.communicate(timeout=30)
        assert started.returncode == code, err
        assert not runs(stranger)
        assert not runs(sweeps.await_file("started_1_8.json"))
        assert sweeps.started() == ["started_1_4", "started_1_8"]
        found = sweeps.report()
        assert found["status"] == "interrupted"
        assert found["metrics"]["1"]["4"]["train.total_ips"] == 100
        assert [found["cells"]["1"][b]["state"] for b in ("4", "8", "16")] == [
            "completed",
            "interrupted",
            "waiting",
        ]
        assert "100.0" in err

    def test_a_second_signal_ends_at_once(self, sweeps: Sweeps) -> None:
        started = sweeps.start(
            "-b", 4, program="note('deaf.json')\n" + DEAF + "note('deaf.json')\n" + FOREVER
        )
        pid = sweeps.await_file("deaf.json")
        time.sleep(0.3)
        started.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        begin = time.monotonic()
        started.send_signal(signal.SIGTERM)
        started.communicate(timeout=30)
        assert time.monotonic() - begin < 3
        assert not runs(pid)

    def test_a_killed_benchmark_leaves_no_run_behind(self, sweeps: Sweeps) -> None:
        started = sweeps.start("-b", 4, program=FOREVER)
        pid = sweeps.await_file("started_1_4.json")
        started.kill()
        started.communicate(timeout=30)
        assert not runs(pid)


class TestRefusals:
    """Before anything is started or written."""

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ("-n 0", "-n/--num-devices is 0; each must be at least 1"),
            ("-b x", "--batch-size takes whole numbers, not 'x'"),
            ("--lr -1", "--lr is -1.0; it must be 0 or more"),
            ("--num-layer 18", "unknown option --num-layer; did you mean --num-layers?"),
            ("--workspace run", "--workspace is chosen by benchmark.py"),
            ("--nodes 2", "--nodes 2"),
            ("-o /proc/there/is/none.json", "-o/--output /proc/there/is/none.json cannot be written"),
            ("-o runs.md", "-o/--output runs.md is the JSON report"),
        ],
    )
    def test_in_a_sentence(
        self, options: str, sentence: str, sweeps: Sweeps, monkeypatch: pytest.MonkeyPatch, capsys: Any
    ) -> None:
        monkeypatch.setattr(benchmark, "RUNNER", [sys.executable, sweeps.prepare()])
        words = ["-o", str(sweeps.output), "--data-backend", "synthetic", "-b", "4", *options.split()]
        assert benchmark.main(words) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("benchmark.py: ")
        assert err.count("\n") == 1
        assert sentence in err
        assert sweeps.started() == []
        assert not sweeps.output.parent.exists()

    def test_what_runner_refuses_for_any_of_the_runs(self, sweeps: Sweeps) -> None:
        checks = "if n == 2:\n  print('runner: there is one device only', file=sys.stderr)\n  sys.exit(3)"
        code, _, err = sweeps.run("-n", "1,2", "-b", 4, checks=checks)
        assert (code, err) == (3, "benchmark.py: 2 devices, batch size 4: there is one device only\n")
        assert sweeps.started() == []
        assert not sweeps.output.parent.exists()

    def test_by_the_real_runner(self, tmp_path: Path) -> None:
        for words, code, sentence in (
            (("-n", 100000, "--data-backend", "synthetic"), 2, "-n/--num-devices is 100000"),
            (("--data-root", tmp_path / "none"), 3, f"{tmp_path}/none/train does not exist"),
        ):
            done = command("benchmark.py", "-b", 4, *words, cwd=tmp_path)
            assert (done.returncode, done.stdout) == (code, "")
            assert sentence in done.stderr
            assert done.stderr.count("\n") == 1
        assert list(tmp_path.iterdir()) == []

    def test_a_file_of_somebody_else_is_not_moved(self, sweeps: Sweeps) -> None:
        sweeps.output.parent.mkdir()
        notes = sweeps.output.with_suffix(".md")
        notes.write_text("mine")
        code, _, err = sweeps.run("-b", 4)
        assert (code, sweeps.started()) == (2, [])
        assert f"{notes} is there, and not benchmark.py's" in err
        assert notes.read_text() == "mine"


def test_help_answers_at_once(tmp_path: Path) -> None:
    done = command("benchmark.py", "--lr", "1", "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "--benchmark-iters" in done.stdout
    assert "--num-layers" not in done.stdout
