#!/usr/bin/env bash
# heapwright's pools and arenas beside Zig's MemoryPool and Rust's pools
# (bench/pools): tables of medians, then what was asked, measured and found.
#
#   ci/pools.sh [--rounds N] [--quick] [--keep FILE]
#
# A round runs every contender of every pattern once, each in a process of its
# own, those that are compared one after the other and in an order that turns
# from round to round. --quick does a tenth of the work in two rounds, to see
# that all runs; --keep leaves the single results in FILE. Ends with 1 if a figure
# is missed. 9 rounds take about eight minutes and want a quiet machine, so this
# is not part of .ci/run. (ci/golden.sh pools counts instructions alone.)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() { die "$1; usage: ci/pools.sh [--rounds N] [--quick] [--keep FILE]"; }
rounds='' quick='' keep=''
while [ $# -gt 0 ]; do
    case $1 in
        --rounds) [[ ${2:-} =~ ^[1-9][0-9]{0,2}$ ]] || usage "'${2:-}' is no number of rounds"; rounds=$2; shift ;;
        --keep) [ -n "${2:-}" ] || usage "--keep needs a file"; keep=$2; shift ;;
        --quick) quick=quick ;;
        *) usage "'$1' is not understood" ;;
    esac
    shift
done
rounds=${rounds:-$([ -n "$quick" ] && echo 2 || echo 9)}
x86_64() { [ "$(uname -m)" = x86_64 ]; }
command_or_package cc gcc
bench build -p pools --bins
command_or_package valgrind valgrind

zig_here || die "no Zig"
for mode in Safe Fast; do zig_program "Release$mode" bench/pools/zig/article.zig "$SCRATCH/zig-${mode,,}"; done

program() {
    case $1 in
        zig-*) echo "$SCRATCH/$1" ;;
        *) echo "$MADE/$1" ;;
    esac
}

"$MADE/pools" plan $quick >"$SCRATCH/plan"
mapfile -t plan <"$SCRATCH/plan"
runs=$SCRATCH/runs
: >"$runs"

# run_line ROUND LINE: one run, if it is part of the round.
run_line() {
    local group section row column of_rounds command output ns said words
    IFS=';' read -r group section row column of_rounds command <<<"$2"
    [ "$of_rounds" -eq 0 ] || [ "$1" -le "$of_rounds" ] || return 0
    read -ra words <<<"$command"
    words[0]=$(program "${words[0]}")
    output=$(timeout 300 "${words[@]}") || die "$command fails"
    ns=$(sed -n 's/^ns //p' <<<"$output")
    said=$(sed -n 's/^counts //p' <<<"$output")
    [ -n "$ns" ] || die "$command says nothing"
    printf '%s;%s;%s;%d;%s;%s\n' "$section" "$row" "$column" "$1" "$ns" "$said" >>"$runs"
}

# The runs of a group stand one after the other in the plan.
for ((round = 1; round <= rounds; round++)); do
    printf 'round %d of %d\n' "$round" "$rounds" >&2
    start=0
    while [ $start -lt ${#plan[@]} ]; do
        group=${plan[start]%%;*} end=$start
        while [ $end -lt ${#plan[@]} ] && [ "${plan[end]%%;*}" = "$group" ]; do end=$((end + 1)); done
        size=$((end - start))
        for ((turn = 0; turn < size; turn++)); do
            run_line $round "${plan[start + (turn + round) % size]}"
        done
        start=$end
    done
done
# The report keeps the order of the plan, not that of the first round.
awk -F';' 'NR == FNR { place[$2, $3, $4] = FNR; next } { print place[$1, $2, $3] ";" $0 }' \
    "$SCRATCH/plan" "$runs" | sort -t';' -k1,1n -s | cut -d';' -f2- >"$SCRATCH/sorted"

# Instructions: of a pair, the difference of two counts of pairs; of a call, as ci/golden.sh counts.
instructions() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 | sed -n 's/.*Collected : *//p'
}
if x86_64; then
    printf 'instructions\n' >&2
    awk -F';' '$2 == "pairs" && $4 == "pair" { print $3 ";" $6 }' "$SCRATCH/plan" >"$SCRATCH/contenders"
    while IFS=';' read -r row command; do
        read -r name _ _ contender _ <<<"$command"
        few=$(instructions "$(program "$name")" one "$contender" 10000)
        many=$(instructions "$(program "$name")" one "$contender" 110000)
        awk -v r="$row" -v a="$few" -v b="$many" 'BEGIN { printf "pairs;%s;instructions;1;%.2f;\n", r, (b - a) / 100000 }' >>"$SCRATCH/sorted"
    done <"$SCRATCH/contenders"
    ci/golden.sh pools --print |
        awk '{ printf "instructions;%s;path;1;%s;\ninstructions;%s;branches;1;%s;\ninstructions;%s;mean;1;%s;\n", $1, $2, $1, $4, $1, $3 }' >>"$SCRATCH/sorted"
fi
[ -z "$keep" ] || cp "$SCRATCH/sorted" "$keep"
printf '%d rounds on %s.\n\n' "$rounds" "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)"
status=0
"$MADE/pools" report "$SCRATCH/sorted" || status=$?
exit $status
