"""Data and results in object storage, with a stand-in for moxing whose buckets are folders."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Iterator
from unittest import mock

import pytest

from src import cli, staging
from src.config import Config
from src.errors import DataError, OptionError, SuiteError
from src.platform import marks, modelarts, pulse
from src.platform.object_storage import Storage, is_url, open_storage, retry
from src.platform.pulse import Phase
from src.platform.results import Results
from tests.support import ROOT, command

STAND_IN = ROOT / "tests" / "moxing_stand_in"


class Bucket:
    """A bucket in a folder, and how it is to fail."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, root / "bucket"
        (self.folder / "data" / "train").mkdir(parents=True)
        (self.folder / "data" / "train" / "a.bin").write_bytes(b"x" * 100)

    def fails(self, **faults: float) -> None:
        (self.root / ".faults.json").write_text(json.dumps(faults))

    def calls(self) -> list[str]:
        log = self.root / ".calls"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def bucket(tmp_path, monkeypatch) -> Bucket:
    monkeypatch.syspath_prepend(str(STAND_IN))
    monkeypatch.setenv("MOXING_ROOT", str(tmp_path / "obs"))
    return Bucket(tmp_path / "obs")


@pytest.fixture
def storage(bucket) -> Storage:
    return Storage(importlib.import_module("moxing").file, sleep=lambda seconds: None)


@contextlib.contextmanager
def held_up(storage: Storage) -> Iterator[None]:
    """Uploads that begin within this block wait for its end."""
    go_on, send = threading.Event(), storage.send

    def wait_and_send(*arguments: Any) -> None:
        go_on.wait(60)
        send(*arguments)

    with mock.patch.object(storage, "send", wait_and_send):
        yield
        go_on.set()
        for thread in threading.enumerate():
            if thread.name == "results":
                thread.join(60)


def parse(*words: object) -> Config:
    return cli.parse(["--data-backend", "imagefolder", *map(str, words)], "test")


def test_pauses_grow_and_tries_end():
    slept: list[float] = []
    calls: list[int] = []

    def action() -> None:
        calls.append(1)
        raise RuntimeError("503")

    with pytest.raises(SuiteError, match=r"failed after 3 tries: RuntimeError: 503"):
        retry("copying", action, (1.0, 4.0), slept.append)
    assert (slept, len(calls)) == ([1.0, 4.0], 3)


def test_a_full_disk_is_not_waited_for(bucket, storage, tmp_path):
    bucket.fails(full=1)
    with pytest.raises(SuiteError, match="No space left"):
        storage.fetch(f"obs://{bucket.folder.name}/data/train/a.bin", tmp_path / "a.bin")
    assert len(bucket.calls()) == 1
    assert not (tmp_path / "a.bin").exists()


def test_without_room_nothing_is_copied(bucket, storage, tmp_path, monkeypatch):
    from src.platform import object_storage

    monkeypatch.setattr(
        object_storage.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 1 << 20})()
    )
    with pytest.raises(SuiteError, match="--scratch"):
        storage.fetch_folder("obs://bucket/data", tmp_path / "there")
    assert bucket.calls() == []


def test_the_value_decides():
    assert [is_url(v) for v in ("obs://b/x", "s3://b/x", "/home/x", "obs", None)] == [
        True,
        True,
        *[False] * 3,
    ]


def test_without_urls_nothing_changes():
    config = parse("--workspace", "w")
    staged = staging.stage(config, copies=True, writes=True)
    assert (staged.config, staged.notices, staged.finish(3)) == (config, (), 3)


def test_local_paths_are_data_root_and_workspace(tmp_path):
    config = parse("--data_url", tmp_path / "in", "--train_url", tmp_path / "out")
    local = staging.stage(config, copies=True, writes=True).config
    assert (local.data.data_root, local.output.workspace) == (tmp_path / "in", tmp_path / "out")
    config = parse("--train_url", tmp_path / "out", "--workspace", "run1")
    assert staging.stage(config, True, True).config.output.workspace == tmp_path / "out" / "run1"
    with pytest.raises(OptionError, match="not inside --train_url"):
        staging.stage(parse("--train_url", tmp_path / "out", "--workspace", tmp_path / "x"), True, True)
    with pytest.raises(OptionError, match="give one of the two"):
        staging.stage(parse("--data_url", tmp_path, "--data-root", tmp_path), True, True)


def test_urls_without_moxing_are_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "moxing", None)
    with pytest.raises(OptionError, match=r"takes moxing.*start from one of ModelArts' images"):
        open_storage("obs://b")


