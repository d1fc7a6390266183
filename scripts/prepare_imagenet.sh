#!/usr/bin/env bash
# ImageNet (ILSVRC 2012) as folders -> MindRecord, in one command.
set -euo pipefail
here="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"

usage() {
    cat <<EOF
Usage: $(basename -- "$0") SRC DST [options]

SRC holds train/<wnid>/*.JPEG and, if it is to be converted too, val/<wnid>/*.JPEG.  Writes DST/train and
DST/val, each with <split>.mindrecord* and manifest.json; then train with --data-root DST.
About 150 GB are needed for all of ImageNet.

Options:
  --map-file FILE       class folder, label, name (default: sorted wnids, the usual order)
  --workers W           processes (default: all processors); changes nothing in the result
  --partitions P        shards of each split (default: by size, 64 at most)
  --seed S              of the order of the rows (default: 0)
  --on-bad-image error|skip
  --overwrite           replace existing sets, each once the new one is whole

Environment: PYTHON     interpreter (python3)
EOF
}

case "${1-}" in
    -h | --help) usage; exit 0 ;;
esac
if [ $# -lt 2 ]; then
    usage >&2
    exit 2
fi
exec "${PYTHON:-python3}" "$here/prepare_dataset.py" "$@"
