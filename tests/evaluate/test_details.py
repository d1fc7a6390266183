"""What validation answered: exact over ranks, and shown with the right pictures."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from src.data.sampling import IGNORED_LABEL
from src.data.sources import ClassLabel
from src.data.synthetic import SyntheticSource
from src.evaluate import details
from src.evaluate.details import Answers
from src.platform.distributed import World

CLASSES = [ClassLabel(f"n{k}", f"class {k}") for k in range(3)]
LABELS = np.array([0, 0, 1, 1, 2, 2, 2])
PREDICTED = np.array([0, 1, 1, 0, 0, 0, -1])
CONFIDENCE = np.array([0.9, 0.6, 0.5, 0.7, 0.8, 0.95, 0.0], np.float32)


def answers(rows, num_images=7) -> Answers:
    found = Answers.none_yet(num_images)
    filled = np.concatenate([LABELS[rows], [IGNORED_LABEL]])  # a batch that is filled up
    told = np.stack([np.append(PREDICTED[rows], 9), np.append(CONFIDENCE[rows], 1.0)])
    found.add(np.array(rows), filled, told)
    return found


def test_classes_confusions_and_mistakes():
    found = details.document(answers([0, 1, 2, 3, 4, 5, 6]), CLASSES, epoch=4)
    assert (found["epoch"], found["num_images"]) == (4, 7)
    assert [(c["images"], c["right"]) for c in found["classes"]] == [(2, 1), (2, 1), (3, 0)]
    assert found["confused"][0] == {"label": 2, "predicted": 0, "images": 2}
    assert sum(pair["images"] for pair in found["confused"]) == 5
    assert [mistake["row"] for mistake in found["mistakes"]] == [5, 4, 3, 1, 6]
    assert found["mistakes"][0]["confidence"] == pytest.approx(0.95)


def test_a_bad_file_is_in_no_count():
    found = answers([0, 1])
    found.add(np.array([2]), np.array([IGNORED_LABEL]), np.array([[1.0], [0.5]]))
    assert details.document(found, CLASSES, 0)["num_images"] == 2


def test_a_class_that_the_head_has_and_the_set_has_not_is_a_confusion_too():
    found = Answers.none_yet(1)
    found.add(np.array([0]), np.array([1]), np.array([[7.0], [0.5]]))
    assert details.document(found, CLASSES, 0)["confused"] == [{"label": 1, "predicted": 7, "images": 1}]


@pytest.mark.parametrize("size", [2, 3, 7])
def test_the_ranks_answers_come_together_exactly(size):
    parts = [answers(list(range(7))[rank::size]) for rank in range(size)]

    class Ranks(World):
        def mean_arrays(self, arrays):
            summed = np.zeros_like(arrays[0])
            for part in parts:
                summed += part.table
            return [summed / np.float32(size)]

    whole = answers(list(range(7)))
    found = parts[0].over_ranks(Ranks(0, size))
    assert (found.labels == whole.labels).all()
    assert (found.predicted == whole.predicted).all()
    np.testing.assert_allclose(found.table[2], whole.table[2], rtol=1e-6)


def test_high_classes_come_together_exactly_too():
    """Divided by seven ranks and multiplied again, most whole numbers are no longer whole."""
    labels = np.arange(1000)
    whole = Answers.none_yet(1000)
    whole.add(labels, labels, np.stack([labels[::-1], np.ones(1000)]))

    class Seven(World):
        def mean_arrays(self, arrays):
            return [arrays[0] / np.float32(7)]

    found = whole.over_ranks(Seven(0, 7))
    assert (found.labels == labels).all()
    assert (found.predicted == labels[::-1]).all()


def test_the_pictures_are_those_of_the_rows():
    source = SyntheticSource(20, 3, (40, 80))
    told = {"mistakes": [{"row": 13}, {"row": 2}]}
    details.add_thumbnails(told, source)
    for mistake in told["mistakes"]:
        picture = Image.open(io.BytesIO(base64.b64decode(mistake["thumbnail"])))
        assert picture.size == (80, 40)
        distances = [abs(np.asarray(picture, float) - source.row(row)[0]).mean() for row in range(20)]
        assert np.argmin(distances) == mistake["row"]


def test_the_cell_answers_as_it_counts(graph_mode):
    """Ties, and a row with a NaN, as in the counts."""
    import mindspore as ms
    from mindspore import nn

    from src.evaluate.metrics import AnsweringCell

    logits = np.array([[1, 3, 3], [3, 3, 1], [0, 1, 2], [np.nan, 9, 1], [2, 1, 0]], np.float32)
    labels = np.array([1, 1, 2, 1, IGNORED_LABEL], np.int32)
    counts, told = AnsweringCell(nn.Identity())(ms.Tensor(logits), ms.Tensor(labels))
    answer, confidence = told.asnumpy()
    assert answer.tolist() == [1, 0, 2, -1, 0]
    assert (answer == labels)[labels >= 0].sum() == counts.asnumpy()[0] == 2
    expected = np.exp(3) / (np.exp(1) + 2 * np.exp(3))
    assert confidence[0] == pytest.approx(expected, rel=1e-5)
    assert confidence[3] == 0
