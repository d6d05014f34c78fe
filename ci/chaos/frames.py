"""Names for the frames that chaos's watchdog writes as `    PATH+0xOFFSET`, in what passes through.

addr2line where a file has lines (inlined callers too); else the nearest symbol that the file exports.
"""
import bisect
import re
import subprocess
import sys

FRAME = re.compile(r"^(\s+)(/\S+)\+0x([0-9a-f]+)$")


def said_by(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()


def exported(path):
    """The symbols of a file, in order of their addresses."""
    found = []
    for line in said_by("nm", "-D", "--defined-only", path):
        words = line.split()
        if len(words) == 3 and words[1] in "TtWwi":
            found.append((int(words[0], 16), words[2]))
    return sorted(found)


def main():
    lines = sys.stdin.read().splitlines()
    wanted = {}
    for line in lines:
        if frame := FRAME.match(line):
            wanted.setdefault(frame[2], set()).add(int(frame[3], 16))
    names = {}
    for path, offsets in wanted.items():
        symbols = exported(path)
        for offset in offsets:
            told = said_by("addr2line", "-f", "-i", "-C", "-e", path, hex(offset))
            pairs = [(f, p.split("/crates/")[-1].split("/")[-1] if "/" in p else p) for f, p in zip(told[::2], told[1::2])]
            text = " < ".join(f"{f.split('::<impl')[-1]} ({p.split(' ')[0]})" for f, p in pairs if f != "??")
            at = bisect.bisect_right(symbols, (offset, "~")) - 1
            if not text and at >= 0:
                text = f"{symbols[at][1]}+{offset - symbols[at][0]:#x}"
            names[path, offset] = text
    for line in lines:
        frame = FRAME.match(line)
        name = frame and names[frame[2], int(frame[3], 16)]
        print(f"{line}  {name}" if name else line)


main()
