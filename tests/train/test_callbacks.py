"""Each callback's one thing, driven by hand in the order of Model.train."""

from __future__ import annotations

import math

import numpy as np
import pytest

from src.config import Config, Output, Training
from src.errors import DivergedError
from src.platform.distributed import World
from src.platform.signals import StopFlag
from src.train.record import EpochRecord


class Step:
    """A training step whose sums are given."""

    def __init__(self, *sums):
        self.sums = list(sums)

    def take_sums(self):
        return self.sums.pop(0)


class Context:
    stopped = False

    def request_stop(self):
        self.stopped = True


def done(record: EpochRecord, steps: int) -> EpochRecord:
    for _ in range(steps):
        record.times.add(0.0, 0.1)
    return record


def test_a_step_is_timed_apart_from_its_wait_and_from_the_work_between(monkeypatch):
    from src.train import callbacks

    now = [100.0]
    monkeypatch.setattr(callbacks.time, "perf_counter", lambda: now[0])
    record = EpochRecord(3)
    step_clock, data_clock = callbacks.StepClock(record), callbacks.DataClock(record)
    step_clock.on_train_epoch_begin(None)
    for _ in range(2):
        now[0] += 1.0  # the batch is waited for
        step_clock.on_train_step_begin(None)
        now[0] += 4.0  # the step
        step_clock.on_train_step_end(None)
        now[0] += 2.0  # the other callbacks
        data_clock.on_train_step_end(None)
    assert record.times.waits == [1.0, 1.0]
    assert record.times.durations == [4.0, 4.0]
    assert record.times.totals == [5.0, 7.0]


def test_losses_are_averaged_over_steps_not_over_windows():
    from src.train.callbacks import AverageLoss

    record = EpochRecord(5)
    callback = AverageLoss(record, Step([8.0, 4, 3, 4], [1.0, 1, 0, 1]), World(), every=4)
    windows = []
    for _ in range(5):
        done(record, 1)
        callback.on_train_step_end(None)
        windows.append(record.window_loss)
    assert windows == [0, 0, 0, 8 / 4, 1.0]
    assert record.loss / record.steps == 9 / 5
    assert (record.top1, record.top5) == (3, 5)


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_no_number_ends_training(loss):
    from src.train.callbacks import AverageLoss

    callback = AverageLoss(done(EpochRecord(4), 4), Step([loss, 4, 0, 0]), World(), every=2)
    with pytest.raises(DivergedError, match="--lr") as error:
        callback.on_train_step_end(None)
    assert error.value.exit_code == 4


def test_a_signal_stops_at_the_next_step():
    from src.train.callbacks import StopOnSignal

    stop, context = StopFlag(), Context()
    callback = StopOnSignal(EpochRecord(9), stop, World())
    callback.on_train_step_end(context)
    assert not context.stopped
    stop.received = 15
    callback.on_train_step_end(context)
    assert context.stopped
    assert stop.agreed


def test_many_ranks_ask_each_other_only_every_few_steps():
    from src.train.callbacks import STOP_CHECK_STEPS, StopOnSignal

    asked = []

    class Two(World):
        def any(self, flag):
            asked.append(record.steps_done)
            return False

    record = EpochRecord(40)
    callback = StopOnSignal(record, StopFlag(), Two(0, 2))
    for _ in range(40):
        done(record, 1)
        callback.on_train_step_end(Context())
    assert asked == list(range(STOP_CHECK_STEPS, 41, STOP_CHECK_STEPS))


class Saved:
    def __init__(self, monkeypatch):
        from src.train import callbacks

        self.names: list[str] = []
        monkeypatch.setattr(callbacks.checkpoint, "tensors_of", lambda step: {"a": np.zeros(1)})
        monkeypatch.setattr(callbacks.checkpoint, "save", lambda path, *rest: self.names.append(path.stem))


def checkpoints(tmp_path, frequency, scores, monkeypatch, losses=None):
    """What each epoch saves when validation gives these scores, and the best in the end."""
    from src.train.callbacks import Checkpoints
    from src.weights.resume import checkpoint_path

    saved, meta = Saved(monkeypatch), {"best": None}
    config = Config(training=Training(), output=Output(workspace=tmp_path, save_frequency=frequency))
    record = EpochRecord(1)
    callback = Checkpoints(record, None, config, lambda which: checkpoint_path(config, which), meta)
    each = []
    for epoch, score in enumerate(scores):
        record.restart(epoch)
        done(record, 1)
        record.metrics = {"val.top1": score, "val.loss": (losses or [1.0] * len(scores))[epoch]}
        before = len(saved.names)
        callback.on_train_epoch_end(None)
        each.append(saved.names[before:])
    return each, meta


def test_the_best_is_the_first_of_equals_and_the_last_is_always_there(tmp_path, monkeypatch):
    each, meta = checkpoints(tmp_path, -1, [0.5, 0.7, 0.7, 0.6], monkeypatch)
    improved, other = ["model_last", "model_best"], ["model_last"]
    assert each == [improved, improved, other, other]
    assert meta["best"] == {"epoch": 1, "top1": 0.7, "file": "model_best.safetensors"}
    assert meta["epochs_done"] == 4


def test_every_kth_epoch_is_kept_under_its_number(tmp_path, monkeypatch):
    each, _ = checkpoints(tmp_path, 2, [0.1, 0.2, 0.1, 0.1], monkeypatch)
    assert [name for names in each for name in names if name[-1].isdigit()] == ["model_0002", "model_0004"]


def test_0_saves_nothing(tmp_path, monkeypatch):
    assert checkpoints(tmp_path, 0, [0.1, 0.2], monkeypatch)[0] == [[], []]


def test_a_network_without_numbers_is_never_the_best(tmp_path, monkeypatch):
    each, meta = checkpoints(tmp_path, -1, [0.1, 0.9], monkeypatch, losses=[1.0, None])
    assert each[1] == ["model_last"]
    assert meta["best"]["epoch"] == 0


def test_an_epoch_that_was_stopped_is_neither_saved_nor_reported(tmp_path, monkeypatch):
    from src.train.callbacks import Checkpoints

    saved = Saved(monkeypatch)
    config = Config(output=Output(workspace=tmp_path))
    callback = Checkpoints(done(EpochRecord(4), 3), None, config, lambda which: tmp_path, {"best": None})
    callback.on_train_epoch_end(None)
    assert saved.names == []


def test_statistics_are_averaged_over_ranks(graph_mode):
    from mindspore import nn

    from src.train.callbacks import AverageStatistics

    class Two(World):
        def mean_arrays(self, arrays):
            return [(array + 1.0) / 2 for array in arrays]

    network = nn.SequentialCell(nn.BatchNorm2d(3))
    AverageStatistics(done(EpochRecord(1), 1), network, Two(0, 2)).on_train_epoch_end(None)
    found = {p.name.rsplit(".", 1)[1]: p.asnumpy().tolist() for p in network.get_parameters()}
    assert found["moving_mean"] == [0.5] * 3
    assert found["moving_variance"] == [1.0] * 3
    assert found["gamma"] == [1.0] * 3
    assert found["beta"] == [0.0] * 3
