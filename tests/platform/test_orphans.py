"""Processes that slip away from their parent are found and ended; others are let alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.benchmark.sweeps import runs
from tests.support import ROOT

# A child starts two processes in sessions of their own, one within the other, both deaf, and ends.
PROGRAM = """
import json, os, subprocess, sys, time
from src.platform.orphans import Orphanage, children
folder = sys.argv[1]
INNER = "import os, signal, sys, time; signal.signal(15, signal.SIG_IGN); "
INNER += "open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
OUTER = "import subprocess, sys; "
OUTER += "subprocess.Popen([sys.executable, '-c', sys.argv[2], sys.argv[1] + '/inner'], start_new_session=1);"
OUTER += " exec(sys.argv[2].replace('sys.argv[1]', repr(sys.argv[1] + '/outer')))"
CHILD = "import subprocess, sys; "
CHILD += "subprocess.Popen([sys.executable, '-c', *sys.argv[1:]], start_new_session=True)"
before = subprocess.Popen(["sleep", "600"])
orphanage = Orphanage()
subprocess.run([sys.executable, "-c", CHILD, OUTER, folder, INNER], check=True)
names = [os.path.join(folder, name) for name in ("outer", "inner")]
while not all(os.path.exists(name) and open(name).read() for name in names):
    time.sleep(0.02)
found = dict(zip(("outer", "inner"), (int(open(name).read()) for name in names)))
found["killed"] = orphanage.clear()
found["again"] = orphanage.clear()
found["before"] = before.poll()
found["left"] = sorted(children() - {before.pid})
before.kill()
print(json.dumps(found))
"""


def test_orphans_are_ended_with_what_they_started_and_nobody_else_is(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert not runs(found["outer"])
    assert not runs(found["inner"])
    assert (found["killed"], found["again"]) == (2, 0)
    assert found["before"] is None, "a child of the time before was ended too"
    assert found["left"] == []
