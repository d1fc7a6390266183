"""Networks with the weights of an independent implementation, and the comparison with its values."""

from __future__ import annotations

import json
import re

import numpy as np

from tests.golden import spec
from tests.support import ROOT

TORCH = {"gamma": "weight", "beta": "bias", "moving_mean": "running_mean", "moving_variance": "running_var"}
VERSIONS = {"v1": "v1", "v1.5": "v15"}


def golden_values() -> dict:
    """Three files of values, as one: `static` for each network and `traps`. tests/golden/make_extra.py says
    what they are, and made the third."""
    folder = ROOT / "tests" / "golden"
    files = [
        json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("golden", "networks", "extra")
    ]
    static = {key: values for file in files for key, values in file["static"].items()}
    return {"static": static, "traps": files[1]["traps"]}


GOLDEN = golden_values()


def build(arch: str, layers: int, classes: int, **options):
    from src import models
    from src.config import Model

    return models.build(Model(arch=arch, num_layers=layers, **options), classes)


def torch_name(name: str) -> str:
    head, tail = name.rsplit(".", 1)
    return f"{head}.{TORCH.get(tail, tail)}"


def model_options(key: str) -> dict:
    """The options of the model of a golden entry, `resnext50_32x4d_v1.5@64` for example."""
    if key.startswith("xception"):
        return {"arch": "xception", "layers": 50}
    family, layers, form, groups, width, version = re.match(
        r"(resnet|resnext)(\d+)(_(\d+)x(\d+)d)?_(v1|v1\.5)@", key
    ).groups()
    options = {"arch": family + VERSIONS[version], "layers": int(layers)}
    return {**options, "num_groups": int(groups), "width_per_group": int(width)} if form else options


def golden_network(key: str, classes: int, **options):
    """The network of a golden entry with the golden weights."""
    import mindspore as ms

    network = build(classes=classes, **{**model_options(key), **options})
    for p in network.get_parameters():
        p.set_data(ms.Tensor(spec.param_value(torch_name(p.name), p.shape, key.split("@")[0])))
    return network


def norm(arrays) -> float:
    """The L2 norm over all of them, summed in float64."""
    return sum(float((np.asarray(a).astype(np.float64) ** 2).sum()) for a in arrays) ** 0.5


class Comparison:
    """A network's run over the golden batch of an entry. The tolerances are PyTorch's own float32 errors
    against its float64, with a margin: about 10, and 100 in what batch statistics amplify."""

    def __init__(self, key: str, network=None) -> None:
        import mindspore as ms

        self.wanted = GOLDEN["static"][key]
        images, labels = spec.static_batch(*(self.wanted[name] for name in ("batch", "size", "classes")))
        assert spec.crc(images) == self.wanted["input_crc32"]
        assert labels.tolist() == self.wanted["labels"]
        self.network = network or golden_network(key, self.wanted["classes"])
        first = self.network.conv1.weight.asnumpy()
        assert spec.crc(first) == self.wanted["conv1_crc32"]
        self.images, self.labels = ms.Tensor(images), ms.Tensor(labels.astype(np.int32))

    def loss(self, smoothing: float):
        from src.config import Training
        from src.train.loss import WithLossCell, training_loss

        return WithLossCell(self.network, training_loss(Training(label_smoothing=smoothing)))

    def evaluation(self) -> None:
        """Logits and losses with moving statistics."""
        wanted, logits = self.wanted["eval_logits"], self.network.set_train(False)(self.images)
        check_logits(logits.asnumpy(), wanted, 5e-6)
        for smoothing, name in ((0.0, "eval_loss"), (0.1, "eval_loss_smooth")):
            compare = self.loss(smoothing)._loss_fn
            np.testing.assert_allclose(compare(logits, self.labels).asnumpy(), self.wanted[name], rtol=5e-6)

    def training(self) -> None:
        """Logits and losses with the batch's statistics, gradients, and the moving statistics after."""
        import mindspore as ms

        weights = ms.ParameterTuple(self.network.trainable_params())
        cell = self.loss(0.1).set_train(True)
        step = ms.value_and_grad(cell, None, weights, has_aux=True)
        (loss, logits), gradients = step(self.images, self.labels)
        check_logits(logits.asnumpy(), self.wanted["train_logits"], 1e-4)
        plain = self.loss(0.0)._loss_fn(logits, self.labels).asnumpy()
        np.testing.assert_allclose(plain, self.wanted["train_loss"], rtol=3e-5)
        np.testing.assert_allclose(loss.asnumpy(), self.wanted["train_loss_smooth"], rtol=3e-5)
        self.gradients({torch_name(p.name): g.asnumpy() for p, g in zip(weights, gradients)})
        self.statistics()

    def gradients(self, gradients: dict) -> None:
        for name, wanted in self.wanted["grad_norms"].items():
            found = norm(gradients.values() if name == "ALL" else [gradients[name]])
            tolerance = 1e-5 if name.startswith("fc.") else 3e-3
            np.testing.assert_allclose(found, wanted, rtol=tolerance, err_msg=name)

    def statistics(self) -> None:
        wanted = self.wanted["bn_after_one_forward"]
        moving = {p.name: p.asnumpy() for p in self.network.get_parameters() if "moving_" in p.name}
        for kind, name in (("moving_mean", "running_mean_norm"), ("moving_variance", "running_var_norm")):
            found = norm(value for layer, value in moving.items() if layer.endswith(kind))
            np.testing.assert_allclose(found, wanted[name], rtol=1e-6, err_msg=name)
        for layer, values in wanted["layers"].items():
            mean, variance = moving[f"{layer}.moving_mean"], moving[f"{layer}.moving_variance"]
            found = [norm([mean]), variance.mean(dtype=np.float64), norm([variance])]
            np.testing.assert_allclose(found, values[1:4], rtol=1e-6, err_msg=layer)
            np.testing.assert_allclose(mean.mean(dtype=np.float64), values[0], atol=1e-6, err_msg=layer)


def check_logits(found: np.ndarray, wanted: dict, tolerance: float) -> None:
    """`tolerance` is relative to the largest logit."""
    atol = tolerance * wanted["max_abs"]
    np.testing.assert_allclose(found[:, :5], wanted["first5"], rtol=0, atol=atol)
    for name, value in (("mean", found.mean()), ("std", found.std()), ("max_abs", np.abs(found).max())):
        np.testing.assert_allclose(value, wanted[name], rtol=0, atol=atol, err_msg=name)
