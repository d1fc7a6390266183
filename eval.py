#!/usr/bin/env python3
"""Score a checkpoint: train.py --mode val, with all its options."""

import sys

from src.bootstrap import ensure_interpreter

if __name__ == "__main__":
    ensure_interpreter(__file__)

    from src.run import main

    sys.exit(main(["--mode", "val", *sys.argv[1:]], prog="eval.py"))