def test_data_is_copied_once_and_again_only_if_it_changed(bucket, storage, tmp_path):
    bucket.fails(copy_parallel=2)
    target = tmp_path / "data"
    assert staging.fetch_data(storage, "obs://bucket/data/", target)
    assert (target / "train" / "a.bin").read_bytes() == b"x" * 100
    assert len(bucket.calls()) == 3
    assert not staging.fetch_data(storage, "obs://bucket/data/", target)
    (target / "train" / "a.bin").write_bytes(b"x")
    assert staging.fetch_data(storage, "obs://bucket/data", target)
    with pytest.raises(DataError, match="holds no files"):
        staging.fetch_data(storage, "obs://bucket/dta", target)


def test_what_arrives_cut_is_noticed(bucket, storage, tmp_path, monkeypatch):
    (tmp_path / "data" / "train").mkdir(parents=True)
    (tmp_path / "data" / "train" / "a.bin").write_bytes(b"x" * 99)
    monkeypatch.setattr(storage._file, "copy_parallel", lambda source, target: None)
    with pytest.raises(DataError, match="has 100 bytes, and 99 arrived"):
        staging.fetch_data(storage, "obs://bucket/data", tmp_path / "data")


def test_what_does_not_arrive_is_noticed(bucket, storage, tmp_path, monkeypatch):
    monkeypatch.setattr(storage._file, "copy_parallel", lambda source, target: None)
    with pytest.raises(DataError, match=r"1 of 1 files.*train/a.bin"):
        staging.fetch_data(storage, "obs://bucket/data", tmp_path / "data")


class TestMarks:
    def test_waiting_ends_with_the_copiers_word(self, tmp_path):
        slept: list[float] = []

        def sleep(seconds: float) -> None:
            slept.append(seconds)
            if len(slept) == 3:
                marks.leave(tmp_path, "staged")

        marks.wait(tmp_path, "staged", sleep=sleep)
        assert len(slept) == 3

    def test_neither_waiting_nor_copying_is_taken_for_a_hang(self, bucket, tmp_path, monkeypatch):
        signs: list[Phase] = []
        monkeypatch.setattr(pulse, "give", signs.append)
        with mock.patch.object(marks, "is_done", side_effect=[False, False, True]):
            marks.wait(tmp_path, "staged", sleep=lambda seconds: None)
        assert signs == [Phase.STAGING] * 2
        signs.clear()
        monkeypatch.setattr(
            staging, "_copy_for_the_node", lambda *_: signs.append(Phase.SAVING)
        )  # stands for copying
        config = parse("--data_url", f"obs://{bucket.folder.name}/data", "--scratch", tmp_path)
        staging.stage(config, copies=True, writes=True)
        assert signs == [Phase.STAGING, Phase.SAVING, Phase.STARTING]

    def test_failure_is_passed_on(self, tmp_path):
        marks.leave(tmp_path, "staged", "403 forbidden")
        with pytest.raises(SuiteError, match="copies for this node failed: 403 forbidden"):
            marks.wait(tmp_path, "staged")

    def test_waiting_ends(self, tmp_path):
        clock = iter([0.0, 1.0, 11.0])
        with pytest.raises(SuiteError, match="after 10 s"):
            marks.wait(tmp_path, "staged", 10, lambda seconds: None, lambda: next(clock))

    def test_a_failed_copy_leaves_its_mark(self, bucket, tmp_path, monkeypatch):
        monkeypatch.setenv("SUITE_ATTEMPT", "one")
        config = parse("--data_url", "obs://bucket/none", "--scratch", tmp_path)
        with pytest.raises(DataError):
            staging.stage(config, copies=True, writes=True)
        with pytest.raises(SuiteError, match="holds no files"):
            staging.stage(config, copies=False, writes=False)

    def test_the_workspace_is_claimed_before_anything_is_brought_there(self, bucket, tmp_path, monkeypatch):
        events: list[object] = []
        monkeypatch.setattr(staging, "_copy_for_the_node", lambda *_: events.append("copied"))
        train_url = f"obs://{bucket.folder.name}/results"
        config = parse("--train_url", train_url, "--scratch", tmp_path, "--workspace", tmp_path / "run")
        staging.stage(config, copies=True, writes=True, claim=events.append)
        assert events == [tmp_path / "run", "copied"]

    def test_an_attempt_has_a_folder_of_its_own(self, tmp_path, monkeypatch):
        monkeypatch.setenv("MA_VJ_NAME", "job/7")
        code = "from src.platform import modelarts as m; print(m.attempt_folder(m.Path('/s')))"

        def told(**variables: str) -> str:
            done = subprocess.run(
                [sys.executable, "-c", code],
                cwd=ROOT,
                capture_output=True,
                text=True,
                env={**os.environ, **variables},
            )
            return done.stdout.strip()

        ranks = [told(MS_ROLE="MS_WORKER", MS_WORKER_NUM="2", RANK_ID=str(rank)) for rank in (0, 1)]
        assert ranks[0] == ranks[1] != ""
        assert ranks[0].startswith("/s/job_7-")
        assert told() != told(), "runs that follow each other"
        assert told(SUITE_ATTEMPT="given") == "/s/job_7-given"


