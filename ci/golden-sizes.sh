#!/usr/bin/env bash
# The lengths of all paths are a test, not only of the fast ones of small blocks (ci/golden.sh):
# instructions a pair of allocation and free, by callgrind, of the entry points at sizes from 16 bytes
# to 1,000,000 (ci/golden-sizes.c), against ci/golden-sizes.txt. A path may be longer than its golden
# number by 3 instructions or 2 %, whichever is more.
#
#   ci/golden-sizes.sh           compare
#   ci/golden-sizes.sh --bless   write the measured numbers to ci/golden-sizes.txt
#   ci/golden-sizes.sh --print   only print (for other libraries: HEAPWRIGHT_SO=...)
#
# Counted is the shortest part of 64 pairs, each of them with its share of slow paths; a tick that
# came in between is in another part. What memset does is left out: how many instructions clear a
# block depends on the processor. The kernel's work is not counted, and `ci/sweep.sh` measures the time.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. ci/counts.sh
GOLDEN=$ROOT/ci/golden-sizes.txt
BLESS='ci/golden-sizes.sh --bless'

mode=${1:-}
[ "$(uname -m)" = x86_64 ] || { say "skip: the golden numbers are x86-64's"; exit 0; }
command_or_package valgrind valgrind
preload_library

cc -O2 -Wall -Wextra -fno-plt -fno-optimize-sibling-calls -fno-builtin -rdynamic -o "$SCRATCH/golden-sizes" ci/golden-sizes.c -ldl
LD_PRELOAD=$HEAPWRIGHT_SO valgrind --tool=callgrind --callgrind-out-file="$SCRATCH/part" --dump-before=part \
    --compress-strings=no --compress-pos=no --dump-line=no "$SCRATCH/golden-sizes" \
    >"$SCRATCH/cells" 2>"$SCRATCH/log" || { cat "$SCRATCH/log" >&2; die "callgrind failed"; }

# A line `ENTRY-STATE-SIZE count` for each cell. Each has 5 parts, the first its warm-up; a part holds
# the counts since the one before.
awk '
    FILENAME ~ /cells$/ { cell[cells++] = $1; next }
    FNR == 1 {
        close_part()
        number = FILENAME; sub(/.*\./, "", number); number--
    }
    /^fn=/  { ours = $0 ~ /^fn=call_(get|put)$/ }
    /^cfn=/ { callee = substr($0, 5) }
    /^calls=/ { getline; if (ours) sum += $2; else if (callee ~ /memset/) sum -= $2 }
    function close_part(  which) {
        which = int(number / 5)
        if (number % 5 && (!(which in least) || sum < least[which])) least[which] = sum
        sum = 0
    }
    END { close_part(); for (i = 0; i < cells; i++) printf "%s %.1f\n", cell[i], least[i] / 64 }
' "$SCRATCH/cells" "$SCRATCH"/part.* >"$SCRATCH/measured"

if [ "$mode" = --bless ]; then bless "$SCRATCH/measured" pair; fi

# A row for each entry point and state, a column for each size.
awk '
    { last = match($1, /-[0-9]+$/); row = substr($1, 1, last - 1); size = substr($1, last + 1)
      if (!(row in seen)) { seen[row] = 1; rows[++count] = row }
      if (count == 1) { sizes[++columns] = size }
      path[row, size] = $2 }
    END {
        printf "%-14s", "bytes"; for (c = 1; c <= columns; c++) printf "%8s", sizes[c]; print ""
        for (r = 1; r <= count; r++) {
            printf "%-14s", rows[r]; for (c = 1; c <= columns; c++) printf "%8s", path[rows[r], sizes[c]]; print ""
        }
    }
' "$SCRATCH/measured"
[ "$mode" != --print ] || exit 0

awk '
    NR == FNR { if ($1 != "#") golden[$1] = $2; next }
    !($1 in golden) { print "FAIL " $1 " has no golden number"; bad = 1; next }
    {
        number = golden[$1]; delete golden[$1]
        room = number * 0.02 > 3 ? number * 0.02 : 3
        if ($2 > number + room + 0.05) { print "FAIL " $1 " takes " $2 " instructions; the golden number is " number; bad = 1 }
        else if ($2 < number - room) shorter = shorter " " $1 " (" number " -> " $2 ")"
    }
    END {
        for (name in golden) { print "FAIL " name " was not measured"; bad = 1 }
        if (shorter) print "note: got shorter, please bless:" shorter
        exit bad
    }
' "$GOLDEN" "$SCRATCH/measured"
