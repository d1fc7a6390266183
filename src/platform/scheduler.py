"""The process through which the ranks of a run find each other: `python -m src.platform.scheduler`.

It computes nothing and ends after the last rank.
"""

import sys

from src.errors import SuiteError

RANKS_ARE_GONE = "timed out node"  # in MindSpore's words


def serve(lost: int = 0) -> int:
    """Be the scheduler until the ranks have ended. Raises SuiteError if they do not all come.

    `lost` is the exit code once ranks gave no sign of life for half a minute.

    Our ranks end without MindSpore's own ending (distributed.leave), so it misses their signs of life, and
    takes them for lost half a minute later. How they ended, their own exit codes tell whoever started them.
    """
    import mindspore
    from mindspore import communication

    mindspore.set_device("CPU")
    try:
        communication.init()
    except RuntimeError as error:
        told = str(error).strip().splitlines()[0]
        if RANKS_ARE_GONE not in told:
            raise SuiteError(f"the scheduler did not bring the ranks together: {told}") from error
        print(f"the ranks have left: {told}")
        return lost
    return 0


def main() -> int:
    """As `serve`, for whoever keeps it only as long as ranks run: that some are lost is a failure then."""
    return serve(lost=1)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SuiteError as error:
        sys.exit(str(error))
