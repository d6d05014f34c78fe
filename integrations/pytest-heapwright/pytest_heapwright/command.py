"""The command, and the environment in which it and other helpers run.

Helpers that the checked process starts for itself must not be checked: they would leave records of their own.
"""

import os
import shutil
import subprocess

import pytest

# The purpose of a process, and the place of its results: "check:FOLDER" or "measure:FILE".
ROLE = "HEAPWRIGHT_PYTEST"


def find(asked):
    """The path of the command. UsageError if there is none."""
    name = asked or os.environ.get("HEAPWRIGHT_COMMAND") or "heapwright"
    path = shutil.which(name)
    if path is None:
        raise pytest.UsageError(
            f"--heapwright: there is no command {name!r}; install heapwright, or name it with --heapwright-command"
        )
    return path


def environment():
    """This process's environment, changed so that a program is not checked. With the library in another mode the
    program leaves no record; without the library `check` would report it as unchecked."""
    return {key: value for key, value in os.environ.items() if key != ROLE} | {"HEAPWRIGHT": "mode=fast"}


def output(arguments):
    """What a command prints, and what it writes to standard error if it fails. 1 is no failure: it means that
    something was found."""
    ended = subprocess.run(arguments, env=environment(), capture_output=True, check=False)
    if ended.returncode not in (0, 1):
        said = ended.stderr.decode(errors="replace").strip()
        raise RuntimeError(f"{arguments[0]} ends with {ended.returncode}: {said}")
    return ended.stdout
