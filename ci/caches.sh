#!/usr/bin/env bash
# Which cache a thread uses: heapwright's exclusive, shared and per-CPU caches against each other
# and against other allocators, on the loads of bench/caches (ttest1, rpc, churn, idle).
# docs/caches.md explains the output.
#
#   ci/caches.sh [options of bench/caches' run]
#   ci/caches.sh --workloads rpc --threads 2,40,80,200 --rounds 12
#   ci/caches.sh --only exclusive,shared,percpu --workloads idle,churn
#   ci/caches.sh report            the tables again, from the results of the last run
#   ci/caches.sh --quick           seconds: verifies only that everything runs
#
# The programs run in turns, each setting once a round; 10 rounds of all take about an hour and a
# half on a quiet machine. The target folder's caches/ (or --out) gets results.tsv with each run,
# tables.md, and a plot for each workload. Ends with 1 if a figure is missed or a run of heapwright
# fails.
#
# --quick runs miniatures twice under each cache model and glibc; its figures mean nothing. It fails
# if a model is refused, a program prints something else, or a block lost its contents. It also
# fails if the programs do not notice an allocator that hands memory out twice.
#
# HEAPWRIGHT_SO measures another library. --help lists the options.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup caches

bench build -p caches
CACHES=$MADE/caches
OUT=$CARGO_TARGET_DIR/caches

case ${1:-} in
    report) exec "$CACHES" report "$OUT/results.tsv" "${@:2}" ;;
    --help | -h) exec "$CACHES" --help ;;
esac
quick=
for word in "$@"; do [ "$word" != --quick ] || quick=1; done

PEERS=scudo,scudo-classic,gperftools,jemalloc,mimalloc
# The compiler must not know what malloc does: it would leave calls out.
PLAIN=(-O2 -Wall -Wextra -pthread -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free)
PROGRAMS=$SCRATCH/programs
mkdir "$PROGRAMS"
for program in empty ttest1 rpc churn idle; do
    cc "${PLAIN[@]}" -o "$PROGRAMS/$program" "bench/caches/programs/$program.c"
done

# notices PROGRAM ARGUMENT...: the program sees that the allocator is broken.
notices() {
    local status=0
    LD_PRELOAD=$SCRATCH/libtwice.so timeout 60 "$PROGRAMS/$1" "${@:2}" >"$SCRATCH/out" 2>"$SCRATCH/errors" || status=$?
    [ $status -eq 3 ] || die "$1 does not notice memory that is handed out twice: status $status; $(head -1 "$SCRATCH/errors")"
}
preload_library
prepare_launcher
# (Not grep -q: it ends at the first line, and then cat ends with a signal.)
LD_PRELOAD=$HEAPWRIGHT_SO cat /proc/self/maps | grep -F "$(realpath "$HEAPWRIGHT_SO")" >/dev/null || die "$HEAPWRIGHT_SO is not taken as a preload"

options=("$@") with=()
if [ -n "$quick" ]; then
    cc -O2 -Wall -Wextra -fno-builtin -fPIC -shared -pthread -o "$SCRATCH/libtwice.so" bench/caches/programs/twice.c
    notices ttest1 none 16 4 5000 1000
    notices rpc none 2 2 2000
    notices churn none 1000 2 64
    notices idle none 10 400 100
    say "all programs notice memory that is handed out twice"
    refuses 'usage: rpc' rpc
    refuses "'x' is no number of requests" rpc none 1 1 x
    refuses "'2s' is no CLOCK" ttest1 2s 1 1 1 1
    refuses 'needs a number from 10 to' idle none 10 9 1
    OUT=$OUT/quick
    # The caller's options come last, and win.
    options=(--rounds 2 --percent 1 --threads 2,16 --seconds 60 "$@")
else
    peers "$CARGO_TARGET_DIR/race/peers" "$PEERS" >"$SCRATCH/peers"
    while IFS= read -r line; do with+=(--with "$line"); done <"$SCRATCH/peers"
    quiet_machine
fi
run() {
    "$CACHES" run --programs "$PROGRAMS" --launcher "$LAUNCHER" --ours "$HEAPWRIGHT_SO" --out "$OUT" ${with[@]+"${with[@]}"} ${options[@]+"${options[@]}"}
}
if [ -z "$quick" ]; then
    status=0
    run || status=$?
    # 2: nothing was run.
    [ $status -eq 2 ] || say "each run: $OUT/results.tsv; plots: $OUT/*.svg"
    exit $status
fi
run >"$SCRATCH/report" || { cat "$SCRATCH/report" >&2; die "a run failed"; }
for workload in ttest1 rpc churn idle; do
    grep -q "^### $workload:" "$SCRATCH/report" || die "there is no table of $workload"
    [ -s "$OUT/$workload.svg" ] || die "there is no plot of $workload"
done
say "the loads run under each cache model"
