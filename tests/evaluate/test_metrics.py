"""Counting right answers: ties, fewer classes than k, NaN, padding."""

from __future__ import annotations

import numpy as np
import pytest

CASES = ["ties_K7", "K3_less_than_5", "nan_rows_K6", "padding_label_-1_K6"]


def counts(logits, labels) -> dict:
    import mindspore as ms

    from src.evaluate.metrics import topk_correct

    x = np.array([[np.nan if v is None else v for v in row] for row in logits], np.float32)
    top1, top5 = topk_correct(ms.Tensor(x), ms.Tensor(np.array(labels, np.int32))).asnumpy()
    return {"top1": top1, "top5": top5}


@pytest.mark.parametrize("name", CASES)
def test_counts_equal_the_independent_ones_with_ties_by_class_index(graph_mode, golden, name):
    case = golden["metrics"][name]
    assert counts(case["logits"], case["labels"]) == case["first_index"]


def test_a_constant_network_scores_only_the_first_class(graph_mode):
    """Equal logits must not count as right for every label."""
    logits = np.zeros((10, 10), np.float32).tolist()
    assert counts(logits, range(10)) == {"top1": 1, "top5": 5}


def test_an_infinite_logit_is_a_number(graph_mode):
    assert counts([[float("inf"), 0, 1], [0, float("-inf"), 1]], [0, 1]) == {"top1": 1, "top5": 2}


def test_one_batch_is_scored_without_its_filling_rows(graph_mode):
    import mindspore as ms
    from mindspore import nn

    from src.evaluate.metrics import EvalCell

    rng = np.random.RandomState(0)
    logits = rng.standard_normal((6, 4)).astype(np.float32)
    labels = np.array([0, 1, 2, 3, -1, -1], np.int32)
    top1, top5, loss, count = EvalCell(nn.Identity())(ms.Tensor(logits), ms.Tensor(labels)).asnumpy()
    real = logits[:4].astype(np.float64)
    entropy = np.log(np.exp(real).sum(1)) - real[np.arange(4), labels[:4]]
    assert count == 4
    assert top1 == (real.argmax(1) == labels[:4]).sum()
    assert top5 == 4
    assert loss == pytest.approx(entropy.sum(), rel=1e-6)


class Batches:
    """Stands in for a pipeline: logits as images, in batches of these sizes."""

    alone, num_bad = True, 0

    def __init__(self, sizes: list[int], right: list[int]) -> None:
        from src.config import Config

        self.config, self.batch_size = Config(), max(sizes)
        self.num_images, self.sizes, self.right = sum(sizes), sizes, right
        self.source = range(self.num_images)

    def __iter__(self):
        for size, right in zip(self.sizes, self.right):
            answers = np.where(np.arange(size) < right, 0, 1)
            yield np.eye(6, dtype=np.float32)[answers], np.zeros(size, np.int32)


def test_accuracy_is_that_of_all_images_and_not_the_mean_of_batches(graph_mode, golden):
    from mindspore import nn

    from src.evaluate.validate import Validation
    from src.platform.distributed import World

    case = golden["metrics"]["uneven_batches"]
    batches = Batches(case["batch_sizes"], case["counts_top1"])
    score = Validation(nn.Identity(), batches, World(0, 1)).run()
    assert score.num_samples == sum(case["batch_sizes"])
    assert score.top1 == pytest.approx(case["accuracy"], rel=1e-12)
    assert score.top1 != pytest.approx(case["trap_mean_of_batch_accuracies"], abs=0.02)
