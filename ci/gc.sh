#!/usr/bin/env bash
# Measures the collected heap on the loads of bench/gc: against bdwgc under equal limits, and alone.
# docs/gc-figures.md explains the output.
#
#   ci/gc.sh [options of bench/gc]
#   ci/gc.sh --only gcbench,splay --rounds 3
#   ci/gc.sh --quick           a minute: verifies only that everything runs
#   ci/gc.sh balance [--quick] several heaps in one process, each sized by a factor or by the
#                              square-root rule (hw_gc_balance): the mean memory and the CPU time of
#                              all heaps together; a minute or two
#   ci/gc.sh realm [options of bench/realm]
#                              the safe interface (heapwright::gc::Realm) beside gc-arena, gc, dumpster,
#                              Rc and Box; 5 rounds take about four minutes. --quick only verifies
#                              that all run and compute the same. --strict also fails if a figure is
#                              missed
#   ci/gc.sh realm collections [--quick]
#                              a realm's collections beside std's with Rc
#   ci/gc.sh scheme            the Scheme in crates/heapwright-realm/examples/scheme, a client of the safe
#                              interface: its suite and programs give the right results, with every
#                              way to collect. The suite also runs with a verified collection after
#                              each operation, and with everything moved after every fourth. Each
#                              error has its place
#   ci/gc.sh scheme table [ROUNDS]
#                              the same, and the programs beside Debian's guile and gambit: time,
#                              peak memory, the collector's share
#   ci/gc.sh scheme serve [SECONDS]
#                              the same, and a server for ten minutes, or SECONDS: its memory
#                              meanwhile, and how long requests wait for the collector
#   ci/gc.sh grown [ROUNDS]    generations, compaction, the safe interface and the Scheme, in turns
#                              with their peers: 7 rounds take an hour of a quiet machine
#
# The programs run in turns, each variant once a round; 7 rounds of all take about an hour on a quiet machine. The target folder's gc/ (or
# --out) gets runs.txt, with the output of each run, and tables.md. Ends with 1 if a figure is missed or a run fails. A peer that runs out
# of memory under a limit lacks that round, and the report says so.
#
# The figures of --quick mean nothing. It fails if a program does not end well, if a load computes
# different results through different interfaces, or if the table of figures lacks a line.
#
# HEAPWRIGHT_SO measures another library. --help lists the options.
#
# One run of realm alone, for a profiler (in the target folder, after a build):
#
#   perf record bench/release/realm run splay heapwright size=8000
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup gc

balance() {
    local times=3 rounds=1500 size n sizes
    preload_library
    cc -std=gnu17 -O2 -Wall -Wextra -Werror -pthread -Iinclude -o "$SCRATCH/balance" bench/gc/loads/balance.c \
        -L"$(dirname "$HEAPWRIGHT_SO")" -lheapwright -Wl,-rpath,"$(dirname "$HEAPWRIGHT_SO")"
    [ "${1:-}" != --quick ] || { times=1 rounds=20; }
    sizes=(factor:150 balance:65536 factor:175 balance:98304 factor:200 balance:131072 factor:250 balance:262144 factor:300 balance:393216)
    for ((n = 0; n < times; n++)); do
        for size in "${sizes[@]}"; do
            "$SCRATCH/balance" "rule=${size%:*}" "size=${size#*:}" "rounds=$rounds" | sed -n 's/^result //p' >>"$SCRATCH/$size"
        done
    done
    middle() { sed -E "s/.* $2=([0-9]+).*/\\1/" "$SCRATCH/$1" | median; }
    printf '%-8s %10s %12s %12s %9s\n' rule size 'average MiB' collections 'CPU ms'
    for size in "${sizes[@]}"; do
        printf '%-8s %10s %12.1f %12s %9.0f\n' "${size%:*}" "${size#*:}" \
            "$(awk -v b="$(middle "$size" average)" 'BEGIN { print b / 1048576 }')" "$(middle "$size" cycles)" \
            "$(awk -v n="$(middle "$size" cpu_ns)" 'BEGIN { print n / 1e6 }')"
    done
}

