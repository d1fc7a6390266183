"""log.log: everything a run says, with the time, for reading afterwards."""

from __future__ import annotations

import logging
import os
from typing import Optional, Union

from src.errors import SuiteError

PathLike = Union[str, "os.PathLike[str]"]


def open_log_file(path: Optional[PathLike], append: bool) -> logging.Logger:
    """A logger into `path` alone (None: nowhere).  Raises SuiteError where the file cannot be opened.

    Opening the same path again replaces the file behind the same logger, so no line is written twice.
    """
    logger = logging.getLogger(f"{__name__}:{None if path is None else os.path.abspath(path)}")
    logger.setLevel(logging.INFO)
    logger.propagate = False  # the root logger belongs to whoever embeds this suite
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        handler.close()
    logger.addHandler(_handler(path, append))
    return logger


def _handler(path: Optional[PathLike], append: bool) -> logging.Handler:
    if path is None:
        return logging.NullHandler()
    try:
        mode = "a" if append else "w"
        handler = logging.FileHandler(path, mode=mode, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise SuiteError(f"cannot write the log {os.fspath(path)}: {error.strerror or error}") from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s", "%Y-%m-%d %H:%M:%S"))
    return handler
