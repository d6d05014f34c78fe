"""The outer process: runs pytest again under `heapwright check`, and prints the findings outside of any test.

Such a finding (at the interpreter's end, in a process that outlived its test) makes the exit code 1 instead of 0. The
exit code is 125 if a process was not checked to its end. Otherwise it is pytest's.
"""

import json
import os
import subprocess
import sys
import tempfile

import pytest

from . import command, findings
from .record import Folder
from .tests import RECORDS, TOLD

# Exit codes of `heapwright check`: it refused the command line or the folder; it did not see a
# process to its end.
REFUSED = 2
NOT_SEEN = 125


def run(heapwright, arguments, kept, suppressions, only_marked):
    """Runs the checked process. Returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="heapwright-") as state:
        records, text = os.path.join(state, RECORDS), os.path.join(state, "report")
        if kept is not None:
            os.makedirs(kept, exist_ok=True)
            os.symlink(os.path.abspath(kept), records)
        # Leaks are looked for after each test, and reachable blocks are not wanted.
        options = ["--python", "--leaks", "no", "--option", "reachable=none", "--fail-on", "none"]
        environment = command.environment()
        environment[command.ROLE] = f"check:{state}"
        code = subprocess.run(
            [heapwright, "check", *options, "--keep", records, "-o", text, "--", sys.executable, *arguments],
            env=environment, check=False,
        ).returncode  # fmt: skip
        if code < 0:
            code = 128 - code
        if code == NOT_SEEN and os.path.exists(text):
            with open(text, encoding="utf-8", errors="replace") as file:
                sys.stderr.writelines(line for line in file if " INCOMPLETE: " in line)
        if code == REFUSED and not os.path.exists(os.path.join(state, TOLD)):
            return code  # The command has said why, and records in the folder are not of this run.
        others = [] if only_marked else outside(heapwright, state, suppressions)
        if others:
            print("heapwright, outside of tests:", *others, sep="\n")
            code = code or int(pytest.ExitCode.TESTS_FAILED)
        return code


def outside(heapwright, state, suppressions):
    """The lines of the findings that are in no test's failure."""
    records = os.path.join(state, RECORDS)
    if not os.path.isdir(records):
        return []  # The run did not begin, and the command has said why.
    try:
        with open(os.path.join(state, TOLD), encoding="utf-8") as file:
            told = set(json.load(file))
    except OSError:
        told = set()  # The checked process did not come to its end.
    lines = []
    for record in Folder(records).with_findings():
        report = findings.Report(heapwright, record.path, suppressions)
        for key, error in report.errors().items():
            if key not in told:
                lines += report.of_error(error)
    return lines
