"""The process through which the ranks of a run find each other: `python -m src.platform.scheduler`.

It computes nothing and ends after the last rank.
"""

import mindspore
from mindspore import communication


def main() -> None:
    mindspore.set_device("CPU")
    communication.init()


if __name__ == "__main__":
    main()
