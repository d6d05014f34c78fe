"""The Scheme's programs beside guile and gambit, in turns: called by ci/gc.sh scheme table.

    compare.py SCHEME PROGRAMS ROUNDS SCRATCH
"""

import os
import re
import statistics
import subprocess
import sys
import time

scheme, programs, rounds, scratch = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
# The names of our table functions in the other Schemes.
PRELUDE = {
    "guile": """
(define (make-table) (make-hash-table))
(define (table-ref t k . d) (hash-ref t k (if (pair? d) (car d) #f)))
(define (table-set! t k v) (hash-set! t k v))
(define (table->list t) (hash-map->list cons t))
(define (table-count t) (hash-count (const #t) t))
""",
    "gambit": "(define (table-count t) (length (table->list t)))\n",
}
def run(name, program):
    source = program
    if name in PRELUDE:
        source = os.path.join(scratch, name + ".scm")
        with open(source, "w") as file, open(program) as text:
            file.write(PRELUDE[name] + text.read())
    command = {"heapwright": [scheme, "--stats", source], "guile": ["guile", "--no-auto-compile", "-q", source],
               "gambit": ["gsi", source]}[name]
    began = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = child.communicate()
    took = time.monotonic() - began
    peak = re.search(r"peak ([\d.]+) MiB", err)
    share = re.search(r"collections took ([\d.]+) %", err)
    return took, out, float(share.group(1)) if share else None
print(f"\n| program | heapwright's, ms | guile 3.0, interpreting | gambit's gsi | collector's share of ours |\n|---|--:|--:|--:|--:|")
for program in sorted(os.listdir(programs)):
    if not program.endswith(".scm") or program in ("suite.scm", "server.scm", "depth.scm"):
        continue
    names = ["heapwright", "guile", "gambit"]
    times, shares, said = {name: [] for name in names}, [], {}
    for round in range(rounds):
        for name in names[round % 3:] + names[:round % 3]:
            took, out, share = run(name, os.path.join(programs, program))
            times[name].append(took)
            said[name] = out
            if share is not None:
                shares.append(share)
    if len(set(said.values())) != 1:
        sys.exit(f"{program}: not all print the same: {said}")
    ours = statistics.median(times["heapwright"])
    cells = [f"{ours * 1000:.0f}"]
    for name in names[1:]:
        ratio = statistics.median(other / mine for other, mine in zip(times[name], times["heapwright"]))
        cells.append(f"{statistics.median(times[name]) * 1000:.0f} ({ratio:.2f})")
    print(f"| {program[:-4]} | {' | '.join(cells)} | {statistics.median(shares):.1f} % |")
print(f"\nMedians of {rounds} rounds, in turns; in brackets the median of ratios to ours of the same round.")