realm() {
    # Built alone: with others, Cargo would unite features, and measure another library.
    bench build -p realm
    if [ "${1:-}" = collections ]; then
        "$MADE/collections" "${@:2}"
        return
    fi
    [ "${1:-}" != --quick ] || "$MADE/collections" --quick
    "$MADE/realm" "$@"
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
        local told
        told=$(timeout 60 "$scheme" --limit 64 "$SCRATCH/wrong.scm" 2>&1) && die "no error was reported for: $1"
        [ "$told" = "$SCRATCH/wrong.scm:$2" ] || die "the message for \"$1\" is \"$told\", not \"$2\""
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
        # Flat: the resident memory of the last half exceeds the maximum of the second quarter by at
        # most a twentieth. The clock tells the longest pauses, whatever else the machine does.
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
    ci/gc.sh realm --strict --rounds "$rounds" || status=1
    ci/gc.sh --only gcbench,splay,strings,compact --rounds "$rounds" || status=1
    ci/gc.sh scheme table "$rounds" || status=1
    ci/gc.sh scheme serve || status=1
    return $status
}

case ${1:-} in
    balance | realm | scheme | grown) "$@"; exit ;;
esac

bench build -p gc
GC=$MADE/gc
OUT=$CARGO_TARGET_DIR/gc

quick='' all=1
for word in "$@"; do
    case $word in
        --help | -h) exec "$GC" --help ;;
        --quick) quick=1 ;;
        --only) all='' ;;
    esac
done

# Unavailable peers are left out, and the table says that they were not measured.
without=()
[ -e /usr/include/gc.h ] || { say "without bdwgc"; without+=(--without bdwgc); }

preload_library
PROGRAMS=$SCRATCH/programs
mkdir "$PROGRAMS"
# A copy beside the programs, which find it there by this name.
ln -s "$(realpath "$HEAPWRIGHT_SO")" "$PROGRAMS/libheapwright.so"
COMPILE=(cc -std=gnu17 -O2 -Wall -Wextra -Werror -pthread)
# ours NAME FILE: a load with heapwright's interface.
ours() {
    "${COMPILE[@]}" -DDOOR_HEAPWRIGHT -Iinclude -o "$PROGRAMS/$1" "bench/gc/loads/$2.c" \
        -L"$PROGRAMS" -lheapwright -Wl,-rpath,"$PROGRAMS"
}
for load in gcbench splay strings scaling fillers quads garbage ephemerons finalizers; do
    ours $load-heapwright $load
    [[ " ${without[*]-} " == *" bdwgc "* ]] ||
        "${COMPILE[@]}" -DDOOR_BDWGC -o "$PROGRAMS/$load-bdwgc" "bench/gc/loads/$load.c" -lgc
done
for load in pauses compact; do ours $load $load; done

[ -z "$quick" ] || OUT=$OUT/quick
status=0
rm -f "$OUT/runs.txt"
run() { "$GC" --programs "$PROGRAMS" --out "$OUT" ${without[@]+"${without[@]}"} "$@"; }
if [ -z "$quick" ]; then
    quiet_machine
    run "$@" || status=$?
    # 2: nothing was run.
    [ $status -eq 2 ] || say "each run: $OUT/runs.txt"
    exit $status
fi
refuses "'x' is no depth" gcbench-heapwright depth=x
refuses "'dpeth=9' is no setting here" gcbench-heapwright dpeth=9
refuses "there is no layout 'wide'" pauses layout=wide
run "$@" >"$SCRATCH/report" || { cat "$SCRATCH/report" >&2; die "a run failed"; }
if [ -n "$all" ]; then
    # Each line of the table of targets, by its words.
    for line in 'gcbench, 1 thread.*speed' 'gcbench, 2 threads.*peak' 'splay, 2 threads.*speed' 'strings, 1 thread.*speed' \
        'gcbench.*with generations' 'fast path' 'p99.9' 'worst' 'stopping the world' 'scaling of 2 threads' 'fillers.*generations' \
        '8 mutators to 2' 'quads.*CPU time' 'garbage, leaf' 'ephemerons.*CPU time' 'finalizers.*CPU time'; do
        grep -qE "^\\| [^|]*$line" "$SCRATCH/report" || { cat "$SCRATCH/report" >&2; die "no figure says '$line'"; }
    done
fi
say "the loads run through each interface, and agree"
