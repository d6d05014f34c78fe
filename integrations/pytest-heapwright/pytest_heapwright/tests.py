"""The checked process: looks for findings after each test, and fails tests with findings.

    setup, call, teardown   pytest's; the reports are held back
    errors                  are there new findings in the records?         (reads only new entries)
    leaks                   are more bytes lost than before the test?      (a leak check: see the README for its time)
    memory                  was the peak above the limit?                  (measured before, in a process of its own)
    reports                 pytest gets all; the report of the call fails if there is a finding

The leak check comes after the teardown, because a fixture may free blocks there. Its result is also the result before
the next test, so a test costs one leak check.
"""

import json
import os

import pytest
from _pytest.runner import runtestprotocol

from . import findings, peaks, sizes
from .library import Library
from .record import Folder

# The most entries that a failure shows. Further entries are counted.
MOST_SHOWN = 10
# Names in the folder that the outer process makes: the records (a link if they are kept), and the
# errors that belong to a test.
RECORDS = "records"
TOLD = "told.json"


class Checked:
    """The plugin of the checked process."""

    def __init__(self, heapwright, state, arguments, suppressions, only_marked):
        self.heapwright = heapwright
        self.arguments = arguments
        self.suppressions = suppressions
        self.only_marked = only_marked
        self.state = state
        self.folder = Folder(os.path.join(state, RECORDS))
        self.library = Library()
        # Blocks and bytes that were lost after the last test. None if that test had no leak check.
        self.lost = None
        self.peaks = {}
        self.told = set()

    def pytest_collection_finish(self, session):
        for item in session.items:
            for name in ("limit_memory", "limit_leaks"):
                limit(item, name)  # A bad one ends the run before it begins.
        if any(item.get_closest_marker("limit_memory") for item in session.items):
            self.peaks = peaks.measure(self.heapwright, self.state, self.arguments)

    def pytest_runtest_protocol(self, item, nextitem):
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        looks_for_leaks = not self.only_marked or item.get_closest_marker("limit_leaks")
        looks_for_errors = not self.only_marked or item.get_closest_marker("no_heap_errors")
        self.folder.with_findings()  # Earlier findings are not this test's.
        before = (self.lost or self.library.lost()) if looks_for_leaks else None
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        found = []
        # Read before the leak check, because a process that the test leaves behind may still find
        # something.
        with_findings = self.folder.with_findings()
        self.lost = self.library.lost() if looks_for_leaks else None
        if looks_for_errors:
            found += self.errors(with_findings)
        if looks_for_leaks:
            found += self.leaks(before, self.lost, limit(item, "limit_leaks") or 0)
        if item.get_closest_marker("limit_memory"):
            found += self.memory(item)
        if found:
            fail(item, reports, "\n".join([f"heapwright: {found[0]}", *found[1:]]))
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def errors(self, records):
        lines = []
        for record in records:
            report = findings.Report(self.heapwright, record.path, self.suppressions)
            for key, error in report.errors().items():
                if key not in self.told:
                    self.told.add(key)
                    lines.append(report.of_error(error))
        return shown(lines, "error")

    def leaks(self, before, after, most):
        if before is None or after is None:
            return ["no leak check could be made: a thread did not stop, or there is no memory"]
        if after[1] - before[1] <= most and (most or after[0] <= before[0]):
            return []
        own = self.folder.own()
        own.look()
        reports = [
            findings.Report(self.heapwright, own.path, self.suppressions, at) for at in (own.checks - 1, own.checks)
        ]
        more = findings.difference(*(report.lost() for report in reports))
        blocks, size = (sum(one[which] for one in more) for which in (0, 1))
        if size <= most and (most or blocks <= 0):
            return []  # The rest is suppressed.
        heading = f"{sizes.show(size)} in {blocks} block{'s'[: blocks != 1]} lost; the limit is {sizes.show(most)}"
        return [heading, *shown([reports[1].of_leak(*one) for one in more], "stack")]

    def memory(self, item):
        most = limit(item, "limit_memory")
        peak = self.peaks.get(item.nodeid)
        if peak is None:
            return ["limit_memory: the test did not run in the process that measures"]
        if peak <= most:
            return []
        return [f"{sizes.show(peak)} of memory in use at once; the limit is {sizes.show(most)}"]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self):
        with open(os.path.join(self.state, TOLD), "w", encoding="utf-8") as file:
            json.dump(sorted(self.told), file)


def limit(item, name):
    """A marker's limit in bytes; None without the marker. UsageError if its argument is no size."""
    marker = item.get_closest_marker(name)
    if marker is None:
        return None
    try:
        (text,) = marker.args
        return sizes.parse(text)
    except ValueError as wrong:
        reason = wrong if len(marker.args) == 1 else "it takes one size, such as '1 KB'"
        raise pytest.UsageError(f"{item.nodeid}: {name}: {reason}") from None


def shown(groups, word):
    """Groups of lines as one list, not too long."""
    lines = [line for group in groups[:MOST_SHOWN] for line in group]
    rest = len(groups) - MOST_SHOWN
    return lines + [f"and {rest} more {word}{'s'[: rest != 1]}"] if rest > 0 else lines


def fail(item, reports, text):
    """Makes a test's reports say that it failed. A test that failed anyway gets a section. If a test is expected to
    fail, the finding is the expected failure."""
    calls = [report for report in reports if report.when == "call"]
    report = calls[0] if calls else reports[0]
    is_unexpected_pass = report.outcome == "failed" and str(report.longrepr).startswith("[XPASS(strict)]")
    xfail = item.get_closest_marker("xfail")
    if xfail and (hasattr(report, "wasxfail") or is_unexpected_pass):
        report.outcome = "skipped"
        report.wasxfail = xfail.kwargs.get("reason", "")
        report.longrepr = text
    elif report.outcome == "failed":
        report.sections.append(("heapwright", text))
    else:
        report.outcome = "failed"
        report.longrepr = text
