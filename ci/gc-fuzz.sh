#!/usr/bin/env bash
# Fuzzed sequences of calls of the collected heap's C interface, under AddressSanitizer, for
# a bounded time: see ci/gc-fuzz.c. GC_FUZZ_SECONDS sets the time (default 120). Then the proof that it
# can fail: without the write barrier it must find something.
#
# The sanitizer's malloc is the program's; the library's own is not used here.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

command_or_package clang clang
(packages "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev")
preload_library

build() { # FILE FLAGS...
    local file=$1 folder
    folder=$(dirname "$HEAPWRIGHT_SO")
    shift
    clang -g -O1 -fsanitize=fuzzer,address -pthread -Wall -Wextra -Iinclude "$@" \
        -o "$file" ci/gc-fuzz.c -L"$folder" -lheapwright -Wl,-rpath,"$folder"
}
# The library clears what it hands out again, with the C library's memset: that is no access of the
# program's, so these functions are not looked at.
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=0:handle_abort=1:replace_intrin=0
fuzz() { # FILE SECONDS
    rm -rf "$SCRATCH/corpus"
    mkdir "$SCRATCH/corpus"
    # Long inputs from the first on: what few calls can do is soon tried. A deadlock is a finding.
    for seed in 1 2 3 4 5 6 7 8; do head -c 2048 /dev/urandom >"$SCRATCH/corpus/$seed"; done
    (cd "$SCRATCH" && "$1" corpus -max_total_time="$2" -max_len=2048 -len_control=0 -timeout=60 \
        -rss_limit_mb=4096 -print_final_stats=1) >"$SCRATCH/log" 2>&1
}
build "$SCRATCH/gc-fuzz"
fuzz "$SCRATCH/gc-fuzz" "${GC_FUZZ_SECONDS:-120}" || { tail -n 60 "$SCRATCH/log"; die "the collected heap's interface: something was found"; }
grep stat::number_of_executed_units "$SCRATCH/log"

build "$SCRATCH/broken" -DWITHOUT_BARRIER
if fuzz "$SCRATCH/broken" 60; then die "a store that is not told was not noticed"; fi
say "ok   without the write barrier something is found"