class TestResults:
    @pytest.fixture
    def results(self, bucket, storage, tmp_path) -> Results:
        workspace = tmp_path / "w"
        workspace.mkdir()
        for name in ("report.json", "log.log", "model_last.safetensors"):
            (workspace / name).write_text(name)
        return Results(workspace, "obs://bucket/out", tmp_path / "sent.json", lambda: storage)

    def test_only_what_changed_is_sent_and_the_report_last(self, bucket, results):
        assert results.finish() == ""
        targets = [line.split()[-1].rsplit("/", 1)[1] for line in bucket.calls()]
        assert targets == ["model_last.safetensors", "log.log", "report.json"]
        (results.workspace / "log.log").write_text("more")
        assert results.finish() == ""
        assert len(bucket.calls()) == 4
        assert (bucket.folder / "out" / "log.log").read_text() == "more"
        assert {p.name for p in results.workspace.iterdir()} == set(targets)

    def test_offers_do_not_hold_up_and_do_not_pile_up(self, bucket, storage, results):
        with held_up(storage):
            for _ in range(5):
                results.offer()
            assert bucket.calls() == []
            assert sum(thread.name == "results" for thread in threading.enumerate()) == 1
        assert results.finish() == ""
        assert len(bucket.calls()) == 3

    def test_a_failure_is_told_and_loses_nothing(self, bucket, results):
        bucket.fails(upload=-1)
        fault = results.finish()
        assert "503" in fault
        assert str(results.workspace) in fault
        assert (results.workspace / "report.json").read_text() == "report.json"
        bucket.fails()
        assert results.finish() == ""

    def test_a_hanging_connection_has_a_limit(self, bucket, storage, results):
        with held_up(storage):
            assert "not done after" in results.finish(limit_s=0.2)
        assert results.finish() == ""

    @pytest.mark.parametrize(("code", "expected"), [(0, 6), (4, 4), (143, 143)])
    def test_the_exit_code_tells_it_only_where_all_else_went_well(self, results, bucket, code, expected):
        bucket.fails(upload=-1)
        assert staging.Staged(Config(), results).finish(code) == expected

    def test_results_of_an_earlier_attempt_are_fetched(self, bucket, storage, results, tmp_path):
        results.finish()
        config = parse("--workspace", tmp_path / "new")
        assert staging.fetch_results(storage, "obs://bucket/out", config)
        assert (tmp_path / "new" / "model_last.safetensors").exists()
        assert not staging.fetch_results(storage, "obs://bucket/out", config), "it is here already"
        assert not staging.fetch_results(
            storage, "obs://bucket/nothing", parse("--workspace", tmp_path / "n")
        )


class TestStrangers:
    WORDS = ["--num_gpus", "8", "--init_method=tcp://h:1", "-b", "32", "--rank", "-1"]

    def test_elsewhere_they_are_an_error(self):
        with pytest.raises(OptionError, match="unknown option --num_gpus"):
            cli.parse(self.WORDS, "test")

    def test_they_are_taken_with_their_values(self):
        taken: list[str] = []
        config = cli.parse([*self.WORDS, "--accumulation", "2"], "test", strangers=taken)
        assert (config.training.batch_size, config.training.accumulation) == (32, 2)
        assert taken == ["--num-gpus", "8", "--init-method=tcp://h:1", "--rank", "-1"]

    @pytest.mark.parametrize("name", ["MA_JOB_DIR", "DLS_TASK_NUMBER", "BATCH_CUSTOM0_HOSTS", None])
    def test_the_platform_shows_in_the_environment(self, name, monkeypatch):
        for known in [n for n in os.environ if n.startswith(("MA_", "DLS_", "BATCH_"))]:
            monkeypatch.delenv(known)
        if name:
            monkeypatch.setenv(name, "x")
        assert modelarts.is_here() == bool(name)
        assert (staging.strangers() is None) == (name is None)


def test_scratch(tmp_path, monkeypatch):
    monkeypatch.setattr(modelarts, "CACHE", tmp_path)
    assert modelarts.scratch_folder(None) == tmp_path / "resnet-suite"
    assert modelarts.scratch_folder(Path("/s")) == Path("/s")
    monkeypatch.setattr(modelarts, "CACHE", tmp_path / "none")
    assert modelarts.scratch_folder(None).name == f"resnet-suite-{os.getuid()}"


RANK = """
import sys, time
from src import cli, staging
from src.errors import SuiteError
from src.platform import environment
config = cli.parse(sys.argv[1:], "test")
try:
    place = environment.enter("auto", "CPU")
    staged = staging.stage(config, copies=place.local_rank == 0, writes=place.rank == 0)
    print(staged.config.data.data_root)
except SuiteError as error:
    sys.exit(str(error))
"""


