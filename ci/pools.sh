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
setup pools

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
bench build -p pools -p figures --bins
prepare_launcher

zig_here || die "no Zig"
for mode in Safe Fast; do zig_program "Release$mode" bench/pools/zig/article.zig "$SCRATCH/zig-${mode,,}"; done

"$MADE/pools" plan "$MADE" "$SCRATCH" $quick >"$SCRATCH/plan"
runs=$SCRATCH/runs
"$MADE/figures" run "$SCRATCH/plan" "$rounds" "$LAUNCHER" "$runs"

# Instructions: of a pair, the difference of two counts of pairs; of a call, as ci/golden.sh counts.
instructions() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 | sed -n 's/.*Collected : *//p'
}
if x86_64; then
    printf 'instructions\n' >&2
    awk -F'\t' '$1 == "pairs" && $2 == "pair" { print $3 "\t" $6 "\t" $9 }' "$SCRATCH/plan" >"$SCRATCH/contenders"
    while IFS=$'\t' read -r column program contender; do
        few=$(instructions "$program" one "$contender" 10000)
        many=$(instructions "$program" one "$contender" 110000)
        awk -v c="$column" -v a="$few" -v b="$many" 'BEGIN { printf "pairs\tinstructions\t%s\t1\tns\t%.2f\n", c, (b - a) / 100000 }' >>"$runs"
    done <"$SCRATCH/contenders"
    ci/golden.sh pools --print |
        awk -v OFS='\t' '{ print "instructions", $1, "path", 1, "ns", $2; print "instructions", $1, "branches", 1, "ns", $4; print "instructions", $1, "mean", 1, "ns", $3 }' >>"$runs"
fi
[ -z "$keep" ] || cp "$runs" "$keep"
printf '%d rounds.\n\n' "$rounds"
status=0
"$MADE/pools" report "$runs" || status=$?
exit $status
