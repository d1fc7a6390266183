"""Each callback's one thing, driven by hand in the order of Model.train."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest

from src.config import Config, Output, Training
from src.errors import DivergedError
from src.platform.distributed import World
from src.platform.signals import Requests
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
    monkeypatch.setattr(callbacks.timing.time, "perf_counter", lambda: now[0])
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
    from src.train.callbacks import Sums

    record = EpochRecord(5)
    callback = Sums(record, Step([8.0, 4, 3, 4, 32, 0], [1.0, 1, 0, 1, 8, 1]), World(), every=4)
    windows = []
    for _ in range(5):
        done(record, 1)
        callback.on_train_step_end(None)
        windows.append((record.window_loss, record.window_steps))
    assert windows == [(0, 0), (0, 0), (0, 0), (8 / 4, 4), (1.0, 1)]
    assert record.loss / record.steps == 9 / 5
    assert (record.top1, record.top5, record.counted, record.skipped) == (3, 5, 40, 1)


def test_sums_are_over_devices_and_a_skipped_update_is_one_of_all():
    class Two(World):
        def sum(self, values):
            return [2 * value for value in values]

    from src.train.callbacks import Sums

    record = done(EpochRecord(4), 4)
    Sums(record, Step([8.0, 4, 3, 4, 32, 1]), Two(0, 2), every=4).on_train_step_end(None)
    assert (record.window_loss, record.top1, record.counted, record.skipped) == (2.0, 6, 64, 1)


class Skipping:
    """A training step whose updates are skipped where `pattern` says so, and how often it was asked."""

    def __init__(self, pattern: str, accumulation: int = 1, row: int = 0):
        self.pattern, self.record, self.first_row = pattern, EpochRecord(10**6, accumulation), row
        self.asked_at: list[int] = []

    def skipped_in_a_row(self) -> int:
        updates = self.record.steps_done // self.record.accumulation
        self.asked_at.append(updates)
        row = re.search("x*$", "x" * self.first_row + self.pattern[:updates]).group()
        return len(row)


def divergence(step: Skipping, most: int) -> tuple[float, str] | None:
    """The update whose end ended training, counted from 1, and what was told."""
    from src.train.callbacks import StopOnDivergence

    record = step.record
    callback = StopOnDivergence(record, step, Training(disp_batches=1000, max_nonfinite_steps=most))
    for n in range(len(step.pattern) * record.accumulation):
        done(record, 1)
        try:
            callback.on_train_step_end(None)
        except DivergedError as error:
            return (n + 1) / record.accumulation, str(error)
    return None


@pytest.mark.parametrize("most", [1, 2, 3, 5, 10])
@pytest.mark.parametrize("accumulation", [1, 4])
def test_so_many_steps_in_a_row_without_finite_gradients_end_training_at_the_last_of_them(most, accumulation):
    """However seldom progress is displayed."""
    rng = np.random.RandomState(most)
    for _ in range(50):
        pattern = "".join(rng.choice(list("x."), 60, p=[0.8, 0.2]))
        row = pattern.find("x" * most)
        found = divergence(Skipping(pattern, accumulation), most)
        if row < 0:
            assert found is None, pattern
            continue
        assert found[0] == row + most, pattern
        for word in (f"{most} steps in a row", f"--max-nonfinite-steps {most}", "--lr", "epoch 1"):
            assert word in found[1]


@pytest.mark.parametrize("accumulation", [1, 4])
def test_in_good_times_the_device_is_asked_only_so_often(accumulation):
    step = Skipping("." * 100, accumulation)
    assert divergence(step, most=10) is None
    assert step.asked_at == list(range(1, 101, 10))


def test_a_row_that_a_stop_cut_in_two_is_one():
    assert divergence(Skipping("xx......", row=2), most=4)[0] == 2


def test_losses_none_of_which_is_a_number_end_training():
    from src.train.callbacks import StopOnDivergence

    record = done(EpochRecord(8), 4)
    record.window_loss, record.window_steps = None, 4
    callback = StopOnDivergence(record, Skipping("." * 8), Training(disp_batches=4))
    with pytest.raises(DivergedError, match="not one loss of the last 4 steps") as error:
        callback.on_train_step_end(None)
    assert error.value.exit_code == 4


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_broken_state_is_never_saved(graph_mode, value):
    from mindspore import nn

    from src.train.assigning import assign
    from src.train.callbacks import StopOnBrokenState

    network = nn.SequentialCell(nn.BatchNorm2d(3))
    callback = StopOnBrokenState(done(EpochRecord(1), 1), network, World())
    callback.on_train_epoch_end(None)
    assign(network[0].moving_mean, np.array([0, value, 0]))
    with pytest.raises(DivergedError, match="moving_mean"):
        callback.on_train_epoch_end(None)


def test_the_position_in_the_schedule_counts_updates():
    record = EpochRecord(6, accumulation=3, epoch=2)
    positions = [done(record, 1).position for _ in range(6)]
    assert positions == [2, 2, 2, 2.5, 2.5, 2.5]


class FakeSaver:
    def __init__(self, last_time: float = 0.0):
        self.last_time = last_time
        self.saved: list = []

    def save(self, *also):
        self.saved.append(also)

    def take_seconds(self):
        return 0.0


def test_a_signal_stops_at_the_next_step():
    from src.train.callbacks import Agreement, StopOnSignal

    requests, context, record = Requests(), Context(), done(EpochRecord(9), 1)
    programme = [Agreement(record, requests, World(), FakeSaver(), None), StopOnSignal(requests)]
    for signalled in (False, True):
        requests.stop_signal = 15 if signalled else None
        for callback in programme:
            callback.on_train_step_end(context)
        assert context.stopped == requests.stop_agreed == signalled


def test_only_between_updates_is_agreed_and_saved():
    """Gradients that wait for the rest of their update are in no checkpoint."""
    from src.train.callbacks import Agreement

    requests, record, agreed = Requests(), EpochRecord(9, accumulation=3), []
    requests.stop_signal = 15
    callback = Agreement(record, requests, World(), FakeSaver(), None)
    for _ in range(7):
        requests.stop_agreed = False
        done(record, 1)
        callback.on_train_step_end(Context())
        agreed.append(requests.stop_agreed)
    assert agreed == [False, False, True, False, False, True, False]


def test_saving_is_due_after_so_many_minutes(monkeypatch):
    from src.train import callbacks

    now, requests, record = [1000.0], Requests(), done(EpochRecord(9), 1)
    monkeypatch.setattr(callbacks.ending.time, "monotonic", lambda: now[0])
    callback = callbacks.Agreement(record, requests, World(), FakeSaver(last_time=1000.0), 2.0)
    for now[0], due in ((1119.0, False), (1121.0, True)):
        callback.on_train_step_end(Context())
        assert requests.save_agreed == due


def within_epoch(steps: int, every: int | None, accumulation: int = 1, asked_at: int = 0, **output):
    """After which steps of a second epoch something is saved."""
    from src.report.journal import Journal
    from src.train.callbacks import CheckpointsWithinEpochs

    requests, record, saver, at = Requests(), EpochRecord(steps, accumulation), FakeSaver(), []
    record.restart(1)
    config = Config(output=Output(save_every_steps=every, **output))
    callback = CheckpointsWithinEpochs(record, saver, config, requests, Journal.silent())
    for number in range(1, steps + 1):
        requests.save_agreed |= number == asked_at
        done(record, 1)
        before = len(saver.saved)
        callback.on_train_step_end(Context())
        at += [number] * (len(saver.saved) - before)
    return at


def test_checkpoints_are_made_every_so_many_steps_of_the_run():
    assert within_epoch(12, every=5) == [3, 8], "steps 15 and 20 of the run"
    assert within_epoch(12, every=4) == [4, 8], "the last step's is that of the epoch"
    assert within_epoch(12, every=5, accumulation=4) == [4, 8], "at the update after steps 15 and 20"
    assert within_epoch(12, every=None) == []
    assert within_epoch(12, every=5, save_frequency=0) == []


def test_a_checkpoint_that_was_asked_for_is_made_once():
    assert within_epoch(6, every=None, asked_at=2) == [2]
    assert within_epoch(8, every=None, accumulation=4, asked_at=3) == [4]


def test_many_ranks_ask_each_other_only_every_few_steps():
    from src.train.callbacks import STOP_CHECK_STEPS, Agreement

    asked = []

    class Two(World):
        def any_of(self, flags):
            asked.append(record.steps_done)
            return [False, False]

    for accumulation, every in ((1, STOP_CHECK_STEPS), (4, 12), (16, 16)):
        record = EpochRecord(48, accumulation)
        callback = Agreement(record, Requests(), Two(0, 2), FakeSaver(), None)
        asked.clear()
        for _ in range(48):
            done(record, 1)
            callback.on_train_step_end(Context())
        assert asked == list(range(every, 49, every))


def checkpoints(tmp_path, frequency, scores, losses=None, ema_scores=None, updates=None):
    """What each epoch saves when validation gives these scores, and the best in the end."""
    from src.train.callbacks import Checkpoints

    saver, meta = FakeSaver(), {"best": None}
    training = Training(ema=0.9 if ema_scores else 0.0)
    config = Config(training=training, output=Output(workspace=tmp_path, save_frequency=frequency))
    record = EpochRecord(1)
    callback = Checkpoints(record, saver, config, meta)
    each = []
    for epoch, score in enumerate(scores):
        record.restart(epoch)
        done(record, 1)
        record.updates = (updates or [1] * len(scores))[epoch]
        record.metrics = {"val.top1": score, "val.loss": (losses or [1.0] * len(scores))[epoch]}
        if ema_scores:
            record.metrics.update({"val.ema_top1": ema_scores[epoch], "val.ema_loss": 1.0})
        before = len(saver.saved)
        callback.on_train_epoch_end(None)
        each += [list(also) for also in saver.saved[before:]]
    return each, meta


def test_the_best_is_the_first_of_equals_and_the_last_is_always_there(tmp_path):
    each, meta = checkpoints(tmp_path, -1, [0.5, 0.7, 0.7, 0.6])
    assert each == [["best"], ["best"], [], []]
    assert meta["best"] == {"epoch": 1, "top1": 0.7, "file": "model_best.safetensors"}
    assert meta["epochs_done"] == 4


def test_with_an_average_of_the_weights_the_best_is_where_the_average_is(tmp_path):
    _, meta = checkpoints(tmp_path, -1, [0.9, 0.5, 0.5], ema_scores=[0.1, 0.6, 0.4])
    assert meta["best"] == {"epoch": 1, "top1": 0.6, "file": "model_best.safetensors", "weights": "ema"}


def test_every_kth_epoch_is_kept_under_its_number(tmp_path):
    each, _ = checkpoints(tmp_path, 2, [0.1, 0.2, 0.1, 0.1])
    assert [name for names in each for name in names if name[-1].isdigit()] == ["0002", "0004"]


def test_0_saves_nothing(tmp_path):
    assert checkpoints(tmp_path, 0, [0.1, 0.2])[0] == []


def test_a_network_without_numbers_is_never_the_best(tmp_path):
    each, meta = checkpoints(tmp_path, -1, [0.1, 0.9], losses=[1.0, None])
    assert each[1] == []
    assert meta["best"]["epoch"] == 0


def test_weights_that_no_update_changed_are_never_the_best(tmp_path):
    """Else a first epoch that was skipped from end to end would leave what it began with as its best."""
    each, meta = checkpoints(tmp_path, -1, [0.9, 0.5, 0.6], updates=[0, 4, 4])
    assert each == [[], ["best"], ["best"]]
    assert meta["best"]["epoch"] == 2


def test_updates_are_those_due_less_those_skipped_however_often_they_are_counted():
    for every in (1, 2, 3, 5, 100):
        record, skipped = EpochRecord(25, accumulation=4), 0
        for n in range(1, 26):
            done(record, 1)
            skipped += n in (8, 20)
            if record.at_display(every):
                record.add([0, 0, 0, 0, 0, 2 * skipped], num_devices=2)
                skipped = 0
        assert (record.updates, record.skipped) == (4, 2), every


def test_an_epoch_that_was_stopped_is_not_saved_as_a_whole_one(tmp_path):
    from src.train.callbacks import Checkpoints

    saver = FakeSaver()
    callback = Checkpoints(done(EpochRecord(4), 3), saver, Config(output=Output(workspace=tmp_path)), {})
    callback.on_train_epoch_end(None)
    assert saver.saved == []


class Scores:
    """A validation that is asked to stop in its n-th run."""

    def __init__(self, requests: Requests, stopped_in: int | None) -> None:
        self.requests, self.left = requests, stopped_in
        self.pipeline = SimpleNamespace(num_images=4)
        self.tell = lambda *words: None

    def run(self, stop_asked, keep_answers=False):
        from src.evaluate.validate import Score

        if self.left is not None:
            self.left -= 1
            if self.left == 0:
                self.requests.stop_signal = 15
        return None if stop_asked() else Score(0.5, 0.75, 1.0, 4, {"val.time": 0.25})


def test_an_epoch_that_a_stop_kept_from_being_scored_is_not_over(graph_mode):
    from src.report.journal import Journal
    from src.train.callbacks import Checkpoints, EndOfEpoch, Validate
    from tests.train.test_step import batch, call, changed, small, state

    _, step = small(Training(ema=0.9))
    call(step, *batch())  # weights and averages are not the same any more
    before = state(step)
    config = Config(training=Training(ema=0.9), output=Output(save_frequency=1))
    for stopped_in in (None, 1, 2):
        requests, saver, meta, ended = Requests(), FakeSaver(), {"best": None}, []
        record, journal = done(EpochRecord(1), 1), Journal.silent()
        record.metrics, record.updates = {"train.loss": 2.0}, 1
        journal.end_epoch = lambda *words, ended=ended: ended.append(words)
        for callback in (
            Validate(record, step, Scores(requests, stopped_in), journal, requests, last_epoch=1),
            Checkpoints(record, saver, config, meta),
            EndOfEpoch(record, journal, 1, 1, meta, saver),
        ):
            callback.on_train_epoch_end(Context())
        stopped = stopped_in is not None
        assert requests.stop_agreed == stopped
        assert record.finished == (not stopped)
        assert saver.saved == ([()] if stopped else [("best", "0001")])
        assert len(ended) == (0 if stopped else 1)
        assert record.metrics.get("val.time") == (None if stopped else 0.5)
        assert ("val.top1" in record.metrics) == ("val.ema_top1" in record.metrics) == (not stopped)
        assert changed(before, step) == set(), "the averages were in the weights' place only for a while"


class Two(World):
    """The other rank's statistics are all 1."""

    def mean_arrays(self, arrays):
        return [(array + 1.0) / 2 for array in arrays]


