#!/usr/bin/env bash
# The plug-in of template/, with its parameters in one place: copy this file with the folder.
set -euo pipefail
here="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"

usage() {
    cat <<EOF
Usage: $(basename -- "$0") TARGET [options of writer.py and of the plug-in]

Writes TARGET/train.mindrecord* and TARGET/manifest.json; TARGET must not exist yet (or add --overwrite).

Environment:
  SCRIPT      plug-in, a folder beside writer.py or a path       (template)
  PARTITIONS  number of shards                                   (1)
  WORKERS     processes                                          (2)
  PYTHON      interpreter                                        (python3)
EOF
}

case "${1-}" in
    -h | --help) usage; exit 0 ;;
    "" | -*) usage >&2; exit 2 ;;
esac
target="$1"
shift
exec "${PYTHON:-python3}" "$here/writer.py" \
    --mindrecord_script "${SCRIPT:-template}" \
    --mindrecord_file "$target/train.mindrecord" \
    --mindrecord_partitions "${PARTITIONS:-1}" \
    --mindrecord_workers "${WORKERS:-2}" \
    "$@"
