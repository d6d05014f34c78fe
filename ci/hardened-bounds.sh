#!/usr/bin/env bash
# What the checks of libheapwright-hardened.so, and of libheapwright-check.so, cost a call of a copying function, each function against the C library's
# own in one process, in turn (bench/hardened/copies.c).
#
#   ci/hardened-bounds.sh [MODE]...       hardened and check, by default; fast for comparison
#
# Asked: memcpy of 16 bytes at most 2 ns more outside of the heap, 3 ns into a block of mode=hardened, and 5 ns into one of the
# library that `heapwright check` preloads, also into a large one. Ends with 1 where it takes more.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[ $# -gt 0 ] || set -- hardened check
command_or_package cc gcc
hardened_library
check_library
cc -O2 -Wall -Wextra -fno-builtin -o "$SCRATCH/copies" bench/hardened/copies.c -ldl

status=0
printf '%-10s %-10s %-8s %10s %8s\n' mode function place "plain ns" "more ns"
for mode in "$@"; do
    # The first block of a small program stands between guards, and its end takes longer to find.
    library=$HEAPWRIGHT_HARDENED_SO options=mode=$mode
    [ "$mode" != hardened ] || options=mode=hardened,guard=never
    [ "$mode" != check ] || library=$HEAPWRIGHT_CHECK_SO options=mode=debug
    HEAPWRIGHT=$options LD_PRELOAD=$library "$SCRATCH/copies" >"$SCRATCH/figures"
    while read -r name place plain more; do
        limit=
        case $mode:$name:$place in
            hardened:memcpy:block | hardened:memcpy:blocks | hardened:memcpy:large) limit=3 ;;
            check:memcpy:block | check:memcpy:blocks | check:memcpy:large) limit=5 ;;
            hardened:memcpy:stack | check:memcpy:stack) limit=2 ;;
        esac
        verdict=
        if [ -n "$limit" ]; then
            verdict="   at most $limit"
            awk "BEGIN { exit !($more > $limit) }" && { verdict="   FAIL: at most $limit"; status=1; }
        fi
        printf '%-10s %-10s %-8s %10s %8s%s\n' "$mode" "$name" "$place" "$plain" "$more" "$verdict"
    done <"$SCRATCH/figures"
done
exit $status
