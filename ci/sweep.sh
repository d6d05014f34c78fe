#!/usr/bin/env bash
# The sweep: entry points times sizes times patterns under heapwright and other allocators, in
# turns, by one thread and by 2 and 8, so that no size and no entry point hides a cliff
# (bench/sweep; docs/benchmarks.md says how to read it).
#
#   ci/sweep.sh                            all, 3 rounds: about four minutes
#   ci/sweep.sh --threads 1                one thread: about two
#   ci/sweep.sh --threads 1 --cells '^(malloc|new.*) (300|600)$' --rounds 9
#   ci/sweep.sh --with mine=/opt/lib/libmine.so --only heapwright,mimalloc,mine
#   ci/sweep.sh --with heapwright-before=/tmp/before.so     another build: a column, but no peer
#   ci/sweep.sh --quick                    an instant for each cell, without peers: verifies only that all runs
#   ci/sweep.sh --help                     the other options
#
# Prints tables, the worst cells, and targets with verdicts. The target folder's sweep/ (or --out)
# gets results.tsv, with every cell's rounds, and sweep.html, with plots. Ends with 1 if a figure is
# missed. Needs a quiet machine, so only --quick is for every day. HEAPWRIGHT_SO measures another
# library.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup sweep

PEERS=mimalloc,snmalloc,rpmalloc,jemalloc,gperftools
# The compiler must not know what malloc does: it would leave calls out.
PLAIN=(-O2 -std=c++17 -Wall -Wextra -pthread -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free)

bench build -p sweep
SWEEP=$MADE/sweep
quick=
for word in "$@"; do
    case $word in
        --quick) quick=1 ;;
        --help | -h) exec "$SWEEP" --help ;;
    esac
done

preload_library
prepare_launcher
c++ "${PLAIN[@]}" -o "$SCRATCH/sweep" bench/sweep/sweep.cc
with=() out=$CARGO_TARGET_DIR/sweep
if [ -z "$quick" ]; then
    peers "$CARGO_TARGET_DIR/race/peers" "$PEERS" >"$SCRATCH/peers"
    while IFS= read -r line; do with+=(--with "$line"); done <"$SCRATCH/peers"
    quiet_machine
else
    out=$out/quick
fi
"$SWEEP" --program "$SCRATCH/sweep" --launcher "$LAUNCHER" --ours "$(realpath "$HEAPWRIGHT_SO")" --out "$out" ${with[@]+"${with[@]}"} "$@"
