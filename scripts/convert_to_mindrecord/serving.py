"""A worker process's life: receive the number of a shard, write it, send what is to be said of it."""

from __future__ import annotations

import dataclasses
import time
import traceback
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

from children import leave_if_orphaned, orders
from failure import DATA_UNUSABLE, OTHER, ConvertError, DiskFull, is_disk_full
from record_files import flush
from shards import Job, PageTooSmall, Report, write_shard
from watch import RowAtHand, WatchedPlugIn

REPORT_EVERY_S = 0.3


def serve(connection: Connection, job: Job, checked: RowAtHand, asked: RowAtHand, parent: int) -> None:
    plugin: Any = WatchedPlugIn(job.plugin, asked)
    job = dataclasses.replace(job, plugin=plugin)
    news = [0, 0, 0]
    sent = time.monotonic()

    def send_news() -> None:
        nonlocal sent
        connection.send(("progress", *news))
        news[:] = [0, 0, 0]
        sent = time.monotonic()

    def report(tasks: int, rows: int, num_bytes: int) -> None:
        news[0] += tasks
        news[1] += rows
        news[2] += num_bytes
        if time.monotonic() - sent > REPORT_EVERY_S:
            leave_if_orphaned(parent)
            send_news()

    with ThreadPoolExecutor(1) as disk:  # it takes one shard while the next one is written
        flushed = []
        for index, killers in orders(connection, parent):
            answer = attempt(job, index, report, checked, killers)
            send_news()
            connection.send(answer)
            flushed.append(disk.submit(flush, job.folder / job.names[index]))
        connection.send(outcome(flushed))


def outcome(flushed: list[Future]) -> tuple:
    """Wait for the disk."""
    try:
        for task in flushed:
            task.result()
    except OSError as error:
        sentence = f"{error.filename or 'the records'} did not reach the disk: {error.strerror}"
        return ("full", sentence) if is_disk_full(error) else ("failed", sentence, OTHER)
    return ("flushed",)


def attempt(job: Job, index: int, report: Report, at_hand: RowAtHand, killers: dict) -> tuple:
    try:
        return ("done", index, write_shard(job, index, report, at_hand, killers))
    except PageTooSmall as error:
        return ("grow", error.row_bytes)
    except DiskFull as error:
        return ("full", str(error))
    except ConvertError as error:
        return ("failed", str(error), error.exit_code)
    except (ValueError, OSError) as error:
        if is_disk_full(error):
            return ("full", str(error))
        return ("failed", f"the plug-in {job.plugin.name} gave up: {error}", DATA_UNUSABLE)
    except Exception as error:  # a plug-in's own mistake: its author needs the traceback
        traceback.print_exc()
        return ("failed", f"the plug-in {job.plugin.name} failed: {type(error).__name__}: {error}", OTHER)
