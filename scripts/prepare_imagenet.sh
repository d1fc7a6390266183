#!/usr/bin/env bash
# ImageNet (ILSVRC 2012) as people have it -> MindRecord, in one command; --help says more.
# Environment: PYTHON, the interpreter (python3).
set -euo pipefail
here="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"
exec "${PYTHON:-python3}" "$here/prepare_imagenet.py" "$@"
