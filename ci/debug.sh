#!/usr/bin/env bash
# Measures the debug mode beside Zig's DebugAllocator, valgrind's memcheck and glibc: tables of medians, and targets
# with verdicts (bench/debug).
#
#   ci/debug.sh [--quick [--valgrind] | --no-valgrind] [--rounds N] [SECTION...]    (without a section, all)
#   ci/debug.sh report       the tables again, from the results of the last runs
#
#   pr        the program of Zig's PR #17383: one survivor in each bucket, every call through 16 frames; and the same
#             with stacks off
#   flat      the same with 5,000 to 160,000 survivors: instructions a round, and the memory that a survivor pins
#   captures  one capture of a stack, by the library's own measurement
#   programs  real programs, stacks of 16 frames on
#
# Each run is a process of its own, and each round runs all, in an order that turns from round to round. There are 9
# rounds of pr, and 5 of flat and programs; valgrind runs once. The target folder's debug-figures/ keeps results-*.tsv
# with each single number, and tables.md. Ends with 1 if a figure is missed or a run of ours fails. Takes half an hour,
# on a quiet machine. --quick runs all once and small, without valgrind (--valgrind adds it). Such a run fails only if a
# program does not run or prints something else, or if a tool reports a mistake that does not exist.
#
# HEAPWRIGHT_SO measures another library. Our runs have the options DEBUG_OPTIONS (default: mode=debug) before traces=.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup debug
. ci/figures.sh

SECTIONS=(pr flat captures programs)
figures_begin debug-figures "" bench/debug/figures.txt "$@"
OPTIONS=${DEBUG_OPTIONS:-mode=debug}
WORK=$CARGO_TARGET_DIR/debug-work
mkdir -p "$WORK"

VALGRIND=(--quiet --leak-check=no --num-callers=16 --trace-children=yes
    '--trace-children-skip=*redis-cli,*redis-benchmark')
MALLOC_DEBUG='' ZIG=''

prepare_library() {
    [ -z "${OURS:-}" ] || return 0
    preload_library
    prepare_launcher
    OURS=("LD_PRELOAD=$HEAPWRIGHT_SO")
    # The mode must exist, and the preload take effect.
    local said
    said=$(env "${OURS[@]}" "HEAPWRIGHT=$OPTIONS,traces=16" /bin/true 2>&1) || die "$OPTIONS,traces=16 does not run: $said"
    [ -z "$said" ] || { say "warning: no figure has a verdict: $OPTIONS,traces=16 says '$said'"; without_mode=1; }
    LD_PRELOAD=$HEAPWRIGHT_SO cat /proc/self/maps | grep -qF "$(realpath "$HEAPWRIGHT_SO")" || die "$HEAPWRIGHT_SO is not taken as a preload"
    MALLOC_DEBUG=$(gcc -print-file-name=libc_malloc_debug.so.0 2>/dev/null || true)
    [ -f "$MALLOC_DEBUG" ] || { say "skip: without glibc's libc_malloc_debug.so.0"; MALLOC_DEBUG=; }
    CHECK=("LD_PRELOAD=$MALLOC_DEBUG" GLIBC_TUNABLES=glibc.malloc.check=3)
    cc -O2 -Wall -Wextra -fomit-frame-pointer -fno-optimize-sibling-calls -fno-builtin bench/debug/rounds.c -o "$WORK/rounds"
}

prepare_zig() {
    [ -z "$ZIG" ] || return 0
    local mode
    zig_here || { say "skip: without Zig"; ZIG=none; return; }
    for mode in Debug ReleaseSafe ReleaseFast; do
        zig_program $mode bench/debug/rounds.zig "$WORK/zig-$mode" || { say "skip: Zig does not build its program"; ZIG=none; return; }
    done
    ZIG=$(zig version)
    say "Zig $ZIG"
}

zig_planned() { [ "$ZIG" = none ] || planned "$@"; }
check_planned() { [ -z "$MALLOC_DEBUG" ] || planned "${@:1:5}" "${CHECK[@]}" "${@:6}"; }

section_pr() {
    prepare_library
    prepare_zig
    local many few program=$WORK/rounds row
    few=$(sized 5000 500) many=$(sized 200000 5000)
    row='16 frames'
    # Runs that are compared follow each other.
    zig_planned pr "$row" zig-debug 0 - "$WORK/zig-Debug" default "$few"
    planned pr "$row" heapwright 0 - "${OURS[@]}" "HEAPWRIGHT=$OPTIONS,traces=16" "$program" "$few"
    zig_planned pr "$row" zig-safe-16 0 - "$WORK/zig-ReleaseSafe" 16 "$few"
    [ -n "$quick" ] || zig_planned pr "$row" zig-debug-16 0 - "$WORK/zig-Debug" 16 "$few"
    planned pr "$row" glibc 0 - "$program" "$few"
    check_planned pr "$row" glibc-check 0 - "$program" "$few"
    valgrind_planned pr "$row" valgrind 0 - "$program" "$few"
    row='no frames'
    zig_planned pr "$row" zig-fast 0 - "$WORK/zig-ReleaseFast" default "$many"
    planned pr "$row" heapwright 0 - "${OURS[@]}" "HEAPWRIGHT=$OPTIONS,traces=0" "$program" "$many"
    zig_planned pr "$row" zig-safe 0 - "$WORK/zig-ReleaseSafe" default "$many"
    planned pr "$row" heapwright-fast 0 - "${OURS[@]}" HEAPWRIGHT=mode=fast "$program" "$many"
    planned pr "$row" glibc 0 - "$program" "$many"
    run_plan 9
}

