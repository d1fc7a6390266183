"""The ends a run can come to. Each error carries the exit code that scripts can rely on."""

from __future__ import annotations

INTERRUPTED_SIGINT = 130


class SuiteError(Exception):
    """Something the user can mend: shown as one sentence, without a traceback."""

    exit_code = 1


class OptionError(SuiteError):
    """An option, or a combination of options, that cannot work."""

    exit_code = 2


class DataError(SuiteError):
    """The data set is missing, damaged, or does not fit the options."""

    exit_code = 3


class DivergedError(SuiteError):
    """The loss is no longer a finite number."""

    exit_code = 4


class CheckpointError(SuiteError):
    """A checkpoint is missing, damaged, or belongs to another network."""

    exit_code = 5


RESULTS_NOT_SENT = 6  # the run is complete, but its results did not reach --train_url
