#!/usr/bin/env bash
# Measures each entry point at each size in each pattern, under heapwright and other allocators in turns, by one thread
# and by 2 and 8. So no size and no entry point hides a cliff (bench/sweep; docs/benchmarks.md explains the results).
#
#   ci/sweep.sh                            all, 3 rounds: about four minutes
#   ci/sweep.sh --threads 1                one thread: about two
#   ci/sweep.sh --threads 1 --cells '^(malloc|new.*) (300|600)$' --rounds 9
#   ci/sweep.sh --with mine=/opt/lib/libmine.so --only heapwright,mimalloc,mine
#   ci/sweep.sh --with heapwright-before=/tmp/before.so     another build: a column, but no peer
#   ci/sweep.sh --quick                    an instant a cell, beside glibc alone: verifies only that all runs
#
# Prints the targets with the measured figures, the worst cells, and tables; the target folder's sweep/ gets every cell
# with its rounds. Runs with several threads get three times as many rounds, because other work disturbs them more.
# Ends with 1 if a figure is missed. Needs a quiet machine. HEAPWRIGHT_SO measures another library.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup sweep
. ci/figures.sh

SECTIONS=(sweep)
SETTINGS='threads cells only with'
figures_begin sweep '' bench/sweep/figures.txt "$@"

# A group of cells is a process of its own under each allocator, so that memory left by one pattern does not reach the
# other groups. heapwright with a cache for each CPU is measured with several threads only.
section_sweep() {
    local threads group ms of_rounds rounds library list
    # The compiler must not know malloc's meaning: it would leave calls out.
    c++ -O2 -std=c++17 -Wall -Wextra -pthread -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free \
        -o "$SCRATCH/sweep" bench/sweep/sweep.cc
    preload_library
    prepare_launcher
    library=$(realpath "$HEAPWRIGHT_SO") rounds=$(rounds_of 3) list=,${given_threads:-1,2,8},
    allocators "heapwright=$library" "heapwright-percpu=HEAPWRIGHT=cache=percpu $library" -- mimalloc,snmalloc,rpmalloc,jemalloc,gperftools
    all=("${ALLOCATORS[@]}")
    "$SCRATCH/sweep" list "$given_cells" | cut -d' ' -f1,2 | uniq >"$SCRATCH/groups"
    while read -r threads group; do
        [[ $list == *,$threads,* ]] || continue
        ALLOCATORS=("${all[@]}") ms=$(sized 20 0.1) of_rounds=0
        if [ "$threads" = 1 ]; then
            ms=$(sized 8 0.1) of_rounds=$rounds ALLOCATORS=()
            for one in "${all[@]}"; do [[ $one == heapwright-percpu=* ]] || ALLOCATORS+=("$one"); done
        fi
        planned_under "$threads thread$([ "$threads" = 1 ] || echo s)" "$group" "$of_rounds" "$SCRATCH/sweep" "$threads" "$group" "$ms" "$given_cells"
    done <"$SCRATCH/groups"
    [ -s "$SCRATCH/plan" ] || die "there is no such cell"
    [ -n "$quick" ] || ! grep -q threads "$SCRATCH/plan" || given_rounds=$((rounds * 3))
    run_plan "$rounds"
}

figures_end
