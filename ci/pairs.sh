#!/usr/bin/env bash
# What one malloc and one free take together, in five patterns (bench/pairs),
# under glibc, heapwright and other libraries, in turns: a table of medians in
# nanoseconds, heapwright's ratio to each of the others, and the figure asked of
# random frees.
#
#   ci/pairs.sh [--with NAME=['VAR=VALUE ...]PATH']... [--rounds N]
#
# Without --with, mimalloc v3 is built (bench/peers) and is the other library. A
# ratio is the median of the rounds' ratios; its interval holds that median 95
# times of 100 and more, whatever the noise is like (order statistics; of fewer
# than 6 rounds there is none). Ends with 1 if the figure is missed, that is if
# the whole interval lies beyond it. 15 rounds take about two minutes; wants a
# quiet machine, so it is not part of .ci/run.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

ASKED=0.55
FIGURE='random 400k'

usage() { die "$1; usage: ci/pairs.sh [--with NAME=['VAR=VALUE ...]PATH']... [--rounds N]"; }
names=(glibc heapwright)
settings=('' '') # assignments, a line each
preloads=('' '')
rounds=15

# add NAME=[VAR=VALUE ...]PATH: as in a shell, assignments before the path are
# the program's environment.
add() {
    local name=${1%%=*} rest=${1#*=} before=
    [[ $1 == ?*=?* ]] || usage "'$1' is no NAME=PATH"
    [[ " ${names[*]} " != *" $name "* ]] || die "$name is there twice"
    while [[ $rest =~ ^([A-Za-z_][A-Za-z0-9_]*=[^ ]*)\ +(.+)$ ]]; do
        before+=${BASH_REMATCH[1]}$'\n' rest=${BASH_REMATCH[2]}
    done
    [ -f "$rest" ] || die "$name: there is no library at '$rest'"
    names+=("$name") settings+=("$before") preloads+=("$(realpath "$rest")")
}
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || usage "'$1' is not understood or needs a value"
    case $1 in
        --with) add "$2" ;;
        --rounds) [[ $2 =~ ^[1-9][0-9]{0,2}$ ]] || usage "'$2' is no number of rounds"; rounds=$2 ;;
        *) usage "'$1' is not understood" ;;
    esac
    shift 2
done

