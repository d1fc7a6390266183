"""--compile-cache: what tells graphs apart, whole entries only, and runs that end as without it."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from src import cli, preflight
from src.errors import OptionError
from src.platform.distributed import World
from src.train import graph_cache
from src.train.graph_cache import GraphCache, key_of, source_digest
from src.weights import checkpoint
from tests.ranks import start
from tests.support import command

FACTS = {"classes": 10, "size": (32, 32), "steps per epoch": 5}
RUN = [
    *("--data-backend", "synthetic", "--num-classes", 10, "--image-shape", "3,32,32", "--num-layers", 18),
    *("-b", 8, "--num-examples", 24, "-e", 2, "--warmup-epochs", 0, "--lr", 0.1, "--data-threads", 1),
    *("--mode", "train", "--seed", 5, "--image-size-steps", "64@1"),
]


def key(*words: str, world: World = World(), **facts: object) -> dict:  # noqa: B008 - it is frozen
    return key_of(cli.parse(list(words), "x"), world, {**FACTS, **facts})


def entry(tmp_path: Path, *words: str, **others: object) -> Path:
    return GraphCache(tmp_path, key(*words, **others)).entry  # type: ignore[arg-type]


class TestKey:
    @pytest.mark.parametrize(
        "words",
        [
            ["--label-smoothing", "0.2"], ["--wd", "0"], ["--mom", "0.9"], ["--lr", "0.1"], ["-b", "8"],
            ["-e", "8"], ["--warmup-epochs", "0"], ["--image-shape", "3,32,32"], ["--num-layers", "18"],
            ["--no-metrics"], ["--arch", "resnetv1"], ["--ema", "0.9"], ["--grad-clip", "1"],
            ["--accumulation", "2"], ["--optimizer", "lars"], ["--dtype", "float16"], ["--mixup", "0.2"],
            ["--batchnorm-eps", "1e-3"], ["--benchmark-iters", "7"], ["--num-examples", "512"],
        ],
        ids=" ".join,
    )  # fmt: skip
    def test_an_option_that_enters_a_graph_tells_graphs_apart(self, tmp_path: Path, words: list[str]) -> None:
        assert entry(tmp_path, *words) != entry(tmp_path)

    @pytest.mark.parametrize(
        "words",
        [
            ["--seed", "3"],
            ["--workspace", "w"],
            ["--run-epochs", "1"],
            ["--data-root", "d"],
            ["--resume", "off"],
        ],
        ids=" ".join,
    )
    def test_where_files_are_and_what_is_drawn_does_not(self, tmp_path: Path, words: list[str]) -> None:
        assert entry(tmp_path, *words) == entry(tmp_path)

    def test_an_option_that_is_new_is_taken_to_enter_the_graph(self) -> None:
        kept = set(key()["options"])
        assert kept | graph_cache.NOT_IN_GRAPH == set(cli.parse([], "x").plain())
        assert not kept & graph_cache.NOT_IN_GRAPH

    @pytest.mark.parametrize("fact", FACTS)
    def test_what_the_data_decide(self, tmp_path: Path, fact: str) -> None:
        assert entry(tmp_path, **{fact: 7}) != entry(tmp_path)

    @pytest.mark.parametrize("change", [{"size": 4}, {"rank": 1}, {"device": "GPU"}], ids=str)
    def test_the_place_in_the_world(self, tmp_path: Path, change: dict) -> None:
        world = World(size=2)
        other = dataclasses.replace(world, **change)
        assert entry(tmp_path, world=other) != entry(tmp_path, world=world)

    def test_versions(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        before = entry(tmp_path)
        for name in ("python", "mindspore", "numpy"):
            changed = {**graph_cache.machine.versions(), name: "9.9"}
            monkeypatch.setattr(graph_cache.machine, "versions", lambda changed=changed: changed)
            assert entry(tmp_path) != before, name
            monkeypatch.undo()

    @pytest.mark.parametrize(
        "name", ["ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "OMP_NUM_THREADS", "MS_DEV_X"]
    )
    def test_variables(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        before = entry(tmp_path)
        monkeypatch.setenv(name, "another value")
        assert entry(tmp_path) != before

    def test_the_source(self, tmp_path: Path) -> None:
        (tmp_path / "train").mkdir()
        file = tmp_path / "train" / "loss.py"
        seen = [source_digest(tmp_path)]
        for text in ("a = 1", "a = 2"):
            file.write_text(text)
            seen.append(source_digest(tmp_path))
        file.rename(tmp_path / "train" / "gain.py")
        seen.append(source_digest(tmp_path))
        assert len(set(seen)) == len(seen)
        assert key()["source"] == source_digest(Path(graph_cache.__file__).parent.parent)


class TestEntries:
    """With files that a test writes, in MindSpore's stead, into the folder that it was told."""

    @pytest.fixture(autouse=True)
    def environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("MS_COMPILER_CACHE_ENABLE", "MS_COMPILER_CACHE_PATH"):
            monkeypatch.delenv(name, raising=False)

    def compiled(self, folder: Path, content: str | None = "graph", **facts: object) -> tuple[list[str], str]:
        """The names that MindSpore would find, and what is told; it leaves a file there if it finds none."""
        cache = GraphCache(folder, key(**facts))  # type: ignore[arg-type]
        cache.begin()
        assert os.environ["MS_COMPILER_CACHE_ENABLE"] == "1"
        own = Path(os.environ["MS_COMPILER_CACHE_PATH"])
        assert folder.resolve() not in own.parents, "two processes would write the same files"
        found = [path.name for path in own.rglob("*") if path.is_file()]
        if content is not None and not found:
            (own / "rank_0").mkdir()
            (own / "rank_0" / "0.mindir").write_text(content)
        told = cache.end()
        assert "MS_COMPILER_CACHE_ENABLE" not in os.environ
        assert not own.exists()
        return found, told

    def test_what_one_process_made_the_next_one_finds(self, tmp_path: Path) -> None:
        folder = tmp_path / "made" / "when needed"
        found, told = self.compiled(folder)
        assert (found, "kept in" in told) == ([], True)
        found, told = self.compiled(folder)
        assert (found, "taken from" in told) == (["0.mindir"], True)
        assert self.compiled(folder, classes=11)[0] == [], "the graph of another network"
        assert len(list(folder.iterdir())) == 2, "something unfinished is left"

    def test_a_damaged_entry_is_not_taken_but_replaced(self, tmp_path: Path) -> None:
        self.compiled(tmp_path)
        (file,) = tmp_path.rglob("*.mindir")
        file.write_text("grapf")
        found, told = self.compiled(tmp_path, "new")
        assert (found, "kept in" in told) == ([], True)
        assert file.read_text() == "new"
        (tmp_path / file.relative_to(tmp_path).parts[0] / "contents.json").write_text("{")
        assert self.compiled(tmp_path)[0] == []

    def test_an_entry_in_another_ones_place_is_not_taken(self, tmp_path: Path) -> None:
        self.compiled(tmp_path)
        (made,) = tmp_path.iterdir()
        shutil.copytree(made, entry(tmp_path, classes=11))
        assert self.compiled(tmp_path, classes=11)[0] == []

    def test_a_folder_that_cannot_be_written_costs_no_run(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        told = self.compiled(tmp_path / "file" / "cache")[1]
        assert "cannot be kept" in told
        assert "Not a directory" in told

    def test_no_room_for_temporary_files_costs_no_run(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(graph_cache.tempfile, "tempdir", str(tmp_path / "nowhere"))
        cache = GraphCache(tmp_path, key())
        cache.begin()
        assert "MS_COMPILER_CACHE_ENABLE" not in os.environ
        assert cache.end() == f"not used: {tmp_path / 'nowhere'}: No such file or directory"

    def test_mindspore_leaves_nothing(self, tmp_path: Path) -> None:
        assert self.compiled(tmp_path, content=None) == ([], "MindSpore made no graph to keep")
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [["--mode", "val", "--load", "x"], ["--test-io"]], ids=" ".join)
def test_refused_where_nothing_is_trained(words: list[str]) -> None:
    with pytest.raises(OptionError, match="--compile-cache is about training"):
        cli.parse([*words, "--compile-cache", "c"], "x")


def test_refused_where_nobody_has_seen_it_work() -> None:
    config = cli.parse(["--compile-cache", "c"], "x")
    preflight.check_device(config, "CPU")
    with pytest.raises(OptionError, match="--compile-cache on Ascend"):
        preflight.check_device(config, "Ascend")


def steps(folder: Path, cache: Path | str, *words: object, seed: int = 3, ranks: int = 1) -> tuple[dict, str]:
    """The whole state after a few steps, of all ranks, and what they said of the cache."""
    folder.mkdir(exist_ok=True)
    outcome = start("tests.cached_graph", folder, ranks, cache, seed, *words)
    assert outcome.code == 0, outcome.message + (folder / f"rank_0_of_{ranks}.log").read_text()[-2000:]
    state, told = {}, []
    for rank in range(ranks):
        with np.load(folder / f"rank_{rank}.npz") as found:
            state.update({f"{name} of {rank}": found[name].tobytes() for name in found.files})
        told.append(
            json.loads((folder / f"rank_{rank}.json").read_text())["told"]
            .split(" in /")[0]
            .split(" from /")[0]
        )
    (said,) = set(told)
    return state, said


MADE, TAKEN = "the graph is kept", "the graph was taken"


@pytest.mark.deep
def test_other_constants_are_another_graph_and_the_same_ones_the_same_bits(tmp_path: Path) -> None:
    """With one key for all, as MindSpore's cache has it, the second and the third would be the first."""
    run, cache = tmp_path / "run", tmp_path / "cache"
    variants = [("--label-smoothing", 0), ("--label-smoothing", 0.1), ("--label-smoothing", 0, "--wd", 0.05)]
    plain = [steps(run, "-", *words)[0] for words in variants]
    assert len({tuple(state.items()) for state in plain}) == 3, "the options must make a difference here"
    for expected in (MADE, TAKEN):
        for words, state in zip(variants, plain):
            assert steps(run, cache, *words) == (state, expected), words
    state, said = steps(run, cache, *variants[1], seed=4)  # other weights and images, the same graph
    assert said == TAKEN
    assert state == steps(run, "-", *variants[1], seed=4)[0]


@pytest.mark.deep
def test_without_the_key_mindspore_trains_with_the_old_constants(tmp_path: Path) -> None:
    """If this fails, MindSpore has mended its cache, and ours is of no use any more."""
    run, cache = tmp_path / "run", tmp_path / "cache"
    run.mkdir()
    (run / "one key for all").touch()
    first, _ = steps(run, cache, "--label-smoothing", 0)
    assert steps(run, cache, "--label-smoothing", 0.1) == (first, TAKEN)


@pytest.mark.deep
@pytest.mark.parametrize(
    "words",
    [
        ["--ema", 0.9, "--grad-clip", 1],
        ["--accumulation", 2, "--optimizer", "lars"],
        ["--dtype", "float16", "--optimizer", "lamb"],
        ["--dtype", "float16", "--amp", "--ema", 0.9, "--accumulation", 2],
        ["--optimizer", "adamw", "--bn-weight-decay", "--no-metrics"],
        ["--optimizer", "nag", "--loss", "bce"],
    ],
    ids=lambda words: " ".join(map(str, words)),
)
def test_every_kind_of_step_is_the_same_from_a_cached_graph(tmp_path: Path, words: list) -> None:
    run, cache = tmp_path / "run", tmp_path / "cache"
    plain, _ = steps(run, "-", *words)
    assert steps(run, cache, *words) == (plain, MADE)
    assert steps(run, cache, *words) == (plain, TAKEN)


@pytest.mark.deep
def test_two_ranks(tmp_path: Path) -> None:
    run, cache = tmp_path / "run", tmp_path / "cache"
    plain, _ = steps(run, "-", ranks=2)
    assert steps(run, cache, ranks=2) == (plain, MADE)
    assert steps(run, cache, ranks=2) == (plain, TAKEN)
    assert len(list(cache.iterdir())) == 2
    assert steps(run, cache)[1] == MADE, "one rank's graph reduces no gradients"


@pytest.mark.deep
def test_a_run_that_is_continued_in_an_epoch_of_another_size_ends_as_an_unbroken_one(tmp_path: Path) -> None:
    cache = ("--compile-cache", tmp_path / "cache")
    unbroken, _ = trained(tmp_path / "unbroken")
    for number, expected in ((1, MADE), (2, TAKEN)):
        folder = tmp_path / f"parts {number}"
        first = trained(folder, *cache, "--run-epochs", 1)[1]
        state, second = trained(folder, *cache)
        assert (expected in first, expected in second) == (True, True), (first, second)
        assert state == unbroken


def trained(folder: Path, *words: object) -> tuple[dict[str, bytes], str]:
    """The whole state after a run of train.py, and what it said of the cache."""
    done = command("train.py", *RUN, *words, "--workspace", folder)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if "compile-cache:" in line]
    tensors = checkpoint.read(folder / "model_last.safetensors").tensors
    return {name: value.tobytes() for name, value in tensors.items()}, "".join(said)
