#!/usr/bin/env python3
"""Measures speed over numbers of devices and batch sizes: python benchmark.py --help."""

import sys

from src.bootstrap import ensure_interpreter

if __name__ == "__main__":
    ensure_interpreter(__file__)

    from src.benchmark.command import main

    sys.exit(main(sys.argv[1:]))
