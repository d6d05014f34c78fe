#!/usr/bin/env bash
# The lengths of the collected heap's fast paths are a test: instructions a call, with
# the ret, of the inline functions of heapwright_gc.h, by callgrind, against ci/golden-gc.txt:
# an allocation whose size is a constant, one whose size is not, a store of a reference, the barrier
# without the store (what is stored; the object; the slot), a poll.
#
#   ci/golden-gc.sh           compare; fails above the golden number
#   ci/golden-gc.sh --bless   write the measured numbers to ci/golden-gc.txt
#
# `mean` is over 160,000 calls, with the collections that they brought: nothing is kept.
# (Callgrind counts each byte that `rep stosb` clears as an instruction, so the mean of
# objects that arrive zeroed says nothing.)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. ci/counts.sh
GOLDEN=$ROOT/ci/golden-gc.txt
BLESS='ci/golden-gc.sh --bless'

[ "$(uname -m)" = x86_64 ] || { say "skip: the golden numbers are x86-64's"; exit 0; }
command_or_package valgrind valgrind
preload_library

cc -O2 -Wall -Wextra -Werror -fno-optimize-sibling-calls -Iinclude -o "$SCRATCH/golden-gc" ci/golden-gc.c \
    -L"$(dirname "$HEAPWRIGHT_SO")" -lheapwright -Wl,-rpath,"$(dirname "$HEAPWRIGHT_SO")"
valgrind --tool=callgrind --callgrind-out-file="$SCRATCH/part" --dump-before=part --compress-strings=no \
    --compress-pos=no --dump-line=no "$SCRATCH/golden-gc" >"$SCRATCH/log" 2>&1 ||
    { cat "$SCRATCH/log" >&2; die "callgrind failed"; }
counted_calls cfn '^call_gc_' 100000 | sort >"$SCRATCH/measured"
[ "$(wc -l <"$SCRATCH/measured")" -eq 7 ] || die "not all seven calls were seen"

[ "${1:-}" != --bless ] || bless "$SCRATCH/measured"

limit() { case $1 in gc_new) echo 10 ;; gc_new_sized) echo 15 ;; gc_write) echo 5 ;; gc_barrier | gc_touch | gc_touch_slot) echo 4 ;; *) echo - ;; esac; }
status=0
printf '%-20s %6s %6s %7s %6s\n' call path mean golden limit
while read -r name path _ mean; do
    printf '%-20s %6s %6s %7s %6s\n' "$name" "$path" "$mean" "$(golden_number "$name")" "$(limit "$name")"
    judge "$name" "$path" "$(limit "$name")" || status=1
    if [ "$name" != gc_new ] && above "$mean" "$(awk -v p="$path" 'BEGIN { print p + 8 }')"; then
        say "FAIL $name takes $mean instructions on average: the slow path is taken too often"; status=1
    fi
done <"$SCRATCH/measured"
exit $status
