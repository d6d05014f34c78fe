"""Dictionaries, strings and JSON: what a Python service does all day: objects.py [PERCENT]

Run with PYTHONMALLOC=malloc, or Python's own small-object allocator would hide
the system's.
"""

import json
import sys

records = [
    {
        "id": i,
        "name": "name-%d" % (i * 7919 % 100003),
        "tags": ["t%d" % (i % k) for k in range(2, 8)],
        "place": {"x": i * 0.5, "y": i * 0.25, "note": "n" * (i % 50)},
    }
    for i in range(200 * int(sys.argv[1] if len(sys.argv) > 1 else 100))
]

for _ in range(2):
    records = json.loads(json.dumps(records))

by_tag = {}
for record in records:
    for tag in record["tags"]:
        by_tag.setdefault(tag, []).append(record["name"])

words = " ".join(record["name"] for record in records).split()
print(len(by_tag), len(words), sum(len(names) for names in by_tag.values()))
