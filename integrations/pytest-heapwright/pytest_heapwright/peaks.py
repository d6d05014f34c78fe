"""The most bytes that each test with a limit of memory held at once, measured in a separate run of pytest.

The debug heap has no exact peak, and its quarantined blocks, guards and checks do not count for a limit. So the checked
process runs pytest once more, not in debug mode and with these tests alone.

The library keeps one peak for the process, and never sets it back. So before each test a block lifts the live bytes
above the old peak: then each further byte is a new peak. The block is not touched, so it takes addresses and no memory.
"""

import json
import os
import subprocess
import sys

import pytest

from . import command
from .library import Library

MARGIN = 1 << 20


class Measured:
    """The plugin of the measured process."""

    def __init__(self, file):
        self.file = file
        self.peaks = {}
        self.library = Library()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        limited = [item for item in items if item.get_closest_marker("limit_memory")]
        config.hook.pytest_deselected(items=[item for item in items if item not in limited])
        items[:] = limited

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item):
        before = self.library.statistics()
        ballast = self.library.symbols.calloc(1, max(before.peak_live_bytes - before.live_bytes, 0) + MARGIN)
        floor = self.library.peak()
        try:
            yield
        finally:
            self.peaks[item.nodeid] = self.library.peak() - floor
            self.library.symbols.free(ballast)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self):
        with open(self.file, "w", encoding="utf-8") as file:
            json.dump(self.peaks, file)


def measure(heapwright, state, arguments):
    """Runs the measured process. Returns the peaks by node id. UsageError if it writes none."""
    results = os.path.join(state, "peaks.json")
    log = os.path.join(state, "peaks.log")
    environment = command.environment()
    environment[command.ROLE] = f"measure:{results}"
    # Each object is a block, as in the checked process.
    environment["PYTHONMALLOC"] = "malloc"
    counting = ["--option", f"stats_file={os.path.join(state, 'statistics')}"]
    with open(log, "wb") as output:
        subprocess.run(
            [heapwright, "run", *counting, "--", sys.executable, *arguments],
            env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False,
        )  # fmt: skip
    try:
        with open(results, encoding="utf-8") as file:
            return json.load(file)
    except OSError:
        with open(log, encoding="utf-8", errors="replace") as file:
            last = file.read().splitlines()[-10:]
        raise pytest.UsageError("\n".join(["limit_memory: the run that measures failed:", *last])) from None
