"""Stands in for ModelArts' moxing: buckets are folders below $MOXING_ROOT, and it can fail.

$MOXING_ROOT/.faults.json, {"copy": 2, "copy_parallel": -1}: so many calls fail, -1 all of them;
"slow_s" is the duration of each copy. $MOXING_ROOT/.calls lists what was copied.
"""

from . import file  # noqa: F401
