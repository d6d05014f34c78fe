#!/usr/bin/env bash
# The collected heap measured: against bdwgc under equal limits, and layouts and ways to
# sweep against each other, on the loads of bench/gc. docs/gc-figures.md says how to read what comes out.
#
#   ci/gc.sh [options of bench/gc]
#   ci/gc.sh --only gcbench,splay --rounds 3
#   ci/gc.sh --quick           a minute: only that all runs
#   ci/gc.sh balance [--quick] several heaps in one process, sized by a factor each or by the
#                              square-root rule (hw_gc_balance): what all of them have on average, and
#                              the CPU time of all; a minute or two
#   ci/gc.sh realm [options of bench/realm]
#                              the safe door (heapwright::gc::Realm) beside gc-arena, gc, dumpster, Rc
#                              and Box; 5 rounds take about four minutes. --quick: only that all runs,
#                              and computes the same. --strict fails if a figure is missed, too
#   ci/gc.sh realm collections [--quick]
#                              a realm's collections beside std's with Rc
#   ci/gc.sh grown [ROUNDS]    generations, compaction, the safe door and the Scheme (ci/scheme.sh), in
#                              turns with their peers: an hour of a quiet machine; fewer rounds
#                              (default 7), less
#
# The programs run in turns, each variant once a round; 7 rounds of all take about an
# hour and want a quiet machine. What each run printed is in runs.txt, beside tables.md
# and rss.csv (memory over time), in the target folder's gc/ (or what --out says).
# Ends with 1 if a figure is missed or a run fails; a peer that runs out of memory under a limit lacks that round, and the report says so.
#
# --quick measures nothing worth reading. It fails where a program does not end well, where the
# same load computes something else through another door or under another layout, and
# where a line of the table of figures is missing.
#
# HEAPWRIGHT_SO measures another library. --help lists the options.
#
# One run of realm alone, for a profiler (after it was built, in the target folder):
#
#   perf record bench/release/realm run splay heapwright size=8000
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

balance() {
    local times=3 rounds=1500 size n sizes
    command_or_package cc gcc
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
    # Alone: with others, Cargo would unite heapwright's features, and measure another one.
    bench build -p realm
    if [ "${1:-}" = collections ]; then
        "$MADE/collections" "${@:2}"
        return
    fi
    [ "${1:-}" != --quick ] || "$MADE/collections" --quick
    "$MADE/realm" "$@"
}

grown() {
    local rounds=${1:-7} status=0
    ci/gc.sh realm --strict --rounds "$rounds" || status=1
    ci/gc.sh --only generations,compact --rounds "$rounds" || status=1
    ci/scheme.sh table "$rounds" || status=1
    ci/scheme.sh serve || status=1
    return $status
}

case ${1:-} in
    balance | realm | grown) "$@"; exit ;;
esac

command_or_package cc gcc
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

# Peers that cannot be had are left out, and the table says that they were not measured.
without=()
(packages libgc-dev) || { say "without bdwgc"; without+=(--without bdwgc); }
(packages libjemalloc2) || { say "without jemalloc"; without+=(--without jemalloc); }

preload_library
PROGRAMS=$SCRATCH/programs
mkdir "$PROGRAMS"
# Beside the programs, which find it there by its name, whatever HEAPWRIGHT_SO is called.
ln -s "$(realpath "$HEAPWRIGHT_SO")" "$PROGRAMS/libheapwright.so"
COMPILE=(cc -std=gnu17 -O2 -Wall -Wextra -Werror -pthread)
# ours NAME FILE: a load with heapwright's door.
ours() {
    "${COMPILE[@]}" -DDOOR_HEAPWRIGHT -Iinclude -o "$PROGRAMS/$1" "bench/gc/loads/$2.c" \
        -L"$PROGRAMS" -lheapwright -Wl,-rpath,"$PROGRAMS"
}
for load in gcbench splay strings scaling fillers quads garbage ephemerons finalizers; do
    ours $load-heapwright $load
    [[ " ${without[*]-} " == *" bdwgc "* ]] ||
        "${COMPILE[@]}" -DDOOR_BDWGC -o "$PROGRAMS/$load-bdwgc" "bench/gc/loads/$load.c" -lgc
done
for load in request document template quiet boot pauses compact; do ours $load $load; done

[ -z "$quick" ] || OUT=$OUT/quick
status=0
run() { "$GC" --programs "$PROGRAMS" --out "$OUT" ${without[@]+"${without[@]}"} "$@"; }
if [ -z "$quick" ]; then
    quiet_machine
    run "$@" || status=$?
    # 2: nothing was run.
    [ $status -eq 2 ] || say "each run: $OUT/runs.txt; memory over time: $OUT/rss.csv"
    exit $status
fi
refuses "'x' is no depth" gcbench-heapwright depth=x
refuses "'dpeth=9' is no setting here" gcbench-heapwright dpeth=9
refuses "there is no layout 'wide'" document layout=wide
run "$@" >"$SCRATCH/report" || { cat "$SCRATCH/report" >&2; die "a run failed"; }
if [ -n "$all" ]; then
    # Each line of the issue's table, by its words.
    for line in 'gcbench, 1 thread.*speed' 'gcbench, 2 threads.*peak' 'splay, 2 threads.*speed' 'strings, 1 thread.*speed' \
        'fast path' 'p99 of thread CPU time of fine' 'requests/s of fine' 'peak RSS of fine' \
        'document: peak' 'template, parse' 'template, render' 'template, both' 'hardly allocates' \
        'pool of the classes' 'p99.9' 'worst' 'stopping the world' 'scaling of 2 threads' 'fillers.*generations' \
        '8 mutators to 2' 'quads.*CPU time' 'garbage, leaf' 'ephemerons.*CPU time' 'finalizers.*CPU time'; do
        grep -qE "^\\| [^|]*$line" "$SCRATCH/report" || { cat "$SCRATCH/report" >&2; die "no figure says '$line'"; }
    done
fi
say "the loads run through each door and under each layout, and agree"