def test_statistics_of_frozen_stages_are_left_alone(graph_mode):
    """A sum over ranks divided by their number need not give the same bits back."""
    from src.train.callbacks import AverageStatistics
    from tests.train.test_step import small

    network, step = small(Training(ema=0.9))
    network[1].use_batch_statistics = False
    AverageStatistics(done(EpochRecord(1), 1), step, Two(0, 2)).on_train_epoch_end(None)
    found = {p.name: p.asnumpy().tolist() for p in step.get_parameters()}
    for prefix in ("", "ema."):
        assert found[f"{prefix}1.moving_mean"] == [0.0] * 6


def test_statistics_are_averaged_over_ranks(graph_mode):
    from src.train.callbacks import AverageStatistics
    from tests.train.test_step import small

    _, step = small(Training(ema=0.9))
    AverageStatistics(done(EpochRecord(1), 1), step, Two(0, 2)).on_train_epoch_end(None)
    found = {p.name: p.asnumpy().tolist() for p in step.get_parameters()}
    for prefix in ("", "ema."):
        assert found[f"{prefix}1.moving_mean"] == [0.5] * 6
        assert found[f"{prefix}1.moving_variance"] == [1.0] * 6
        assert found[f"{prefix}1.gamma"] == [1.0] * 6
        assert found[f"{prefix}1.beta"] == [0.0] * 6


