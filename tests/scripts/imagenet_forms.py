"""A small part of ImageNet in each form in which people have it: real wnids and numbers, made-up pictures."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from PIL import Image

SCRIPTS = Path(__file__).parents[2] / "scripts"
# The classes of validation images 1 to 4 in the ground truth of ILSVRC 2012, and a class that val lacks.
VAL = {1: "n01751748", 2: "n09193705", 3: "n02105855", 4: "n04263257"}
WNIDS = sorted({*VAL.values(), "n01440764"})
FORMS = ("folders", "flat", "unpacked", "kaggle", "tars", "class_tars")


def picture(number):
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8), (number * 20 % 256, 90, number * 7 % 256)).save(buffer, "PNG")
    return buffer.getvalue() + b"\0" * number  # a PNG ends before it; so that sizes differ


def train_images():
    """wnid -> file name -> bytes; 3 images of each class."""
    return {
        wnid: {f"{wnid}_{10 * k}.JPEG": picture(3 * c + k) for k in range(3)} for c, wnid in enumerate(WNIDS)
    }


def val_images():
    return {f"ILSVRC2012_val_{number:08d}.JPEG": picture(40 + number) for number in VAL}


def val_wnid(name):
    return VAL[int(name[15:23])]


def expected_labels(split):
    """The file names and labels of all rows, whatever the form."""
    if split == "train":
        return {
            f"{wnid}/{name}": WNIDS.index(wnid) for wnid, names in train_images().items() for name in names
        }
    return {f"{val_wnid(name)}/{name}": WNIDS.index(val_wnid(name)) for name in val_images()}


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def tar_bytes(files, **options):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", **options) as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def build(form, folder):
    """SRC for prepare_imagenet.sh."""
    train, val = train_images(), val_images()
    prefix = "ILSVRC2012_img_" if form == "unpacked" else ""
    root = folder / "ILSVRC/Data/CLS-LOC" if form == "kaggle" else folder
    class_tars = {f"{wnid}.tar": tar_bytes(files) for wnid, files in reversed(train.items())}
    if form == "tars":
        write(root / "ILSVRC2012_img_train.tar", tar_bytes(class_tars))
        write(root / "ILSVRC2012_img_val.tar", tar_bytes(dict(reversed(val.items()))))
        return folder
    for wnid, files in train.items():
        if form == "class_tars":
            write(root / "train" / f"{wnid}.tar", class_tars[f"{wnid}.tar"])
            continue
        for name, data in files.items():
            write(root / f"{prefix}train" / wnid / name, data)
    for name, data in val.items():
        write(root / f"{prefix}val" / (val_wnid(name) if form == "folders" else "") / name, data)
    if form == "kaggle":
        lines = [f"{name[:-5]},{val_wnid(name)} 1 2 3 4 {val_wnid(name)} 5 6 7 8 " for name in reversed(val)]
        write(folder / "LOC_val_solution.csv", "\r\n".join(["ImageId,PredictionString", *lines, ""]).encode())
    return folder
