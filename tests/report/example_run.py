"""The files of a run that never was, with names that try to break out of the page."""

from __future__ import annotations

import json
from pathlib import Path

from src.report.dllog import open_log
from src.report.html import details_file
from src.report.report import Report

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&"
# A white pixel.
JPEG = "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////////////wgALCAABAAEBAREA/8QAFBABAAAAAAAAAAAAAAAAAAAAAP/aAAgBAQABPxA="  # noqa: E501


def make_run(
    workspace: Path, *, epochs: int = 3, top1: float = 0.5, lr: float = 0.1, seconds: float = 10.0
) -> Path:
    """Write report.json, dllogger_log.log and the answers of validation; returns the report's path."""
    workspace.mkdir(parents=True, exist_ok=True)
    report = Report(
        workspace / "report.json",
        model="resnetv15",
        num_devices=2,
        cmd=["runner", HOSTILE],
        config={
            "num-layers": 18,
            "lr": lr,
            "batch-size": 8,
            "num-epochs": epochs,
            "arch": "resnetv15",
            "seed": 1,
        },
        environment={"device": "CPU", "host": HOSTILE},
        dataset={"train": {"path": HOSTILE}},
        fields={
            "recipe": {"file": None, "differences": {"lr": {"recipe": 0.256, "run": lr}}},
            "best": {"epoch": epochs - 1, "top1": top1, "file": "model_best.safetensors"},
        },
    )
    log = open_log(workspace / "dllogger_log.log", append=False)
    for epoch in range(epochs):
        for step in (3, 7):
            log.log([epoch, step], {"train.loss": 3.0 - epoch, "train.ips": 100.0, "train.lr": lr})
        metrics = {
            "train.loss": 3.0 - epoch, "val.loss": None if epoch == 0 else 2.0, "val.top1": top1,
            "train.total_ips": 100.0, "train.lr": lr, "epoch_time": seconds,
            "train.compute_time": 0.6 * seconds,
            "train.data_time": 0.3 * seconds, "train.other_time": 0.0, "val.time": 0.1 * seconds,
        }  # fmt: skip
        report.add_epoch(epoch, metrics)
    log.close()
    report.finish("completed")
    details = {
        "epoch": epochs - 1,
        "num_images": 9,
        "classes": [
            {"wnid": "n0", "name": HOSTILE, "images": 4, "right": 4},
            {"wnid": "n1", "name": "snail", "images": 5, "right": 1},
            {"wnid": "n2", "name": "none of these", "images": 0, "right": 0},
        ],
        "confused": [{"label": 1, "predicted": 0, "images": 3}, {"label": 1, "predicted": -1, "images": 1}],
        "mistakes": [
            {"row": 3, "label": 1, "predicted": 0, "confidence": 0.99, "thumbnail": JPEG},
            {"row": 5, "label": 1, "predicted": -1, "confidence": 0.0},
        ],
    }
    details_file(workspace / "report.json").write_text(json.dumps(details))
    return workspace / "report.json"
