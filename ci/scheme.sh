#!/usr/bin/env bash
# The Scheme in crates/heapwright/examples/scheme, a client of the collected heap's safe door:
# its suite and its programs come to what they should, in every way to collect; its suite also
# with a verified collection after every operation, and everything moved after every fourth;
# what is wrong is told with its place.
#
#   ci/scheme.sh                        that
#   ci/scheme.sh table [ROUNDS]         and the programs beside Debian's guile and gambit: time,
#                                       peak memory, the collector's share
#   ci/scheme.sh serve [SECONDS]        and a server for ten minutes, or so long: what it has of memory
#                                       on the way, how long anybody waits for the collector
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cargo build --quiet --locked --release -p heapwright --features derive,std --example scheme
scheme=$CARGO_TARGET_DIR/release/examples/scheme
programs=crates/heapwright/examples/scheme/programs

for program in "$programs"/*.scm; do
    for options in "" "--generations off" "--incremental" "--incremental --generations off"; do
        # shellcheck disable=SC2086
        "$scheme" $options "$program" | diff "${program%.scm}.out" - ||
            die "$(basename "$program") $options does not print what it should"
    done
done
for options in "" "--incremental" "--generations off"; do
    # shellcheck disable=SC2086
    "$scheme" --stress $options "$programs/suite.scm" | diff "$programs/suite.out" - ||
        die "the suite, collecting at every point, $options"
done
say "ok   $(ls "$programs"/*.scm | wc -l) programs, in four ways; the suite in three, collecting all the time"

tells() { # TEXT WANTED
    printf '%s\n' "$1" >"$SCRATCH/wrong.scm"
    local told
    told=$(timeout 60 "$scheme" --limit 64 "$SCRATCH/wrong.scm" 2>&1) && die "nothing is wrong with: $1"
    [ "$told" = "$SCRATCH/wrong.scm:$2" ] || die "of \"$1\" it says \"$told\", not \"$2\""
}
tells $'(define (f x)\n  (car x))\n(f 5)' '2:3: car: a pair is wanted, not 5'
tells $'(let ((x 1))\n  (+ x y))' '2:3: `y` is not defined'
tells $'(foo\n (bar' '3:1: a list is not closed before the end'
tells '(+ 1 2))' '1:8: `)` closes nothing'
tells '((lambda (x) x))' '1:1: a procedure does not take 0 arguments'
tells '(if)' '1:1: this is no `if`: (if)'
tells '(error "no such" (quote thing) 3)' '1:1: error: no such thing 3'
tells '(let loop ((l (list))) (loop (cons 1 l)))' 'more than 64 MiB are in use'
printf '(+ 1 2)\n(define x (list 1\n 2))\nx\n(car 1)\n"a"\n' | "$scheme" >"$SCRATCH/said"
diff - "$SCRATCH/said" <<'SAID' || die "the prompt"
3
(1 2)
1:1: car: a pair is wanted, not 1
"a"
SAID
say "ok   what is wrong is told with its place"
"$scheme" --incremental --serve 2 "$programs/server.scm" >"$SCRATCH/served" || die "the server ends badly"
grep -q '^pauses ' "$SCRATCH/served" || die "the server says nothing of pauses"
say "ok   it serves"
if [ "${1:-}" = serve ]; then
    "$scheme" --incremental --serve "${2:-600}" "$programs/server.scm" | tee "$SCRATCH/served"
    # Flat: what is resident in the last half is no more than the most of the second quarter and a
    # twentieth. The longest pauses are told by the clock, whatever else the machine does.
    awk '
        /^serve / {
            split($4, has, "="); n++
            resident[n] = has[2]
        }
        /^pauses / { for (i = 1; i < NF; i++) if ($i == "p99.9") pause = $(i + 1) }
        END {
            for (i = 1; i <= n; i++) {
                if (i > n / 4 && i <= n / 2 && resident[i] > early) early = resident[i]
                if (i > n / 2 && resident[i] > late) late = resident[i]
            }
            printf "resident, last half to second quarter: %.3f (asked: 1.05 at most)\n", late / early
            printf "pauses, p99.9: %s ms (asked: 1 at most)\n", pause
            exit late > early * 1.05 || pause > 1
        }' "$SCRATCH/served" || die "a figure is missed"
fi
[ "${1:-}" = table ] || exit 0

command_or_package guile guile-3.0
command_or_package gsi gambc
command_or_package python3 python3
python3 - "$scheme" "$programs" "${2:-5}" "$SCRATCH" <<'PYTHON'
import os, re, statistics, subprocess, sys, time
scheme, programs, rounds, scratch = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
# What our tables are called elsewhere.
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
PYTHON
