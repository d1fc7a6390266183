#!/usr/bin/env bash
# One split of ImageNet: a folder of class folders -> MindRecord.
set -euo pipefail
here="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"

usage() {
    cat <<EOF
Usage: $(basename -- "$0") IMAGES TARGET [options of writer.py and of the imagenet plug-in]

IMAGES is the folder that holds the class folders of one split (IMAGES/n01440764/*.JPEG, ...); the records go
to TARGET/<name of TARGET>.mindrecord*, with TARGET/manifest.json.  TARGET must not exist (or add --overwrite).

  $(basename -- "$0") /data/imagenet/train /data/records/train
  $(basename -- "$0") /data/imagenet/val   /data/records/val --classes_from /data/records/train/manifest.json

Environment:
  MAP_FILE    mapping file: class folder, label, name            (none: sorted class folders)
  PARTITIONS  number of shards                                   (auto)
  WORKERS     processes                                          (all processors)
  SEED        of the order of the rows                           (0)
  PYTHON      interpreter                                        (python3)
EOF
}

case "${1-}" in
    -h | --help) usage; exit 0 ;;
esac
if [ $# -lt 2 ] || [ "${1#-}" != "$1" ] || [ "${2#-}" != "$2" ]; then
    usage >&2
    exit 2
fi
images="$1"
target="${2%/}"
shift 2
options=()
[ -z "${MAP_FILE-}" ] || options+=(--map_file "$MAP_FILE")
[ -z "${WORKERS-}" ] || options+=(--mindrecord_workers "$WORKERS")
exec "${PYTHON:-python3}" "$here/writer.py" \
    --mindrecord_script imagenet \
    --mindrecord_file "$target/$(basename -- "$target").mindrecord" \
    --mindrecord_partitions "${PARTITIONS:-auto}" \
    --mindrecord_seed "${SEED:-0}" \
    --dir "$images" \
    ${options[@]+"${options[@]}"} \
    "$@"
