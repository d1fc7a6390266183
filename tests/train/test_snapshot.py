"""What a checkpoint holds of all ranks, and gives back to each."""

from __future__ import annotations

import numpy as np

from src.config import Training
from src.platform.distributed import World
from src.train import snapshot
from src.train.assigning import assign
from src.weights.checkpoint import Checkpoint
from tests.train.test_step import batch, call, small, state


class Two(World):
    """Whose other rank has the same state plus one."""

    def collect(self, arrays):
        other = [array + 1 for array in arrays]
        return [list(arrays), other] if self.rank == 0 else [other, list(arrays)]


def step_after(steps: int, **options):
    _, step = small(Training(ema=0.9, **options))
    for i in range(steps):
        call(step, *batch(i))
    return step


def saved(tensors: dict, world_size: int) -> Checkpoint:
    return Checkpoint(None, tensors, {"world_size": world_size})


def test_the_state_is_given_back_bit_for_bit(graph_mode):
    step = step_after(3)
    tensors = snapshot.take(step, World(), within_epoch=True)
    other = step_after(0)  # a state is put back before the first step
    snapshot.put_back(other, World(), saved(tensors, 1))
    for i in (3, 4):
        assert call(step, *batch(i)) == call(other, *batch(i))
    before, after = state(step), state(other)
    assert [name for name in before if before[name].tobytes() != after[name].tobytes()] == []


def test_what_follows_from_the_rest_is_not_stored(graph_mode):
    step = step_after(4, accumulation=2)
    tensors = snapshot.take(step, World(), within_epoch=True)
    assert "sums" in tensors
    assert not [name for name in tensors if name.startswith(("accumulated", "kept"))]
    other = step_after(0, accumulation=2)
    snapshot.put_back(other, World(), saved(tensors, 1))
    for i in (4, 5):
        assert call(step, *batch(i)) == call(other, *batch(i))
    before, after = state(step), state(other)
    assert [name for name in before if before[name].tobytes() != after[name].tobytes()] == []


def test_each_rank_gets_its_own_statistics_and_sums_back(graph_mode):
    step = step_after(2)
    own = {p.name: p.asnumpy().copy() for p in snapshot.own_state(step)}
    tensors = snapshot.take(step, Two(0, 2), within_epoch=True)
    assert set(own) == {
        "1.moving_mean", "1.moving_variance", "ema.1.moving_mean", "ema.1.moving_variance", "sums"
    }  # fmt: skip
    for rank in (0, 1):
        other = step_after(0)
        snapshot.put_back(other, Two(rank, 2), saved(tensors, 2))
        for parameter in snapshot.own_state(other):
            expected = own[parameter.name] + np.float32(rank)
            np.testing.assert_array_equal(parameter.asnumpy(), expected, parameter.name)
    np.testing.assert_allclose(tensors["1.moving_mean"], own["1.moving_mean"] + 0.5, rtol=1e-6)
    np.testing.assert_allclose(tensors["sums"], 2 * own["sums"] + 1, rtol=1e-6)


def test_another_number_of_ranks_begins_with_the_mean_and_empty_sums(graph_mode):
    tensors = snapshot.take(step_after(2), Two(0, 2), within_epoch=True)
    other = step_after(0)  # a state is put back before the first step
    snapshot.put_back(other, World(), saved(tensors, 2))
    found = state(other)
    assert found["1.moving_mean"].tobytes() == tensors["1.moving_mean"].tobytes()
    assert not found["sums"].any()
    assert found["kept_statistics"][:6].tobytes() == found["1.moving_mean"].tobytes()


def test_at_the_end_of_an_epoch_nothing_is_collected(graph_mode):
    class Silent(World):
        def collect(self, arrays):
            raise AssertionError("all ranks have the same then")

    tensors = snapshot.take(step_after(1), Silent(0, 2), within_epoch=False)
    assert not [name for name in tensors if name.startswith("rank")]
    assert snapshot.take(step_after(1), Silent(1, 2), within_epoch=False) == {}


def test_sums_since_the_last_display_are_counted_in_where_steps_change():
    progress = {
        "epoch": 1, "step": 8, "loss": 10.0, "steps": 10.0, "top1": 4.0, "top5": 8.0, "counted": 80.0,
        "skipped": 0.0, "updates": 2.0, "summed_steps": 5, "window_loss": 1.0, "window_steps": 5,
    }  # fmt: skip
    sums = [6.0, 4.0, 1.0, 2.0, 32.0, 2.0]
    found = snapshot.folded(progress, sums, num_devices=2, accumulation=2, step=14)
    assert (found["loss"], found["steps"], found["top1"], found["counted"]) == (16, 14, 5, 112)
    assert found["skipped"] == 1, "all devices skip together"
    assert found["updates"] == 3, "of those of steps 6 and 8, one was made"
    assert (found["step"], found["summed_steps"]) == (14, 14)


def test_ranks_that_skip_a_first_update_go_back_to_the_mean(graph_mode):
    """What is gone back to must be that which all ranks were given."""
    step = step_after(2)
    mean = step.statistics.statistics[0]
    assign(mean, np.full(mean.shape, 7.0))
    step.statistics.keep_now()
    from tests.train.test_step import with_infinity

    images, labels = batch(5)
    call(step, with_infinity(images), labels)
    assert mean.asnumpy().tolist() == [7.0] * 6
