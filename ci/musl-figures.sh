#!/usr/bin/env bash
# heapwright beside musl's own malloc (mallocng), mimalloc and jemalloc in static Rust programs for musl, on the loads of
# bench/musl. The four run in turns, so that what disturbs one disturbs all; a ratio is that of two runs of one round, and the
# table has the medians over the rounds. Time is CPU time of the process.
#
#   ci/musl-figures.sh [ROUNDS]        default: 9; half a minute a round
#
# What was asked: a third of mallocng's time on the loads that allocate much, and at most 1.5 of its peak memory on those that hold
# large buffers. Each is judged by that, and named where it is missed; docs/platforms.md says how far an allocator could come.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. ci/musl-common.sh

ROUNDS=${1:-9}
packages musl musl-dev musl-tools make
musl_targets
PEERS=(mallocng heapwright mimalloc jemalloc)
for peer in "${PEERS[@]}"; do
    feature=$peer
    [ "$peer" != mallocng ] || feature=
    musl_loads "$feature" "$SCRATCH/$peer"
done

SMALL=(tree words vectors handover boxes) # by time
LARGE=(buffers growing)                   # by memory
LOADS=("${SMALL[@]}" "${LARGE[@]}")
for ((round = 0; round < ROUNDS; round++)); do
    for load in "${LOADS[@]}"; do
        for peer in "${PEERS[@]}"; do
            read -r cpu wall peak sum < <("$SCRATCH/$peer" "$load" 5)
            printf '%s %s %d %d %d %d %d\n' "$load" "$peer" $round "$cpu" "$wall" "$peak" "$sum"
        done
    done
done >"$SCRATCH/runs"
[ "$(awk '{ print $1, $7 }' "$SCRATCH/runs" | sort -u | wc -l)" -eq ${#LOADS[@]} ] || die "the allocators' programs compute different sums"

# ratio LOAD PEER COLUMN: the median of what a peer takes to what mallocng takes in the same round.
ratio() {
    awk -v of="$1" -v peer="$2" -v column="$3" '
        $1 == of && $2 == "mallocng" { base[$3] = $column }
        $1 == of && $2 == peer { mine[$3] = $column }
        END { for (round in mine) printf "%.3f\n", mine[round] / (base[round] ? base[round] : 1) }' "$SCRATCH/runs" | median
}
of() { awk -v of="$1" -v peer=mallocng -v column="$2" '$1 == of && $2 == peer { print $column }' "$SCRATCH/runs" | median; }
printf '%-10s %22s | %s\n%-10s %10s %11s |' "" "mallocng" "ratio to mallocng: CPU time, peak memory" load "CPU ms" "peak KiB"
for peer in "${PEERS[@]:1}"; do printf '  %-13s' "$peer"; done
printf '\n'
for load in "${LOADS[@]}"; do
    printf '%-10s %10s %11s |' "$load" "$(of "$load" 4)" "$(of "$load" 6)"
    for peer in "${PEERS[@]:1}"; do printf '  %.2f  %.2f   ' "$(ratio "$load" "$peer" 4)" "$(ratio "$load" "$peer" 6)"; done
    printf '\n'
done
# judge TEXT COLUMN MOST LOAD...: which loads have at most that ratio, and which have not.
judge() {
    local text=$1 column=$2 most=$3 load ratio met=() missed=()
    shift 3
    for load in "$@"; do
        ratio=$(ratio "$load" heapwright "$column")
        if awk -v ratio="$ratio" -v most="$most" 'BEGIN { exit ratio > most }'; then met+=("$load ($ratio)"); else missed+=("$load ($ratio)"); fi
    done
    say "$text: met by ${met[*]:-none}; missed by ${missed[*]:-none}"
}
judge "a third of mallocng's time (0.333)" 4 0.3334 "${SMALL[@]}"
judge "1.5 of mallocng's peak" 6 1.5 "${LARGE[@]}"
