"""What each of two ranks does for test_distributed: call World's collectives and write down their answers."""

import json
import sys
from pathlib import Path

import numpy as np

from src.platform import distributed, environment

NUMBERS = (1 / 3, 123456789.125, 2.0**53 - 1, -1e-9, 0.0)


def main(folder: Path) -> int:
    environment.prepare("CPU", environment.this_rank().size)
    world = distributed.init("CPU")
    statistics = [np.full((2, 3), world.rank, np.float32), np.arange(4) + 1.5 * world.rank]
    answers = {
        "place": [world.rank, world.size, world.local_rank, world.is_main],
        "gather": world.gather([number * (world.rank + 1) for number in NUMBERS]),
        "sum": world.sum(NUMBERS),
        "sum of one rank": world.sum([2.0**53 if world.is_main else 1.0, 7 if world.rank else 0]),
        "not finite": [repr(x) for x in world.sum([float("nan") if world.rank else 1.0, float("inf"), 5.0])],
        "any": [world.any(world.rank == 1), world.any(False), world.any(True)],
        "mean": [array.tolist() for array in world.mean_arrays(statistics)],
    }
    (folder / f"answers_{world.rank}.json").write_text(json.dumps(answers))
    return distributed.leave(0, world)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
