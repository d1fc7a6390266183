"""The programme of an epoch: each callback does one thing and adds what it learns to the epoch's record.

None calls another; their order in `fit.callbacks` is the order of events.
"""

from src.train.callbacks.caching import CachedGraph
from src.train.callbacks.ending import (
    STOP_CHECK_STEPS,
    Agreement,
    StopOnBrokenState,
    StopOnDivergence,
    StopOnSignal,
)
from src.train.callbacks.measuring import Progress, Sums, TrainMetrics
from src.train.callbacks.profiling import Profile
from src.train.callbacks.pulses import Pulses
from src.train.callbacks.saving import Checkpoints, CheckpointsWithinEpochs, EndOfEpoch
from src.train.callbacks.scoring import AverageStatistics, Validate
from src.train.callbacks.timing import DataClock, StepClock
from src.train.callbacks.uploading import OfferResults
from src.train.callbacks.whole import WholeEpoch

__all__ = [
    "STOP_CHECK_STEPS", "Agreement", "AverageStatistics", "CachedGraph", "Checkpoints",
    "CheckpointsWithinEpochs", "DataClock", "EndOfEpoch", "OfferResults", "Profile", "Progress", "Pulses",
    "StepClock", "StopOnBrokenState", "StopOnDivergence", "StopOnSignal", "Sums", "TrainMetrics", "Validate",
    "WholeEpoch",
]  # fmt: skip
