#!/usr/bin/env bash
# What the checks of libheapwright-hardened.so cost a call of a copying function, each function against the C library's
# own in one process, in turn (bench/hardened/copies.c).
#
#   ci/hardened-bounds.sh [MODE]...       hardened, by default; fast and debug for comparison
#
# Asked of mode=hardened: memcpy of 16 bytes at most 3 ns more into a block, 2 ns outside of the heap. Ends with 1 where it takes
# more.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[ $# -gt 0 ] || set -- hardened
command_or_package cc gcc
hardened_library
cc -O2 -Wall -Wextra -fno-builtin -o "$SCRATCH/copies" bench/hardened/copies.c -ldl

status=0
printf '%-10s %-10s %-8s %10s %8s\n' mode function place "plain ns" "more ns"
for mode in "$@"; do
    # The first block of a small program stands between guards, and its end takes longer to find.
    guards=
    [ "$mode" = hardened ] && guards=,guard=never
    HEAPWRIGHT=mode=$mode$guards LD_PRELOAD=$HEAPWRIGHT_HARDENED_SO "$SCRATCH/copies" >"$SCRATCH/figures"
    while read -r name place plain more; do
        limit=
        case $mode:$name:$place in
            hardened:memcpy:block | hardened:memcpy:blocks | hardened:memcpy:large) limit=3 ;;
            hardened:memcpy:stack) limit=2 ;;
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
