"""How many findings and leak checks a process's record has so far.

A record grows by whole entries (crates/heapwright-record/src/debug): a tag, a length, that many bytes, a checksum. So
this reads only the entries since the last look. The command runs only for tests with findings.
"""

import os
import struct

HEADER = 16
BEFORE = struct.Struct("<II")
BEHIND = 4
FINDING = 6
CHECKED = 16
MAGIC = b"HWDEBUG\0"


class Record:
    def __init__(self, path):
        self.path = path
        self.at = 0
        self.findings = 0
        self.checks = 0

    def look(self):
        """Counts what was written since the last look. Returns how many findings are new."""
        before = self.findings
        with open(self.path, "rb") as file:
            if self.at == 0:
                header = file.read(HEADER)
                if len(header) < HEADER:
                    return 0
                if not header.startswith(MAGIC):
                    raise RuntimeError(f"{self.path} is no record")
                self.at = HEADER
            file.seek(self.at)
            new = file.read()
        offset = 0
        while offset + BEFORE.size <= len(new):
            tag, length = BEFORE.unpack_from(new, offset)
            end = offset + BEFORE.size + length + BEHIND
            if end > len(new):
                break  # being written, or the last of a process that died
            self.findings += tag == FINDING
            self.checks += tag == CHECKED
            offset = end
        self.at += offset
        return self.findings - before


class Folder:
    """The records of all processes of a run."""

    def __init__(self, path):
        self.path = path
        self.records = {}

    def own(self):
        """This process's record."""
        return self._record(f"record.{os.getpid()}")

    def _record(self, name):
        return self.records.setdefault(name, Record(os.path.join(self.path, name)))

    def with_findings(self):
        """The records in which findings were written since the last look: processes that a test started have some, too."""
        names = sorted(name for name in os.listdir(self.path) if name.startswith("record."))
        return [record for record in map(self._record, names) if record.look()]
