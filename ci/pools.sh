#!/usr/bin/env bash
# heapwright's pools and arenas beside Zig's MemoryPool and Rust's pools
# (bench/pools): tables of medians, then what was asked, measured and found.
#
#   ci/pools.sh [--rounds N] [--quick] [--keep FILE]
#   ci/pools.sh --golden [--bless]
#
# A round runs every contender of every pattern once, each in a process of its
# own, those that are compared one after the other and in an order that turns
# from round to round. --quick does a tenth of the work in two rounds, to see
# that all runs; --keep leaves the single results in FILE. Ends with 1 if a figure
# is missed. 9 rounds take about eight minutes and want a quiet machine, so this
# is not part of .ci/run.
#
# --golden only counts the instructions of heapwright's own calls, by callgrind,
# against ci/golden-pools.txt, as ci/golden.sh does for malloc and free; --bless
# writes the measured numbers there. It takes a few seconds beside the building.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. ci/counts.sh

usage() { die "$1; usage: ci/pools.sh [--rounds N] [--quick] [--keep FILE] | --golden [--bless]"; }
rounds='' quick='' keep='' golden='' bless=''
while [ $# -gt 0 ]; do
    case $1 in
        --rounds) [[ ${2:-} =~ ^[1-9][0-9]{0,2}$ ]] || usage "'${2:-}' is no number of rounds"; rounds=$2; shift ;;
        --keep) [ -n "${2:-}" ] || usage "--keep needs a file"; keep=$2; shift ;;
        --quick) quick=quick ;;
        --golden) golden=1 ;;
        --bless) bless=1 ;;
        *) usage "'$1' is not understood" ;;
    esac
    shift
done
[ -z "$bless" ] || [ -n "$golden" ] || usage "--bless belongs to --golden"
rounds=${rounds:-$([ -n "$quick" ] && echo 2 || echo 9)}
GOLDEN=$ROOT/ci/golden-pools.txt
BLESS='ci/pools.sh --golden --bless'
BUILT=$CARGO_TARGET_DIR/bench

build() {
    command_or_package cc gcc
    cargo build --quiet --release --locked --manifest-path bench/Cargo.toml -p pools \
        --target-dir "$BUILT" "$@"
}

# count_calls: a line `name path branches mean` for each call_* that the program
# makes, into the file `calls`; the many of a part are 16,000.
count_calls() {
    valgrind --tool=callgrind --callgrind-out-file="$SCRATCH/part" --branch-sim=yes \
        --dump-before=golden_part --compress-strings=no --compress-pos=no --dump-line=no \
        "$BUILT/release/pools" golden >"$SCRATCH/log" 2>&1 || { cat "$SCRATCH/log" >&2; die "callgrind failed"; }
    counted_calls cfn '^call_' 8000 | sort >"$SCRATCH/calls"
    [ -s "$SCRATCH/calls" ] || die "callgrind saw no calls"
}

limit() { case $1 in arena_u32) echo 10 ;; arena_layout) echo 12 ;; *) echo - ;; esac; }

compare_calls() {
    local status=0 name path branches mean number
    grep -E '^(arena|pool)_' "$SCRATCH/calls" >"$SCRATCH/ours" || die "heapwright's calls were not seen"
    [ -z "$bless" ] || bless "$SCRATCH/ours"
    printf '%-14s %6s %8s %6s %7s %6s\n' call path branches mean golden limit
    while read -r name path branches mean; do
        number=$(golden_number "$name")
        printf '%-14s %6s %8s %6s %7s %6s\n' "$name" "$path" "$branches" "$mean" "${number:-none}" "$(limit "$name")"
        judge "$name" "$path" "$(limit "$name")" || status=1
    done <"$SCRATCH/ours"
    [ "$(wc -l <"$SCRATCH/ours")" -eq 4 ] || { say "FAIL not all four calls were seen"; status=1; }
    return $status
}

x86_64() { [ "$(uname -m)" = x86_64 ]; }
if [ -n "$golden" ]; then
    x86_64 || { say "skip: the golden numbers are x86-64's"; exit 0; }
    command_or_package valgrind valgrind
    build --bin pools
    compare_calls_status=0
    count_calls
    compare_calls || compare_calls_status=$?
    exit $compare_calls_status
fi

build --bins
command_or_package valgrind valgrind

# Zig, from PyPI, in a folder of its own.
ZIG=$CARGO_TARGET_DIR/zig
if ! "$ZIG/bin/python" -m ziglang version >/dev/null 2>&1; then
    command_or_package python3 python3
    python3 -m venv "$ZIG" >"$SCRATCH/venv" 2>&1 ||
        { packages python3-venv && python3 -m venv "$ZIG"; } || die "no Python environment for Zig"
    "$ZIG/bin/pip" install --quiet --disable-pip-version-check 'ziglang==0.17.*' || die "no Zig"
fi
for mode in Safe Fast; do
    # For the same processor as Rust's programs: Zig's default is the one it runs on.
    "$ZIG/bin/python" -m ziglang build-exe "-ORelease$mode" -mcpu=baseline bench/pools/zig/article.zig \
        -femit-bin="$SCRATCH/zig-${mode,,}" --cache-dir "$ZIG/cache" --global-cache-dir "$ZIG/cache"
done

program() {
    case $1 in
        zig-*) echo "$SCRATCH/$1" ;;
        *) echo "$BUILT/release/$1" ;;
    esac
}

"$BUILT/release/pools" plan $quick >"$SCRATCH/plan"
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

# Instructions: of a pair, the difference of two counts of pairs; of a call, as
# in the golden mode.
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
    count_calls
    awk '{ printf "instructions;%s;path;1;%s;\ninstructions;%s;branches;1;%s;\ninstructions;%s;mean;1;%s;\n", $1, $2, $1, $3, $1, $4 }' \
        "$SCRATCH/calls" >>"$SCRATCH/sorted"
fi
[ -z "$keep" ] || cp "$SCRATCH/sorted" "$keep"
printf '%d rounds on %s.\n\n' "$rounds" "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)"
status=0
"$BUILT/release/pools" report "$SCRATCH/sorted" || status=$?
exit $status
