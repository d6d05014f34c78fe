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

mode=${1:-}
[ "$(uname -m)" = x86_64 ] || { say "skip: the golden numbers are x86-64's"; exit 0; }
command_or_package valgrind valgrind
preload_library
GOLDEN=$ROOT/ci/golden.txt

# Without sibling calls a call is a call, without a PLT it has no stub.
cc -O2 -fno-plt -fno-optimize-sibling-calls -fno-builtin -o "$SCRATCH/golden" ci/golden.c -ldl

LD_PRELOAD=$HEAPWRIGHT_SO valgrind --tool=callgrind --callgrind-out-file="$SCRATCH/part" \
    --dump-before=part --compress-strings=no --compress-pos=no --dump-line=no "$SCRATCH/golden" \
    >"$SCRATCH/log" 2>&1 || { cat "$SCRATCH/log" >&2; die "callgrind failed"; }

# Each dump holds the counts since the one before: take what the edges from our
# callers cost, callees included.
awk '
    FNR == 1  { close_part() }
    /^fn=/    { fn = substr($0, 4); next }
    /^calls=/ { split(substr($0, 7), n, " "); getline
                if (fn ~ /^call_(malloc|free|delete)$/) { calls[fn] += n[1]; cost[fn] += $2 } }
    function close_part(  fn, each) {
        for (fn in calls) {
            each = cost[fn] / calls[fn]
            if (calls[fn] == 8 && (!(fn in path) || each < path[fn])) path[fn] = each
            if (calls[fn] > 100000 && !(fn in mean)) mean[fn] = each
        }
        delete calls; delete cost
    }
    END {
        close_part()
        name["call_malloc"] = "malloc_small"; name["call_free"] = "free_local"; name["call_delete"] = "sized_delete"
        for (fn in path) printf "%s %.1f %.1f\n", name[fn], path[fn], mean[fn]
    }
' "$SCRATCH"/part.* | sort >"$SCRATCH/measured"
[ -s "$SCRATCH/measured" ] || die "callgrind saw no calls"

[ "$mode" = --bless ] && {
    {
        echo "# Instructions a call with the ret, x86-64, written by ci/golden.sh --bless."
        echo "# name path"
        cut -d' ' -f1,2 "$SCRATCH/measured"
    } >"$GOLDEN"
}

limit() { case $1 in malloc_small) echo 14 ;; *) echo 22 ;; esac; }

status=0
printf '%-14s %6s %6s %7s %6s\n' call path mean golden limit
while read -r name path mean; do
    golden=$(awk -v n="$name" '$1 == n { print $2 }' "$GOLDEN" 2>/dev/null || true)
    printf '%-14s %6s %6s %7s %6s\n' "$name" "$path" "$mean" "${golden:-none}" "$(limit "$name")"
    [ "$mode" = --print ] && continue
    above() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > b + 0.05) }'; }
    if [ -z "$golden" ]; then
        say "FAIL $name has no golden number in ci/golden.txt"; status=1
    elif above "$path" "$golden"; then
        say "FAIL $name takes $path instructions; the golden number is $golden"; status=1
    elif above "$golden" "$path"; then
        say "note: $name got shorter: please lower its golden number to $path (ci/golden.sh --bless)"
    fi
    if above "$path" "$(limit "$name")"; then
        say "FAIL $name takes $path instructions; the limit is $(limit "$name")"; status=1
    fi
    if above "$mean" "$(awk -v p="$path" 'BEGIN { print p + 3 }')"; then
        say "FAIL $name takes $mean instructions on average: the slow path is taken too often"; status=1
    fi
done <"$SCRATCH/measured"
[ "$mode" = --print ] || [ "$(wc -l <"$SCRATCH/measured")" -eq 3 ] ||
    { say "FAIL not all three calls were seen: is a symbol missing from the library?"; status=1; }
exit $status
