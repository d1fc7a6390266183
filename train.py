#!/usr/bin/env python3
"""Train, score or predict in one process, or as one rank of many: python train.py --help."""

import sys

from src.bootstrap import ensure_interpreter

if __name__ == "__main__":
    ensure_interpreter(__file__)

    from src.run import main

    sys.exit(main(sys.argv[1:], prog="train.py"))
