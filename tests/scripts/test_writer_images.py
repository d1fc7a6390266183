"""Damaged images are found at conversion, odd ones repaired, so that MindSpore decodes every row."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from converting import converted, module_of, rows_of, run, write_plugin
from PIL import Image

images = module_of("images")
FULL = images.ImageRules()


def encoded(image, form, **options):
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def opened(data):
    return Image.open(io.BytesIO(data))


def noise(width=300, height=200):
    return Image.fromarray(np.random.RandomState(0).randint(0, 256, (height, width, 3), np.uint8))


def without_adobe_marker(jpeg):
    start = jpeg.index(b"\xff\xee")
    return jpeg[:start] + jpeg[start + 2 + int.from_bytes(jpeg[start + 2 : start + 4], "big") :]


def sideways(image, orientation, form="JPEG"):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encoded(image, form, exif=exif)


def write_files(folder, files):
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


@pytest.fixture(scope="module")
def odd_images(tmp_path_factory):
    """One class of good files, one of odd formats, one of damaged files; all named .JPEG."""
    folder = tmp_path_factory.mktemp("odd")
    jpeg = encoded(noise(), "JPEG")
    red = Image.new("RGB", (40, 40), (200, 40, 40))
    grey = Image.fromarray(np.full((40, 40), 100 * 256, np.uint16))
    animation = [Image.new("RGB", (40, 40), colour) for colour in ("green", "blue")]
    files = {
        "a_good/jpeg": jpeg,
        "a_good/png": encoded(red, "PNG"),
        "b_odd/gif": encoded(red, "GIF", save_all=True, append_images=animation),
        "b_odd/webp": encoded(red, "WEBP"),
        "b_odd/tiff": encoded(red, "TIFF"),
        "b_odd/cmyk": without_adobe_marker(encoded(red.convert("CMYK"), "JPEG")),
        "b_odd/grey16": encoded(grey, "PNG"),
        **{f"c_bad/cut{length}": jpeg[:length] for length in (0, 3, 200, 400, 600, 2000, len(jpeg) - 20)},
        "c_bad/html": b"<html><body>404 not found</body></html>",
    }
    write_files(folder, {f"{name}.JPEG": data for name, data in files.items()})
    (folder / "c_bad/dangling.JPEG").symlink_to("nowhere.JPEG")
    return folder


def test_every_bad_image_is_named_and_nothing_is_published(odd_images, tmp_path):
    done = run("imagenet", tmp_path / "out/train/train.mindrecord", "--dir", odd_images)
    assert done.returncode == 3
    bad = sorted(path.name for path in (odd_images / "c_bad").iterdir())
    assert len(bad) == 9
    assert [name for name in bad if f"c_bad/{name} " not in done.stderr] == []
    assert "a_good" not in done.stderr
    assert "--on-bad-image skip" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_skip_leaves_bad_images_out_and_repairs_odd_ones(odd_images, tmp_path):
    import mindspore.dataset.vision as vision

    out = tmp_path / "train"
    manifest = converted("imagenet", out / "train.mindrecord", "--dir", odd_images, "--on-bad-image", "skip")
    assert {Path(item["file"]).parent.name for item in manifest["refused"]} == {"c_bad"}
    assert len(manifest["refused"]) == 9
    assert [item["num_images"] for item in manifest["classes"]] == [2, 5, 0]
    repaired = {Path(item["file"]).stem: item["reason"] for item in manifest["repaired"]}
    assert set(repaired) == {"gif", "webp", "tiff", "cmyk", "grey16"}
    assert "first of 3 frames" in repaired["gif"]
    rows = {str(row["file_name"]): row["image"] for row in rows_of(out)}
    assert rows["a_good/jpeg.JPEG"].tobytes() == (odd_images / "a_good/jpeg.JPEG").read_bytes()
    for name in repaired:
        pixels = vision.Decode()(np.frombuffer(rows[f"b_odd/{name}.JPEG"].tobytes(), np.uint8))
        expected = (100, 100, 100) if name == "grey16" else (200, 40, 40)
        assert np.abs(pixels.mean((0, 1)) - expected).max() < 4, name


KINDS = {
    "baseline": {},
    "progressive": {"progressive": True},
    "full colour": {"subsampling": 0},
    "restarts": {"restart_marker_blocks": 5},
}


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_jpeg_cut_anywhere_is_refused(kind, mode):
    """At an eighth of the size, every bit is still read: also what is missing at the very end is noticed."""
    jpeg = encoded(noise(420, 380).convert(mode), "JPEG", quality=92, **KINDS[kind])
    assert len(jpeg) > 70_000, "more than one of Pillow's blocks"
    near_blocks = [length for length in range(65_500, 65_600, 7) if length < len(jpeg)]
    middle = np.random.RandomState(1).randint(700, len(jpeg), 60).tolist()
    end = range(len(jpeg) - 40, len(jpeg) - 2)  # the last two bytes only say that it ends
    for length in [*range(0, 700, 3), *near_blocks, *middle, *end]:
        with pytest.raises(images.BadImage):
            images.stored_image(jpeg[:length], FULL)
    assert images.stored_image(jpeg, FULL).data is jpeg


def test_how_much_is_checked():
    """full decodes, header opens (and so still repairs), none passes all through but what MindRecord cannot
    store."""
    jpeg = encoded(noise(), "JPEG")
    gif = encoded(Image.new("RGB", (9, 9)), "GIF")
    files = {"good": jpeg, "cut": jpeg[:-20], "gif": gif, "html": b"<html>", "empty": b""}
    refused = {}
    for check in ("full", "header", "none"):
        rules, refused[check] = images.ImageRules(check=check), []
        for name, data in files.items():
            try:
                stored = images.stored_image(data, rules)
            except images.BadImage:
                refused[check].append(name)
                continue
            assert bool(stored.repair) == (name == "gif" and check != "none")
            assert stored.repair or stored.data is data
    assert refused == {"full": ["cut", "html", "empty"], "header": ["html", "empty"], "none": ["empty"]}


def test_unchecked_images_are_stored_as_they_are(tmp_path):
    folder = write_files(tmp_path / "in", {"a/html.JPEG": b"<html>", "a/x.gif": encoded(noise(), "GIF")})
    options = ("--dir", folder, "--check", "none")
    manifest = converted("imagenet", tmp_path / "out/x.mindrecord", *options)
    assert (manifest["options"]["check"], manifest["rotated"]) == ("none", None)
    assert (manifest["refused"], manifest["repaired"]) == ([], [])
    for row in rows_of(tmp_path / "out"):
        assert row["image"].tobytes() == (folder / str(row["file_name"])).read_bytes()


@pytest.mark.parametrize(("width", "height", "expected"), [(300, 200, (96, 64)), (50, 400, (50, 400))])
def test_resize_only_ever_shrinks(width, height, expected):
    jpeg = encoded(noise(width, height), "JPEG")
    stored = images.stored_image(jpeg, images.ImageRules(resize=64))
    assert opened(stored.data).size == expected
    assert stored.resized == (expected != (width, height))
    assert stored.resized or stored.data is jpeg


def test_resize_is_antialiased_and_keeps_the_kind_of_compression():
    stripes = np.zeros((400, 400, 3), np.uint8)
    stripes[:, ::2] = 255  # without a low-pass filter, one of two columns would be all that is left
    for form, kept in (("PNG", "PNG"), ("JPEG", "JPEG"), ("WEBP", "JPEG"), ("BMP", "PNG")):
        stored = images.stored_image(encoded(Image.fromarray(stripes), form), images.ImageRules(resize=50))
        small = opened(stored.data)
        assert (small.format, small.size) == (kept, (50, 50))
        inner = np.asarray(small)[5:-5, 5:-5]
        assert abs(inner.mean() - 127.5) < 4
        assert inner.std() < 6
    photograph = encoded(noise(), "JPEG", subsampling=2)
    sizes = [
        len(images.stored_image(photograph, images.ImageRules(resize=100, quality=q)).data) for q in (60, 95)
    ]
    assert sizes[0] < sizes[1] / 2


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_ignored_or_applied_as_told(orientation):
    corners = Image.new("RGB", (64, 32), "black")
    corners.paste((255, 0, 0), (0, 0, 16, 16))  # the top left corner, as it is stored
    jpeg = sideways(corners, orientation)
    ignored = images.stored_image(jpeg, FULL)
    assert ignored.data is jpeg
    assert ignored.rotated == (orientation > 1)
    applied = images.stored_image(jpeg, images.ImageRules(apply_orientation=True))
    if orientation == 1:
        assert applied.data is jpeg
        return
    upright = opened(applied.data)
    assert upright.getexif().get(0x0112) is None, "or another decoder would turn it once more"
    assert upright.size == ((64, 32) if orientation < 5 else (32, 64))
    red = np.asarray(upright)[..., 0]
    places = {"left": red[:, :8], "right": red[:, -8:], "top": red[:8], "bottom": red[-8:]}
    found = [name for name, pixels in places.items() if pixels.max() > 200]
    expected = ["left top", "right top", "right bottom", "left bottom"] * 2
    expected[4:] = ["left top", "right top", "right bottom", "left bottom"]
    assert " ".join(found) == expected[orientation - 1]


def test_rotated_photographs_are_counted_and_told(tmp_path):
    files = {f"a/{number}.JPEG": sideways(noise(90, 60), number) for number in (1, 3, 6)}
    folder = write_files(tmp_path / "in", {**files, "a/x.png": encoded(noise(), "PNG")})
    options = ("--dir", folder, "--resize", 30, "--apply-exif-orientation", "--workers", 1)
    done = run("imagenet", tmp_path / "out/x.mindrecord", *options)
    assert done.returncode == 0, done.stderr
    assert "4 made smaller, 2 rotated by EXIF, and turned upright" in done.stdout
    sizes = {
        str(row["file_name"])[2]: opened(row["image"].tobytes()).size for row in rows_of(tmp_path / "out")
    }
    assert sizes == {"1": (45, 30), "3": (45, 30), "6": (30, 45), "x": (45, 30)}
    from src.data.manifest import read_manifest

    options = read_manifest(tmp_path / "out").options
    assert (options["resize"], options["quality"], options["apply_exif_orientation"]) == (30, 95, True)


DEADLY = """
from PIL import Image, ImageFile
mindrecord_schema.update(image={'type': 'bytes'}, file_name={'type': 'string'})
class Deadly(ImageFile.ImageFile):
    format = 'DEADLY'
    def _open(self):
        {how}