@pytest.mark.parametrize("folder", ["data", "nothing"])
def test_processes_that_the_platform_started_copy_once(bucket, tmp_path, folder):
    """Four cards, with the variables of a start once per card; failure reaches all."""
    bucket.fails(slow_s=0.5)
    options = ["--data-backend", "imagefolder", "--data_url", f"obs://bucket/{folder}", "--scratch", tmp_path]
    places = [{"RANK_ID": str(rank), "DEVICE_ID": str(rank)} for rank in range(4)]
    launcher = {"MS_ROLE": "MS_WORKER", "MS_WORKER_NUM": "4"}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, *map(str, options)],
            cwd=ROOT,
            env={**os.environ, **launcher, "PYTHONPATH": f"{STAND_IN}:{ROOT}", **place},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for place in reversed(places)
    ]
    told = [process.communicate(timeout=60) for process in started]
    if folder == "data":
        assert [process.returncode for process in started] == [0] * 4, told
        assert len({out for out, _ in told}) == 1
        assert len(bucket.calls()) == 1
    else:
        assert [process.returncode for process in started] == [1] * 4
        assert all("obs://bucket/nothing holds no files" in err for _, err in told)


@pytest.mark.deep
def test_a_job_from_start_to_finish(digits, tmp_path, monkeypatch):
    """Two ranks, everything in a bucket; then a restart on an empty machine."""
    bucket = Bucket(tmp_path / "obs")
    (bucket.folder / "digits").symlink_to(digits / "records")
    monkeypatch.setenv("PYTHONPATH", str(STAND_IN))
    monkeypatch.setenv("MOXING_ROOT", str(bucket.root))
    monkeypatch.setenv("MA_JOB_DIR", "/home/ma-user/modelarts/user-job-dir")
    monkeypatch.setenv("MA_VJ_NAME", "job-1")
    bucket.fails(copy_parallel=1, upload=1)
    config = ["--config", ROOT / "configs" / "digits.yaml", "-b", 16, "--num-examples", 64, "--seed", 1]
    urls = ["--data_url", "obs://bucket/digits/", "--train_url", "obs://bucket/out", "--num_gpus", 2]

    def run(scratch: str, *words: object) -> subprocess.CompletedProcess[str]:
        options = [*config, "-e", 2, *urls, "--scratch", tmp_path / scratch, *words]
        return command("runner", "-n", 2, *options, timeout=600)

    first = run("one", "--run-epochs", 1)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "ignored as ModelArts appends some of its own: --num-gpus 2" in first.stdout
    out = bucket.folder / "out"
    assert json.loads((out / "report.json").read_text())["epochs"] == [0]
    held = {str(p.relative_to(out)) for p in out.rglob("*") if p.is_file()}
    assert held >= {"model_last.safetensors", "log.log", "dllogger_log.log", "ranks/rank_1.log"}
    assert len([line for line in bucket.calls() if line.startswith("copy_parallel")]) == 2  # one failed

    again = run("two")
    assert again.returncode == 0, again.stdout + again.stderr
    report = json.loads((out / "report.json").read_text())
    assert (report["status"], report["epochs"]) == ("completed", [0, 1])
    assert "continuing" in again.stdout


@pytest.mark.slow
def test_a_bucket_that_refuses_leaves_the_results_here_and_tells_it(tmp_path, monkeypatch):
    """One process without runner sends its results itself; what it could not send, the next start does."""
    bucket = Bucket(tmp_path / "obs")
    monkeypatch.setenv("PYTHONPATH", str(STAND_IN))
    monkeypatch.setenv("MOXING_ROOT", str(bucket.root))
    bucket.fails(full=1)  # which is not tried again, and so is quick
    network = ["--num-layers", 18, "--num-classes", 10, "--image-shape", "3,16,16", "-b", 16, "-e", 2]
    words = ["--data-backend", "synthetic", "--num-examples", 32, *network, "--warmup-epochs", 0, "--seed", 1]
    words += ["--data_url", "obs://bucket/unread", "--train_url", "obs://bucket/out", "--scratch", tmp_path]
    lost = command("train.py", *words, "--run-epochs", 1)
    assert lost.returncode == 6, lost.stdout + lost.stderr
    (workspace,) = tmp_path.glob("results-*")
    told = "the results are not, or not all, in obs://bucket/out (copying model_best.safetensors to"
    assert told in lost.stdout
    assert lost.stdout.rstrip().endswith(f"they are in {workspace}")
    assert json.loads((workspace / "report.json").read_text())["epochs"] == [0]
    bucket.fails()
    done = command("train.py", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((bucket.folder / "out" / "report.json").read_text())["epochs"] == [0, 1]
    assert (bucket.folder / "out" / "model_last.safetensors").stat().st_size > 1_000_000
