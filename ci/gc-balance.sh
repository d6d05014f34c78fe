#!/usr/bin/env bash
# Several heaps in one process, sized by a factor each or by the square-root rule (hw_gc_balance): what all of them have on
# average, and the CPU time of all. docs/gc-figures.md has a table of what comes out.
#
#   ci/gc-balance.sh            rounds of all sizes in turns, and the median of each: a minute or two
#   ci/gc-balance.sh --quick    only that it runs
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

command_or_package cc gcc
preload_library
cc -std=gnu17 -O2 -Wall -Wextra -Werror -pthread -Iinclude -o "$SCRATCH/balance" bench/gc/loads/balance.c \
    -L"$(dirname "$HEAPWRIGHT_SO")" -lheapwright -Wl,-rpath,"$(dirname "$HEAPWRIGHT_SO")"
times=3 rounds=1500
[ "${1:-}" != --quick ] || { times=1 rounds=20; }
sizes=(factor:150 balance:65536 factor:175 balance:98304 factor:200 balance:131072 factor:250 balance:262144 factor:300 balance:393216)
for ((n = 0; n < times; n++)); do
    for size in "${sizes[@]}"; do
        "$SCRATCH/balance" "rule=${size%:*}" "size=${size#*:}" "rounds=$rounds" | sed -n 's/^result //p' >>"$SCRATCH/$size"
    done
done
middle() { sed -E "s/.* $2=([0-9]+).*/\\1/" "$SCRATCH/$1" | median; }
printf '%-8s %10s %12s %12s %9s\n' rule size 'average MiB' collections 'CPU ms'
for size in "${sizes[@]}"; do
    printf '%-8s %10s %12.1f %12s %9.0f\n' "${size%:*}" "${size#*:}" \
        "$(awk -v b="$(middle "$size" average)" 'BEGIN { print b / 1048576 }')" "$(middle "$size" cycles)" \
        "$(awk -v n="$(middle "$size" cpu_ns)" 'BEGIN { print n / 1e6 }')"
done
