#!/usr/bin/env bash
# The fast path's length is a test: instructions a call, with the ret, of malloc
# (small), free (local) and sized delete in the preload library, by callgrind,
# against ci/golden.txt.
#
#   ci/golden.sh           compare; fails above the golden number
#   ci/golden.sh --bless   write the measured numbers to ci/golden.txt
#   ci/golden.sh --print   only print (for other libraries: HEAPWRIGHT_SO=...)
#
# `path` is the shortest call seen (a part of 8 calls in which none left the fast
# path), `mean` is over 160,000 calls with whatever slow path some of them took; a
# mean far from the path would mean that the fast path is seldom taken.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. ci/counts.sh
GOLDEN=$ROOT/ci/golden.txt
BLESS='ci/golden.sh --bless'

mode=${1:-}
[ "$(uname -m)" = x86_64 ] || { say "skip: the golden numbers are x86-64's"; exit 0; }
command_or_package valgrind valgrind
preload_library

# Without sibling calls a call is a call, without a PLT it has no stub.
cc -O2 -fno-plt -fno-optimize-sibling-calls -fno-builtin -o "$SCRATCH/golden" ci/golden.c -ldl

LD_PRELOAD=$HEAPWRIGHT_SO valgrind --tool=callgrind --callgrind-out-file="$SCRATCH/part" \
    --dump-before=part --compress-strings=no --compress-pos=no --dump-line=no "$SCRATCH/golden" \
    >"$SCRATCH/log" 2>&1 || { cat "$SCRATCH/log" >&2; die "callgrind failed"; }

# What our callers' calls cost; the many of a part are 160,000.
counted_calls fn '^call_(malloc|free|delete)$' 100000 |
    sed 's/^malloc /malloc_small /; s/^free /free_local /; s/^delete /sized_delete /' | sort >"$SCRATCH/measured"
[ -s "$SCRATCH/measured" ] || die "callgrind saw no calls"

[ "$mode" != --bless ] || bless "$SCRATCH/measured"

limit() { case $1 in malloc_small) echo 14 ;; *) echo 22 ;; esac; }

status=0
printf '%-14s %6s %6s %7s %6s\n' call path mean golden limit
while read -r name path _ mean; do
    golden=$(golden_number "$name")
    printf '%-14s %6s %6s %7s %6s\n' "$name" "$path" "$mean" "${golden:-none}" "$(limit "$name")"
    [ "$mode" = --print ] && continue
    judge "$name" "$path" "$(limit "$name")" || status=1
    if above "$mean" "$(awk -v p="$path" 'BEGIN { print p + 3 }')"; then
        say "FAIL $name takes $mean instructions on average: the slow path is taken too often"; status=1
    fi
done <"$SCRATCH/measured"
[ "$mode" = --print ] || [ "$(wc -l <"$SCRATCH/measured")" -eq 3 ] ||
    { say "FAIL not all three calls were seen: is a symbol missing from the library?"; status=1; }
exit $status
