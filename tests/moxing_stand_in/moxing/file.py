"""The functions that the suite calls, with the real ones' signatures and habits."""

import json
import os
import shutil
import time
from pathlib import Path


def _root():
    return Path(os.environ["MOXING_ROOT"])


def _path(url):
    for scheme in ("obs://", "s3://"):
        if url.startswith(scheme):
            return _root() / url[len(scheme) :]
    return Path(url)


def _note(call, src, dst):
    with open(_root() / ".calls", "a") as log:
        log.write(f"{call} {src} {dst}\n")
    faults_file = _root() / ".faults.json"
    if not faults_file.exists():
        return
    faults = json.loads(faults_file.read_text())
    time.sleep(faults.get("slow_s", 0))
    if faults.get("full"):
        raise OSError(28, "No space left on device")
    key = "upload" if "://" in str(dst) else call
    left = faults.get(key, 0)
    if left:
        faults[key] = left - 1 if left > 0 else left
        faults_file.write_text(json.dumps(faults))
        raise Exception(f"{call}: 503 service unavailable")


def exists(url):
    return _path(url).exists()


def list_directory(url, recursive=False):
    folder = _path(url)
    found = folder.rglob("*") if recursive else folder.iterdir()
    return [str(path.relative_to(folder)) + "/" * path.is_dir() for path in found]


def get_size(url, recursive=False):
    path = _path(url)
    if path.is_dir():
        return sum(p.stat().st_size for p in path.rglob("*") if p.is_file()) if recursive else 0
    return path.stat().st_size


def copy(src_url, dst_url):
    _note("copy", src_url, dst_url)
    _path(dst_url).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(_path(src_url), _path(dst_url))


def copy_parallel(src_url, dst_url):
    _note("copy_parallel", src_url, dst_url)
    shutil.copytree(_path(src_url), _path(dst_url), dirs_exist_ok=True)
