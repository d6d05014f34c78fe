"""Runs a command and measures its cost: for the compare.py of each runtime."""

import os
import shlex
import sys
import tempfile


def run(command, environment, limit=None):
    """CPU seconds (user and system, all threads), peak KiB, standard output, and errors. None if it takes more than
    `limit` seconds by the clock. Ends the script if it fails."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors, tempfile.NamedTemporaryFile("r") as peak:
        # A process begins with the peak of the process that forked it. GNU time's peak is small.
        timed = ["/usr/bin/time", "-q", "-f", "%M", "-o", peak.name, *(["timeout", "--foreground", str(limit)] if limit else []), *command]
        streams = [(os.POSIX_SPAWN_DUP2, file.fileno(), number) for number, file in ((1, out), (2, errors))]
        pid = os.posix_spawn(timed[0], timed, environment, file_actions=streams)
        _, status, usage = os.wait4(pid, 0)
        # 124: `timeout` has ended the command.
        if limit and os.waitstatus_to_exitcode(status) == 124:
            return None
        out.seek(0)
        errors.seek(0)
        printed, complaints = out.read(), errors.read()
        if status != 0:
            sys.exit(f"compare.py: {shlex.join(command)}: status {status}\n{complaints[-2000:].decode(errors='replace')}")
        return usage.ru_utime + usage.ru_stime, int(peak.read()), printed, complaints