# instructions OPTIONS N: counts the instructions of the rounds and the last frees, which the function `measured` runs.
instructions() {
    env "${OURS[@]}" "HEAPWRIGHT=$1" valgrind --tool=callgrind --callgrind-out-file=/dev/null \
        --toggle-collect=measured "$WORK/rounds" "$2" 2>"$SCRATCH/callgrind" >/dev/null ||
        { tail -5 "$SCRATCH/callgrind" >&2; return 1; }
    sed -n 's/.*Collected : *//p' "$SCRATCH/callgrind"
}

section_flat() {
    prepare_library
    prepare_zig
    local sizes configs n config count last pair
    read -ra sizes <<<"$(sized '5000 10000 20000 40000 80000 160000' '500 1000 2000')"
    configs=(traces=0 traces=0,slots=32 traces=16 traces=16,slots=32)
    for n in "${sizes[@]}"; do
        for config in "${configs[@]}"; do
            planned flat "$n" "$config" 0 - "${OURS[@]}" "HEAPWRIGHT=$OPTIONS,$config" "$WORK/rounds" "$n"
        done
        zig_planned flat "$n" zig-fast 0 - "$WORK/zig-ReleaseFast" default "$n"
        zig_planned flat "$n" zig-safe-16 1 - "$WORK/zig-ReleaseSafe" 16 "$n"
        planned flat "$n" glibc 0 - "$WORK/rounds" "$n"
    done
    run_plan 5
    last=${sizes[-1]}
    for config in "${configs[@]}"; do
        # The pinned memory, from statistics at exit, with the survivors kept: words NAME=NUMBER.
        env "${OURS[@]}" "HEAPWRIGHT=$OPTIONS,$config,stats=exit" "$WORK/rounds" "$last" keep 2>"$SCRATCH/stats" >/dev/null || true
        for pair in $(grep -oE '\b(buckets|bucket_bytes)=[0-9]+' "$SCRATCH/stats" | sort -u -t= -k1,1); do
            note flat "$last" "$config" "${pair%=*}" "${pair#*=}"
        done
    done
    if [ "$(uname -m)" != x86_64 ]; then say "skip: instructions are counted on x86-64"; return; fi
    command -v valgrind >/dev/null || return 0
    for config in "${configs[@]}"; do
        for n in "${sizes[@]}"; do
            printf 'instructions, %s, %d rounds\n' "$config" "$n" >&2
            count=$(instructions "$OPTIONS,$config" "$n") || { say "skip: $config does not run under callgrind"; break; }
            note flat "$n" "$config" instructions "$count"
        done
    done
}

# The library measures itself: lines `figure NAME NUMBER`.
section_captures() {
    local status=0 name value
    note captures - heapwright asked 1
    if ! grep -qE '^debug *=' crates/heapwright/Cargo.toml; then say "skip: captures: there is no feature debug yet"; return; fi
    cargo test --quiet -p heapwright-stacks --release --lib -- --ignored --nocapture stacks_figures >"$SCRATCH/captures" 2>&1 || status=$?
    [ $status -eq 0 ] || { tail -20 "$SCRATCH/captures"; die "the captures' figures cannot be taken"; }
    sed -n 's/^.*\bfigure \([a-z0-9_]*\) \([0-9.]*\).*/\1 \2/p' "$SCRATCH/captures" >"$SCRATCH/captured"
    while read -r name value; do note captures "$name" heapwright value "$value"; done <"$SCRATCH/captured"
    grep -vE '^(running|test |test result|$)' "$SCRATCH/captures" >"$OUT/captures.txt" || true
    [ -s "$SCRATCH/captured" ] || say "warning: captures: no line 'figure NAME NUMBER'; what was said: $OUT/captures.txt"
}

section_programs() {
    prepare_library
    real_programs
    local name line words
    while IFS= read -r line; do
        IFS=$'\t' read -ra words <<<"$line"
        name=${words[0]}
        planned programs "$name" glibc 0 "${words[@]:1}"
        planned programs "$name" heapwright 0 "${words[1]}" "${OURS[@]}" "HEAPWRIGHT=$OPTIONS,traces=16" "${words[@]:2}"
        check_planned programs "$name" glibc-check 0 "${words[@]:1}"
        valgrind_planned programs "$name" valgrind 1 "${words[@]:1}"
    done <"$SCRATCH/programs"
    run_plan 5
}

figures_more() {
    [ ! -s "$OUT/captures.txt" ] || [[ " ${chosen[*]} " != *" captures "* && " ${chosen[*]} " != *" report "* ]] ||
        { printf '\n## Captures\n\n```text\n'; cat "$OUT/captures.txt"; printf '```\n'; }
}

figures_end