@pytest.mark.parametrize(
    ("steps", "agreed", "fails"), [(4, False, False), (3, True, False), (3, False, True)]
)
def test_an_epoch_that_ends_early_unasked_ends_the_run(steps, agreed, fails):
    from src.errors import DataError
    from src.train.callbacks import WholeEpoch

    requests = Requests()
    requests.stop_agreed = agreed
    callback = WholeEpoch(done(EpochRecord(4), steps), requests)
    if not fails:
        callback.on_train_epoch_end(Context())
        return
    with pytest.raises(DataError, match="epoch 1 ended after 3 of 4 steps"):
        callback.on_train_epoch_end(Context())


def test_an_epoch_too_short_to_be_profiled_is_told(tmp_path, capsys):
    from src.report.console import Console
    from src.report.journal import Journal
    from src.train.callbacks.profiling import FIRST_STEPS, Profile

    silent = Journal.silent()
    journal = Journal(Console(), silent.dllogger, None)
    record = EpochRecord(FIRST_STEPS)
    callback = Profile(record, journal, tmp_path, 3)
    for _ in range(FIRST_STEPS):
        callback.on_train_step_begin(Context())
        done(record, 1)
        callback.on_train_step_end(Context())
    callback.on_train_epoch_end(Context())
    assert f"there were {FIRST_STEPS}" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