Image.register_open('DEADLY', Deadly, lambda prefix: prefix.startswith(b'DEADLY'))
BMP = b'BM:\\0\\0\\0\\0\\0\\0\\x006\\0\\0\\0(\\0\\0\\0\\1\\0\\0\\0\\1\\0\\0\\0\\1\\0\\x18' + bytes(28)
"""
ROWS = (
    "for name in ('x', 'y'):\n"
    "    deadly = (task_id, name) in ((1, 'y'), (3, 'x'))\n"
    "    image = b'DEADLY' * 9 if deadly else BMP\n"
    "    yield {'data': b'd', 'label': 0, 'image': image, 'file_name': f'{task_id}{name}'}"
)


KILLERS = {"SIGSEGV": "os.kill(os.getpid(), signal.SIGSEGV)", "exit code 9": "os._exit(9)"}


@pytest.mark.parametrize(("told", "policy"), [("SIGSEGV", "error"), ("exit code 9", "skip")])
def test_an_image_that_kills_the_process_that_decodes_it_is_a_bad_image(told, policy, tmp_path):
    plugin = write_plugin(tmp_path / "p", ROWS, DEADLY.replace("{how}", KILLERS[told]))
    options = ("--mindrecord_partitions", 2, "--workers", 2, "--on_bad_image", policy)
    done = run(plugin, tmp_path / "out/x.mindrecord", *options)
    if policy == "error":
        assert done.returncode == 3
        for name in ("1y", "3x"):
            assert f"{name} ended the process that decoded it ({told})" in done.stderr
        assert "2 bad image(s)" in done.stderr
        assert not (tmp_path / "out").exists()
        return
    assert done.returncode == 0, done.stderr
    names = [str(row["file_name"]) for row in rows_of(tmp_path / "out")]
    assert names == ["0x", "0y", "1x", "2x", "2y", "3y"]
    manifest = json.loads((tmp_path / "out/manifest.json").read_text("utf-8"))
    assert [item["file"] for item in manifest["refused"]] == ["1y", "3x"]
