"""Options, markers, and which of the three processes this is.

    pytest --heapwright                   the outer process: replaced by a run of the same command under `check`
      heapwright check -- python pytest   the checked process: the tests, looked at one by one
        heapwright run -- python pytest   the measured process: tests with a limit of memory, where there are any
"""

import os
import sys

import pytest

from . import command, launch
from .peaks import Measured
from .tests import Checked

MARKERS = (
    "limit_memory(size): with --heapwright, the test fails if its call holds more than size at once, such as '24 MB'",
    "limit_leaks(size): with --heapwright, the test fails if more than size is lost, such as '1 KB'; without it, if anything is",
    "no_heap_errors: with --heapwright-marked, the test fails if there is a heap error in it; with --heapwright alone all do",
)


def pytest_addoption(parser):
    group = parser.getgroup("heapwright", "leaks, heap errors and memory limits of tests")
    group.addoption("--heapwright", action="store_true", help="run the tests under heapwright: leaks and heap errors fail them")
    group.addoption(
        "--heapwright-marked", action="store_true",
        help="the same, but look only at tests with one of the markers limit_memory, limit_leaks, no_heap_errors",
    )  # fmt: skip
    group.addoption("--heapwright-suppress", action="append", default=[], metavar="FILE", help="hide the findings that FILE lists; may be repeated")
    group.addoption("--heapwright-keep", metavar="FOLDER", help="keep the records in FOLDER, for `heapwright report`")
    group.addoption("--heapwright-command", metavar="PATH", help="the command (default: $HEAPWRIGHT_COMMAND, or heapwright)")


def is_asked(config):
    option = config.option
    return option.heapwright or option.heapwright_marked


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    option = config.option
    if not is_asked(config) or command.ROLE in os.environ or option.help or option.version or option.collectonly:
        return None
    if getattr(option, "numprocesses", None):
        raise pytest.UsageError("--heapwright does not go with xdist's -n: leaks are counted for a process")
    heapwright = command.find(option.heapwright_command)
    suppressions = suppression_files(config)
    return launch.run(heapwright, sys.orig_argv[1:], option.heapwright_keep, suppressions, option.heapwright_marked)


def pytest_configure(config):
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    # Removed, so that a pytest that a test starts is none of these processes.
    role, _, place = os.environ.pop(command.ROLE, "").partition(":")
    if not role or not is_asked(config):
        return
    try:
        if role == "measure":
            plugin = Measured(place)
        else:
            heapwright = command.find(config.option.heapwright_command)
            plugin = Checked(heapwright, place, sys.orig_argv[1:], suppression_files(config), config.option.heapwright_marked)
    except RuntimeError as wrong:
        raise pytest.UsageError(f"--heapwright: {wrong}") from None
    config.pluginmanager.register(plugin, "heapwright-tests")


def suppression_files(config):
    """The files of --heapwright-suppress, for commands that run in any folder."""
    files = [os.path.abspath(file) for file in config.option.heapwright_suppress]
    for file in files:
        if not os.path.isfile(file):
            raise pytest.UsageError(f"--heapwright-suppress: there is no file {file}")
    return files
