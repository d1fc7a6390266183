"""A first signal asks, a second one ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from tests.support import ROOT

CODE = """
import time
from src.platform.signals import Requests
requests = Requests().install()
print("ready", flush=True)
for _ in range(600):
    time.sleep(0.1)
    if requests.stop_asked:
        print(requests.stop_signal, flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_is_noted_and_the_second_ends_the_process(number):
    process = subprocess.Popen([sys.executable, "-c", CODE], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.stdout.readline() == f"{int(number)}\n"
    time.sleep(0.05)
    process.send_signal(number)
    assert process.wait(10) == -number