command_or_package cc gcc
preload_library
preloads[1]=$(realpath "$HEAPWRIGHT_SO")
if [ ${#names[@]} -eq 2 ]; then
    line=$(cargo run --quiet --release --locked --manifest-path bench/Cargo.toml -p peers \
        --target-dir "$CARGO_TARGET_DIR/bench" -- --work "$CARGO_TARGET_DIR/race/peers" --only mimalloc --strict)
    add "$line"
fi

for program in pair batch random handoff; do
    cc -O2 -Wall -Wextra -pthread -o "$SCRATCH/$program" bench/pairs/$program.c
done
cc -O1 -o "$SCRATCH/probe" bench/peers/probe.c -ldl

# under ALLOCATOR COMMAND...: runs it with that preload.
under() {
    local words=()
    [ -z "${settings[$1]}" ] || mapfile -t words <<<"${settings[$1]%$'\n'}"
    timeout 120 env ${words[@]+"${words[@]}"} LD_PRELOAD="${preloads[$1]}" "${@:2}"
}

# A preload that did not take effect would be glibc under another name.
for i in "${!names[@]}"; do
    [ -n "${preloads[i]}" ] || continue
    found=$(under "$i" "$SCRATCH/probe" | sed -n 's/^malloc //p') || die "${names[i]}: a small program does not run under it"
    [ "$(realpath -m "$found")" = "${preloads[i]}" ] ||
        die "${names[i]}: the preload did not take effect: malloc comes from $found"
done

# measure ROUND PATTERN COMMAND...: a line `pattern;allocator;round;ns` for each
# allocator; who is first turns by one from round to round.
measure() {
    local round=$1 pattern=$2 turn i ns
    shift 2
    for turn in "${!names[@]}"; do
        i=$(((turn + round) % ${#names[@]}))
        ns=$(under "$i" "$@" | sed -n 's,^ns/pair ,,p') || die "$pattern fails under ${names[i]}"
        printf '%s;%s;%d;%s\n' "$pattern" "${names[i]}" "$round" "$ns" >>"$SCRATCH/runs"
    done
}
for ((round = 1; round <= rounds; round++)); do
    printf 'round %d of %d\n' "$round" "$rounds" >&2
    measure $round pair "$SCRATCH/pair" 10000000
    measure $round batch "$SCRATCH/batch" 200000
    measure $round 'random 10k' "$SCRATCH/random" 10000 20000000
    measure $round 'random 400k' "$SCRATCH/random" 400000 8000000
    measure $round handoff "$SCRATCH/handoff" 1 8000000
done

awk -F';' -v names="${names[*]}" -v rounds="$rounds" -v asked=$ASKED -v figure="$FIGURE" '
    { if (!($1 in seen)) { seen[$1] = 1; patterns[++count] = $1 } ns[$1, $2, $3] = $4 }

    # The list in value[1..n], in order.
    function sort(n,  i, j, v) {
        for (i = 2; i <= n; i++) {
            v = value[i]
            for (j = i - 1; j >= 1 && value[j] > v; j--) value[j + 1] = value[j]
            value[j + 1] = v
        }
    }
    function median(n) { sort(n); return (value[int((n + 1) / 2)] + value[int(n / 2) + 1]) / 2 }

    # How many of the smallest, and of the largest, lie outside the interval of
    # the median: as many as chance puts on one side with at most 2.5 %.
    function outside(n,  k, term, below) {
        term = 0.5 ^ n
        for (k = 0; below + term <= 0.025; k++) { below += term; term *= (n - k) / (k + 1) }
        return k - 1
    }
    function of_allocator(pattern, name,  r) {
        for (r = 1; r <= rounds; r++) value[r] = ns[pattern, name, r]
        return median(rounds)
    }
    # Sets middle, low and high.
    function ratio_to(pattern, name,  r) {
        for (r = 1; r <= rounds; r++) value[r] = ns[pattern, "heapwright", r] / ns[pattern, name, r]
        middle = median(rounds)
        if (trusted) { low = value[1 + cut]; high = value[rounds - cut] }
    }
    END {
        n = split(names, name, " ")
        cut = outside(rounds); trusted = cut >= 0
        header = "| ns a pair |"; line = "|---|"
        for (i = 1; i <= n; i++) { header = header " " name[i] " |"; line = line "--:|" }
        for (i = 1; i <= n; i++) if (name[i] != "heapwright") {
            header = header " heapwright to " name[i] " |"; line = line "--:|"
        }
        print header; print line
        for (p = 1; p <= count; p++) {
            row = "| " patterns[p] " |"
            for (i = 1; i <= n; i++) row = row sprintf(" %.1f |", of_allocator(patterns[p], name[i]))
            for (i = 1; i <= n; i++) if (name[i] != "heapwright") {
                ratio_to(patterns[p], name[i])
                row = row sprintf(" %.2f", middle)
                row = row (trusted ? sprintf(" (%.2f to %.2f) |", low, high) : " |")
            }
            print row
        }
        printf "\nMedians of %d rounds, in turns; ratios with their 95 %% interval%s.\n", rounds, trusted ? "" : " from 6 rounds on"
        printf "\nrandom frees with 400k live blocks, per pair: asked <= %.2f of mimalloc; ", asked
        if (index(" " names " ", " mimalloc ") == 0) { print "not measured: no mimalloc"; exit 0 }
        ratio_to(figure, "mimalloc")
        if (!trusted) { printf "measured %.2f: too few rounds for a verdict\n", middle; exit 0 }
        printf "measured %.2f (%.2f to %.2f): %s\n", middle, low, high, low <= asked ? "met" : "MISSED"
        exit !(low <= asked)
    }
' "$SCRATCH/runs"
