"""What is copied before a run starts and after it ends, where its data and results are in object storage."""

from __future__ import annotations

import dataclasses
import filecmp
import tempfile
from pathlib import Path
from typing import Callable

from src.config import Config, Data
from src.data.manifest import FILE_NAME, read_manifest
from src.errors import RESULTS_NOT_SENT, DataError, OptionError
from src.platform import marks, modelarts, pulse
from src.platform.object_storage import Storage, is_url, join, open_storage
from src.platform.results import FINAL_LIMIT_S, SIGNALLED_LIMIT_S, KeptHere, Results

MARK = "staged"


@dataclasses.dataclass(frozen=True)
class Staged:
    """The options with local places only, where the results go, and what a person should know."""

    config: Config
    results: Results = dataclasses.field(default_factory=KeptHere)
    notices: tuple[str, ...] = ()

    def finish(self, code: int) -> int:
        """Send what is left; the exit code, which a failure to do so changes only if all else went well."""
        fault = self.results.finish(SIGNALLED_LIMIT_S if code in (130, 143) else FINAL_LIMIT_S)
        if fault:
            print(f"warning: {fault}", flush=True)
        return RESULTS_NOT_SENT if fault and code == 0 else code


def stage(
    config: Config, copies: bool, writes: bool, claim: Callable[[Path], object] = lambda workspace: None
) -> Staged:
    """Bring data and earlier results to the local disk; the same options where nothing is to be brought.

    `copies`: this process does it for its node; others wait for it. `writes`: this one sends the results.
    `claim` is called with the workspace before anything is brought there.
    Raises OptionError, DataError or another SuiteError.
    """
    local, notices = _local_places(config)
    urls = [url for url in (_data_url(config), config.platform.train_url) if is_url(url)]
    if not urls:
        return Staged(local, notices=notices)
    if is_url(config.platform.train_url):
        claim(local.output.workspace)
    pulse.give(pulse.Phase.STAGING)
    scratch = modelarts.scratch_folder(config.platform.scratch)
    folder = modelarts.attempt_folder(scratch)
    if not copies:
        marks.wait(folder, MARK)
    elif not marks.is_done(folder, MARK):
        _copy_for_the_node(config, local, folder)
    pulse.give(pulse.Phase.STARTING)
    results: Results = KeptHere()
    train_url = config.platform.train_url
    if writes and train_url is not None and is_url(train_url):
        sent = folder / "sent.json"
        results = Results(local.output.workspace, train_url, sent, lambda: open_storage(train_url))
    return Staged(local, results, notices)


def _data_url(config: Config) -> str | None:
    """The address of the data, unless this command reads none: the platform gives one all the same."""
    unread = config.data.data_backend == "synthetic" or config.training.mode == "pred"
    return None if unread else config.platform.data_url


def _local_places(config: Config) -> tuple[Config, tuple[str, ...]]:
    """The same options with local folders for data and results, and sentences on them."""
    data, output, platform = config.data, config.output, config.platform
    scratch, notices = modelarts.scratch_folder(platform.scratch), []
    data_url, train_url = _data_url(config), platform.train_url
    if data_url is not None:
        if data.data_root != Data().data_root:
            raise OptionError(f"--data-root {data.data_root} and --data_url {data_url}: give one of the two")
        root = modelarts.folder_of(scratch, "data", data_url) if is_url(data_url) else Path(data_url)
        data = dataclasses.replace(data, data_root=root)
        notices.append(f"data of --data_url {data_url} in {root}")
    if train_url is not None:
        workspace = output.workspace
        if not is_url(train_url):
            workspace = modelarts.results_folder(workspace, Path(train_url))
        elif workspace == Path("."):
            workspace = modelarts.folder_of(scratch, "results", train_url)
        output = dataclasses.replace(output, workspace=workspace)
        notices.append(f"results of --train_url {train_url} in {workspace}")
    platform = dataclasses.replace(
        platform, data_url=None, train_url=train_url if is_url(train_url) else None
    )
    return dataclasses.replace(config, data=data, output=output, platform=platform), tuple(notices)


def _copy_for_the_node(config: Config, local: Config, folder: Path) -> None:
    """Copy, and tell the processes that wait how it went."""
    try:
        data_url, train_url = _data_url(config), config.platform.train_url
        if data_url is not None and is_url(data_url):
            fetch_data(open_storage(data_url), data_url, local.data.data_root)
        if train_url is not None and is_url(train_url):
            fetch_results(open_storage(train_url), train_url, local)
    except BaseException as error:
        marks.leave(folder, MARK, str(error) or type(error).__name__)
        raise
    marks.leave(folder, MARK)


def fetch_data(storage: Storage, url: str, target: Path) -> bool:
    """Copy a data set unless it is there; whether it was copied. Raises DataError where not all arrived."""
    names = storage.names(url)
    if not names:
        raise DataError(f"--data_url {url} holds no files: name the folder that holds train/ and val/")
    if _is_complete(storage, url, target, names):
        return False
    storage.fetch_folder(url, target)
    missing = _missing(target, names)
    if missing:
        raise DataError(
            f"{len(missing)} of {len(names)} files of {url} did not arrive in {target}: {missing[0]}"
        )
    size, arrived = storage.size(url, folder=True), sum((target / name).stat().st_size for name in names)
    if arrived != size:
        raise DataError(f"{url} has {size:,} bytes, and {arrived:,} arrived in {target}")
    for name in _manifests(names):
        read_manifest((target / name).parent)
    return True


def _is_complete(storage: Storage, url: str, target: Path, names: list[str]) -> bool:
    """By manifests, which name every shard with its size and checksum; without one, by number and bytes."""
    if _missing(target, names):
        return False
    manifests = _manifests(names)
    if not manifests:
        return storage.size(url, folder=True) == sum((target / name).stat().st_size for name in names)
    with tempfile.TemporaryDirectory() as folder:
        for name in manifests:
            storage.fetch(join(url, name), Path(folder) / name)
            if not filecmp.cmp(Path(folder) / name, target / name, shallow=False):
                return False
    try:
        for name in manifests:
            read_manifest((target / name).parent)
    except DataError:
        return False
    return True


def _missing(target: Path, names: list[str]) -> list[str]:
    return [name for name in names if not (target / name).is_file()]


def _manifests(names: list[str]) -> list[str]:
    return [name for name in names if name.rsplit("/", 1)[-1] == FILE_NAME]


def fetch_results(storage: Storage, url: str, config: Config) -> bool:
    """What an earlier attempt sent and this machine lacks, for --resume; whether there was any."""
    out = config.output
    if (out.workspace / out.report).exists():
        return False  # written here: at least as new as what was sent from here
    wanted = [
        name
        for name in storage.names(url)
        if name in (out.report, out.log, out.dllogger_log)
        or (name.startswith(f"{out.model_prefix}_") and name.endswith(".safetensors") and "/" not in name)
    ]
    if out.report not in wanted:
        return False
    for name in sorted(wanted, key=lambda name: name == out.report):  # the report last: it says all is here
        storage.fetch(join(url, name), out.workspace / name)
    return True


def strangers() -> list[str] | None:
    """A list for options that nobody knows, on the platform that appends such; None: they are an error."""
    return [] if modelarts.is_here() else None


def about_strangers(words: list[str] | None) -> tuple[str, ...]:
    if not words:
        return ()
    return (
        f"not options of this suite, and ignored as ModelArts appends some of its own: {' '.join(words)}",
    )
