"""Looks at a time line of `heapwright run --timeline`: ci/timeline.py FILE "COLLECTIONS PAUSES" WORDS

That it is JSON in Chrome's trace format, that spans nest on each thread, that what begins ends, and that there are as many collections
and pauses as the program's statistics counted before it ended. WORDS are the program's; `moving` moves objects.
"""

import json
import sys
from collections import Counter, defaultdict

path, counted, words = sys.argv[1:]
collections, pauses = map(int, counted.split())
with open(path, encoding="utf-8") as file:
    events = json.load(file)["traceEvents"]

seen = Counter()
threads = defaultdict(list)
open_ids = Counter()
for event in events:
    assert isinstance(event["pid"], int) and isinstance(event["tid"], int), event
    if event["ph"] != "M":
        assert event["ts"] >= 0, event
    if event["ph"] == "X":
        name = "pause" if event["name"].endswith(" pause") else event["name"]
        seen[name] += 1
        threads[event["tid"]].append((event["ts"], event["ts"] + event["dur"], name))
    elif event["ph"] in "be":
        open_ids[event["id2"]["local"], event["name"]] += 1 if event["ph"] == "b" else -1
        assert open_ids[event["id2"]["local"], event["name"]] in (0, 1), event
        seen["collection" if event["name"].endswith(" collection") else event["name"]] += event["ph"] == "b"
    elif event["ph"] == "C":
        assert event["args"]["bytes"] > 0, event

assert not any(open_ids.values()), "everything has ended"
for spans in threads.values():
    # Outer ones first. Times are to the nanosecond, in microseconds.
    spans.sort(key=lambda span: (span[0], -span[1]))
    around = []
    for begin, end, name in spans:
        while around and around[-1][1] <= begin + 0.0005:
            around.pop()
        assert not around or end <= around[-1][1] + 0.0005, (name, begin, end, around[-1])
        if name in ("mark", "roots", "weak", "move"):
            assert any(outer[2] == "pause" for outer in around), (name, begin)
        around.append((begin, end, name))

# The program collects a little more when it has printed what it counted.
assert collections <= seen["collection"] <= collections + 10, (collections, seen)
assert pauses <= seen["pause"] <= pauses + 20, (pauses, seen)
for name in ("trace", "sweep", "mark", "roots", "weak", "to safepoint"):
    assert seen[name] > 0, name
assert (seen["move"] > 0) == ("moving" in words.split()), seen
