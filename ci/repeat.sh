#!/usr/bin/env bash
# Every test of threads, many times, under load: a test that fails once in a thousand runs is a bug.
#
#   ci/repeat.sh [TIMES [WORD...]]     so often (default: 20); only rows whose name has one of the words
#
#   REPEAT_PATIENCE=900                seconds that one run of a row may take: many times what the longest takes
#                                      on a quiet machine, for a busy one may be ten times as slow
#
# Which tests those are follows from their sources:
#
#   malloc's suites      those that run a program of tests/programs which starts threads or forks; in turns
#                        under each cache model, unless the suite names its models itself
#   heapwright's tests   the files under tests/ that start threads, fork, or have a collected heap, whose
#                        helpers are threads
#   its unit tests       the modules whose files start threads, a row for each floor; all of heapwright-gc
#
# Two busy processes run beside, so that threads are interrupted anywhere. What a failed run printed is kept
# in the target folder's repeat/.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

TIMES=${1:-20}
[[ $TIMES =~ ^[1-9][0-9]*$ ]] || die "TIMES is '$TIMES'; it can be 1 or more"
shift $(($# < 1 ? $# : 1))
WORDS=("$@")
PATIENCE=${REPEAT_PATIENCE:-900}
KEPT=$CARGO_TARGET_DIR/repeat
rm -rf "$KEPT"
mkdir -p "$KEPT"

command_or_package cc gcc
command_or_package c++ g++
command_or_package python3 python3
preload_library
HEAPWRIGHT_TEST_LIBRARY=$(dirname "$HEAPWRIGHT_SO")
export HEAPWRIGHT_TEST_LIBRARY

# built PACKAGE ARGUMENTS...: its test programs, one a line: lib or the name under tests/, path.
built() {
    cargo test --quiet --locked --no-run --message-format=json -p "$@" | python3 -c '
import json, sys
for line in sys.stdin:
    told = json.loads(line)
    if told.get("executable") and told.get("profile", {}).get("test"):
        kind = told["target"]["kind"][0]
        print(told["target"]["name"] if kind == "test" else "lib", told["executable"])'
}
# The features of ci/test.sh, so that nothing is built twice.
built heapwright --lib --tests --features debug,derive,std,allocator-api2-02,allocator-api2-03,allocator-api2-04 >"$SCRATCH/library"
built heapwright-substrate --lib --features debug >"$SCRATCH/substrate"
built heapwright-gc --lib --features std >"$SCRATCH/gc"
built heapwright-realm --lib --tests --features derive,std >"$SCRATCH/realm"
built heapwright-stacks --lib >"$SCRATCH/stacks"
built heapwright-malloc --tests >"$SCRATCH/malloc"

# A row: name | folder | program | words that choose tests | cache models
rows=()
row() {
    local word
    [ ${#WORDS[@]} -gt 0 ] || { rows+=("$1|$2|$3|$4|$5"); return 0; }
    for word in "${WORDS[@]}"; do
        [[ $1 != *"$word"* ]] || { rows+=("$1|$2|$3|$4|$5"); return 0; }
    done
}
THREADS='thread::(spawn|scope|Builder)|pthread_create|\bfork\('
while read -r name program; do
    file=crates/heapwright-malloc/tests/$name.rs
    [ -f "$file" ] || continue
    { grep -oE '"[a-z_0-9]+\.cc?"' "$file" || true; } | tr -d '"' | sort -u >"$SCRATCH/programs"
    (cd crates/heapwright-malloc/tests/programs && xargs -r grep -slE 'pthread_create|std::thread|\bfork\(' <"$SCRATCH/programs") >"$SCRATCH/threaded" || true
    [ -s "$SCRATCH/threaded" ] || continue
    models='auto exclusive shared:2 percpu'
    grep -q 'HEAPWRIGHT_TEST_CACHE\|cache=\|mode=' "$file" && models=
    row "malloc $name" crates/heapwright-malloc "$program" '' "$models"
done <"$SCRATCH/malloc"
# unit_rows CRATE PROGRAM
unit_rows() {
    local crate=$1 program=$2 floor modules
    # The module of a file: src/debug/heap/mod.rs is debug::heap, src/pool/tests.rs is pool::tests.
    (cd "$crate/src" && { grep -rlE "$THREADS" --include='*.rs' . || true; }) |
        sed -E 's|^\./||; s|/mod\.rs$||; s|\.rs$||; s|/|::|g; s|$|::|' | sort -u >"$SCRATCH/modules"
    for floor in $(sed 's/::.*//' "$SCRATCH/modules" | sort -u); do
        modules=$(grep "^$floor::" "$SCRATCH/modules" | tr '\n' ' ')
        [ "$("$program" --list $modules 2>/dev/null | grep -c ': test$')" -gt 0 ] || continue
        row "unit $floor" "$crate" "$program" "$modules" ''
    done
}
read -r _ program <"$SCRATCH/substrate"
unit_rows crates/heapwright-substrate "$program"
read -r _ program <"$SCRATCH/stacks"
unit_rows crates/heapwright-stacks "$program"
read -r _ program <"$SCRATCH/gc"
row "unit gc" crates/heapwright-gc "$program" '' ''
while read -r name program; do
    row "realm $name" crates/heapwright-realm "$program" '' ''
done <"$SCRATCH/realm"
while read -r name program; do
    file=crates/heapwright/tests/$name.rs
    if [ "$name" = lib ]; then
        unit_rows crates/heapwright "$program"
    elif [ -f "$file" ] && grep -qE "$THREADS|heapwright::gc" "$file"; then
        row "test $name" crates/heapwright "$program" '' ''
    fi
done <"$SCRATCH/library"
[ ${#rows[@]} -gt 0 ] || die "no such row"

# What the tests compile is compiled before the load comes, and before time counts.
for row in "${rows[@]}"; do
    IFS='|' read -r name folder program _ _ <<<"$row"
    [[ $name != malloc* ]] || (cd "$folder" && timeout --kill-after=5 1200 "$program" --quiet) >"$SCRATCH/out" 2>&1 </dev/null || true
done

declare -A runs failed seconds
for row in "${rows[@]}"; do runs[${row%%|*}]=0 failed[${row%%|*}]=0 seconds[${row%%|*}]=0; done
# The table, also of a run that is interrupted.
table() {
    local row name
    printf '\n%-28s %6s %9s %9s\n' "tests" runs failures 's a run'
    for row in "${rows[@]}"; do
        name=${row%%|*}
        printf '%-28s %6d %9d %9d\n' "$name" "${runs[$name]}" "${failed[$name]}" $((seconds[$name] / (runs[$name] > 0 ? runs[$name] : 1)))
    done
}
busy=()
for _ in 1 2; do (while :; do :; done) & busy+=($!); done
trap 'kill "${busy[@]}" 2>/dev/null || true; table; tidy' EXIT
trap 'exit 130' INT TERM HUP

for ((time = 0; time < TIMES; time++)); do
    for row in "${rows[@]}"; do
        IFS='|' read -r name folder program modules models <<<"$row"
        read -r -a models <<<"$models"
        read -r -a modules <<<"$modules"
        unset HEAPWRIGHT_TEST_CACHE
        [ ${#models[@]} -eq 0 ] || export HEAPWRIGHT_TEST_CACHE=${models[time % ${#models[@]}]}
        before=$SECONDS status=0
        (cd "$folder" && exec timeout --kill-after=5 "$PATIENCE" "$program" --quiet ${modules[@]+"${modules[@]}"}) >"$SCRATCH/out" 2>&1 </dev/null || status=$?
        seconds[$name]=$((seconds[$name] + SECONDS - before)) runs[$name]=$((runs[$name] + 1))
        if [ $status -ne 0 ]; then
            failed[$name]=$((failed[$name] + 1))
            kept=$KEPT/${name// /-}-$((time + 1)).txt
            { echo "status $status${HEAPWRIGHT_TEST_CACHE:+, cache=$HEAPWRIGHT_TEST_CACHE}"; cat "$SCRATCH/out"; } >"$kept"
            say "FAIL $name, run $((time + 1)), status $status: $kept"
            grep -aE '^    [a-z_0-9:]+$|panicked at' "$kept" | sort -u | head -4 | sed 's/^ */     /' || true
        fi
    done
done

all=0
for count in "${failed[@]}"; do all=$((all + count)); done
[ $all -eq 0 ] || { say "FAIL: $all of $((TIMES * ${#rows[@]})) runs; what they printed is in $KEPT"; exit 1; }
say "all $((TIMES * ${#rows[@]})) runs ended well"
