"""--compile-cache: the training step's compiled graph, used again for the very same step and no other.

MindSpore 2.10 numbers a process's graphs as they are compiled, and with its cache on takes the file of that
number for the next graph if the start script and what that imports are unchanged. It does not look at the
constants of the cells: a graph with another label smoothing or weight decay, another batch size or another
network is returned all the same, and trains silently wrong or crashes. So here its cache is on for one graph
of a process, the first training step's; it works in a folder of its own; and what it made is found again
under a digest of all that a graph is made of.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Mapping

from src.platform import environment, machine

if TYPE_CHECKING:
    from src.config import Config
    from src.platform.distributed import World

SOURCE = Path(__file__).resolve().parent.parent  # of the suite, all of which can enter a graph
GRAPH, CONTENTS = "graph", "contents.json"  # in an entry: MindSpore's files, and what the entry is
# How the names begin of variables with a say in how graphs are compiled and computed.
COMPILING = ("MS_DEV_", "MS_JIT_", "MS_ALLOC_", "ONEDNN_", "DNNL_", "OMP_")
# Options that say where files are and what is told. All others are taken to enter the graph, but for the
# seed: what it draws are parameters, which a cached graph is given anew.
NOT_IN_GRAPH = {
    "config", "workspace", "overwrite", "model-prefix", "save-frequency", "save-every-steps",
    "save-every-minutes", "keep", "resume", "log", "dllogger-log", "report", "profile", "tensorboard",
    "compile-cache", "data-root", "data-train", "data-val", "data-url", "train-url", "scratch", "run-epochs",
    "disp-batches", "seed",
}  # fmt: skip


def key_of(config: Config, world: World, facts: Mapping[str, Any]) -> dict[str, Any]:
    """All that the graph of a training step is made of; `facts`: what the data set decides."""
    return {
        "options": {name: value for name, value in config.plain().items() if name not in NOT_IN_GRAPH},
        "facts": dict(facts),
        "rank": world.rank,
        "ranks": world.size,
        "device": world.device,
        "versions": machine.versions(),
        "variables": {k: v for k, v in sorted(environment.given().items()) if k.startswith(COMPILING)},
        "source": source_digest(),
    }


def source_digest(folder: Path = SOURCE) -> str:
    """SHA-256 of every Python file below a folder, and of its name there."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


class GraphCache:
    """One graph of one process: `begin` before it is compiled, `end` after it. Neither ever ends a run."""

    def __init__(self, folder: Path, key: Mapping[str, Any]) -> None:
        self.key = json.loads(json.dumps(key))
        digest = hashlib.sha256(json.dumps(self.key, sort_keys=True).encode()).hexdigest()
        self.entry = folder.resolve() / digest[:32]
        self._own: tempfile.TemporaryDirectory[str] | None = None
        self._taken: dict[str, str] = {}
        self._obstacle = ""

    def begin(self) -> None:
        """Turn MindSpore's cache on, in a folder that holds the entry's files if it is whole."""
        try:
            self._own = tempfile.TemporaryDirectory(prefix="compile-cache-", ignore_cleanup_errors=True)
            graph = Path(self._own.name, GRAPH)
            self._taken = self._take(graph)
            if not self._taken:
                shutil.rmtree(graph, ignore_errors=True)
                graph.mkdir()
        except OSError as error:
            self._obstacle = f"not used: {tempfile.gettempdir()}: {error.strerror or error}"
            return
        environment.compile_cache(graph)

    def _take(self, graph: Path) -> dict[str, str]:
        """Copy the entry's files; their digests, or nothing if there is no entry, or not as it was kept."""
        try:
            told = json.loads((self.entry / CONTENTS).read_text(encoding="utf-8"))
            shutil.copytree(self.entry / GRAPH, graph)
            whole = told["key"] == self.key and told["sha256"] == digests(graph)
            return dict(told["sha256"]) if whole else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def end(self) -> str:
        """Turn it off again, and keep what was made; a sentence on what came of it."""
        environment.compile_cache(None)
        if self._obstacle or self._own is None:
            return self._obstacle
        graph = Path(self._own.name, GRAPH)
        try:
            made = digests(graph)
            if made == self._taken:
                return f"the graph was taken from {self.entry}" if made else "MindSpore made no graph to keep"
            self._keep(graph, made)
            return f"the graph is kept in {self.entry}"
        except OSError as error:
            return f"the graph cannot be kept in {self.entry.parent}: {error.strerror or error}"
        finally:
            self._own.cleanup()

    def _keep(self, graph: Path, made: Mapping[str, str]) -> None:
        """Put it in its place whole, all at once; what is there and was not whole makes room."""
        self.entry.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".making-", dir=self.entry.parent) as making:
            new = Path(making, "entry")
            shutil.copytree(graph, new / GRAPH)
            contents = {"key": self.key, "sha256": dict(made)}
            (new / CONTENTS).write_text(json.dumps(contents, indent=1) + "\n", encoding="utf-8")
            if self.entry.exists():
                self.entry.rename(Path(making, "damaged"))
            new.rename(self.entry)


def digests(folder: Path) -> dict[str, str]:
    """File below the folder -> its SHA-256."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
