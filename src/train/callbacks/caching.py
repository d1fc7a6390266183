"""The compiled graph of the training step, kept for later runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mindspore.train import Callback

if TYPE_CHECKING:
    from src.report.journal import Journal
    from src.train.graph_cache import GraphCache


class CachedGraph(Callback):
    """Has the graph that this process's first step compiles taken from --compile-cache, or kept there."""

    def __init__(self, cache: GraphCache, journal: Journal) -> None:
        self.cache: GraphCache | None = cache
        self.journal = journal

    def on_train_step_begin(self, run_context: Any) -> None:
        if self.cache is not None:
            self.cache.begin()

    def on_train_step_end(self, run_context: Any) -> None:
        if self.cache is not None:
            self.journal.console.say(f"--compile-cache: {self.cache.end()}")
            self.cache = None  # graphs of other sizes are compiled as ever
