#!/usr/bin/env bash
# Measures the collected heap, on the loads of bench/gc beside bdwgc under equal limits, and alone. Tests the Scheme.
# docs/gc-figures.md explains the output.
#
#   ci/gc.sh [--rounds N] [--quick] [gcbench | splay | strings | pauses | scaling | compact | fillers | quads |
#             garbage | ephemerons | finalizers | report]...
#                                     without one of these words, all: 7 rounds take an hour. --quick: a minute
#   ci/gc.sh realm [--rounds N] [--quick] [binary-trees | gcbench | splay | report]...
#                                     the safe interface (heapwright::gc::Realm) beside gc-arena, gc, dumpster and Rc;
#                                     5 rounds take four minutes
#   ci/gc.sh scheme                   the Scheme in crates/heapwright-realm/examples/scheme: its suite and programs give
#                                     the right results, in four ways to collect. In three ways the suite also runs with
#                                     a verified collection after each operation. Errors name their places
#   ci/gc.sh scheme table [ROUNDS]    the same, and the programs beside Debian's guile and gambit: time, peak memory,
#                                     the collector's share
#   ci/gc.sh scheme serve [SECONDS]   the same, and a server for ten minutes, or SECONDS: its memory, and how long
#                                     requests wait for the collector
#   ci/gc.sh grown [ROUNDS]           generations, compaction, the safe interface and the Scheme: 7 rounds take an hour
#
# Measured programs run in turns, each variant once a round, on a quiet machine. The target folder's gc/ and realm/ keep
# the results. Ends with 1 if a figure is missed or a run of ours fails. A peer that runs out of memory under a limit
# lacks that round. --quick fails only if a program does not end well, or if a load computes another result through
# another interface. HEAPWRIGHT_SO measures another library.
#
# For a profiler, in the target folder after a build: perf record bench/release/realm splay heapwright size=8000
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup gc

realm() {
    . ci/figures.sh
    . bench/realm/plan.sh
    SECTIONS=(binary-trees gcbench splay)
    figures_begin realm '' bench/realm/figures.txt "$@"
    # Built alone: with other packages Cargo would unite heapwright's features.
    bench build -p realm
    prepare_launcher
    figures_end
}

scheme() {
    local scheme programs program options
    cargo build --quiet --locked --release -p heapwright-realm --features derive,std --example scheme
    scheme=$CARGO_TARGET_DIR/release/examples/scheme
    programs=crates/heapwright-realm/examples/scheme/programs

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
        local printed
        printed=$(timeout 60 "$scheme" --limit 64 "$SCRATCH/wrong.scm" 2>&1) && die "no error was reported for: $1"
        [ "$printed" = "$SCRATCH/wrong.scm:$2" ] || die "the message for \"$1\" is \"$printed\", not \"$2\""
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
    say "ok   each error is reported with its place"
    "$scheme" --incremental --serve 2 "$programs/server.scm" >"$SCRATCH/served" || die "the server ends badly"
    grep -q '^pauses ' "$SCRATCH/served" || die "the server reports no pauses"
    say "ok   it serves"
    if [ "${1:-}" = serve ]; then
        "$scheme" --incremental --serve "${2:-600}" "$programs/server.scm" | tee "$SCRATCH/served"
        # The pauses are by the clock, so other work of the machine counts, too.
        awk '
            /^serve / { split($4, has, "="); resident[++n] = has[2] }
            /^pauses / { for (i = 1; i < NF; i++) if ($i == "p99.9") pause = $(i + 1) }
            END {
                for (i = 1; i <= n; i++) {
                    if (i > n / 4 && i <= n / 2 && resident[i] > early) early = resident[i]
                    if (i > n / 2 && resident[i] > late) late = resident[i]
                }
                printf "resident, last half to second quarter: %.3f (target: at most 1.05)\n", late / early
                printf "pauses, p99.9: %s ms (target: at most 1)\n", pause
                exit late > early * 1.05 || pause > 1
            }' "$SCRATCH/served" || die "a figure is missed"
    fi
    [ "${1:-}" = table ] || exit 0

    python3 "$(dirname "$programs")/compare.py" "$scheme" "$programs" "${2:-5}" "$SCRATCH"
}

grown() {
    local rounds=${1:-7} status=0
    ci/gc.sh realm --rounds "$rounds" || status=1
    ci/gc.sh gcbench splay strings compact --rounds "$rounds" || status=1
    ci/gc.sh scheme table "$rounds" || status=1
    ci/gc.sh scheme serve || status=1
    return $status
}

case ${1:-} in
    realm | scheme | grown) "$@"; exit ;;
esac

. ci/figures.sh
. bench/gc/plan.sh
SECTIONS=(gcbench splay strings pauses scaling compact fillers quads garbage ephemerons finalizers)
figures_begin gc '' bench/gc/figures.txt "$@"
[ "${chosen[*]}" = report ] || gc_begin
figures_end
