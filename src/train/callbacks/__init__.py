"""The programme of an epoch: each callback does one thing and adds what it learns to the epoch's record.

None calls another; their order in `fit.callbacks` is the order of events.
"""

from src.train.callbacks.ending import STOP_CHECK_STEPS, StopOnBrokenState, StopOnDivergence, StopOnSignal
from src.train.callbacks.measuring import Progress, Sums, TrainMetrics
from src.train.callbacks.saving import Checkpoints, EndOfEpoch
from src.train.callbacks.scoring import AverageStatistics, Validate
from src.train.callbacks.timing import DataClock, StepClock
from src.train.callbacks.uploading import OfferResults

__all__ = [
    "STOP_CHECK_STEPS", "AverageStatistics", "Checkpoints", "DataClock", "EndOfEpoch", "OfferResults",
    "Progress", "StepClock", "StopOnBrokenState", "StopOnDivergence", "StopOnSignal", "Sums", "TrainMetrics",
    "Validate",
]  # fmt: skip
