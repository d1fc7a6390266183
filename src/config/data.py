"""Options of where images come from, and of how the input pipeline runs."""

import dataclasses
from pathlib import Path
from typing import Literal, Optional, Tuple

import tyro
from typing_extensions import Annotated


@dataclasses.dataclass(frozen=True)
class Data:
    """Where images come from, and their form at the network's door."""

    data_root: Path = Path("/data/imagenet/train-val-mindrecord")
    """folder with train/ and val/"""
    data_train: Optional[Path] = None
    """the training set, if not DATA_ROOT/train"""
    data_val: Optional[Path] = None
    """the validation set, if not DATA_ROOT/val"""
    data_pred: Optional[str] = None
    """an image, a folder or a glob to classify (--mode pred)"""
    data_backend: Literal["mindrecord", "imagefolder", "generator", "synthetic"] = "mindrecord"
    """records made by scripts/, class folders of image files, your own Python source, or made-up images"""
    data_source: Annotated[Optional[Path], tyro.conf.arg(metavar="FILE.py")] = None
    """for --data-backend generator: a file with a function open_split(split, folder); see docs/own-data.md"""
    image_shape: Tuple[int, int, int] = (3, 224, 224)
    """channels, height, width fed to the network"""
    image_size_steps: Annotated[Tuple[str, ...], tyro.conf.arg(metavar="SIZE@EPOCH [SIZE@EPOCH ...]")] = ()
    """progressive resizing: from that epoch on (the first is 0) train on squares of SIZE pixels, before it on
    --image-shape; for example 192@71"""
    val_image_size: Optional[int] = None
    """side of the squares of validation and prediction, in pixels; unless given that of the last epoch"""
    rgb_mean: Tuple[float, float, float] = (123.68, 116.779, 103.939)
    """subtracted from pixels of 0..255"""
    rgb_std: Tuple[float, float, float] = (58.393, 57.12, 57.375)
    """divides what is left"""
    data_val_resize: Optional[int] = None
    """shorter side before the centre crop, in pixels; unless given 8/7 of the image size (256 for 224)"""
    test_flips: bool = False
    """score and classify each image together with its mirror image, their logits averaged"""
    num_examples: Optional[int] = None
    """use only so many training images; for synthetic data the size of the set (unless given 1281167)"""
    interpolation: Literal["bilinear", "bicubic", "nearest", "area", "pillow-bicubic"] = "bilinear"
    """resizing of training crops: bilinear, bicubic, nearest and area as in OpenCV, or pillow-bicubic, which
    is antialiased; docs/results-preprocessing.md compares them"""
    val_interpolation: Optional[
        Literal["bilinear", "bicubic", "nearest", "area", "pillow-bicubic", "pillow-bilinear"]
    ] = None
    """resizing for validation and prediction, one of these or pillow-bilinear (antialiased); unless given as
    --interpolation"""
    on_bad_image: Literal["error", "skip"] = "error"
    """for --data-backend imagefolder: end at the first file that cannot be decoded, or go on without it"""


@dataclasses.dataclass(frozen=True)
class Pipeline:
    """How the input pipeline runs."""

    data_threads: Optional[int] = None
    """decoding threads of each process; unless given the process's share of the cores, at most 8"""
    data_validation_threads: Optional[int] = None
    """the same for validation; unless given as --data-threads"""
    prefetch_queue: int = 16
    """batches kept ready"""
    fuse_decoder: bool = True
    """decode only the part of a JPEG that the random crop keeps"""
    vector_decoder: bool = True
    """decode JPEG files by Pillow's libjpeg-turbo, which uses the processor's vector instructions, as
    MindSpore's does not; the pixels are the same"""
    normalize_on_device: bool = False
    """hand training images over as bytes, which the device normalises: a quarter of the copying, and less
    work for the host; the same numbers"""
    separ_val: bool = False
    """every process validates the whole set, instead of its share"""
