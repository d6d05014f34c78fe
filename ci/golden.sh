#!/usr/bin/env bash
# The fast path's length is a test: instructions a call, with the ret, of malloc
# (small), free (local), sized delete and a free of another thread's block in the preload library, by
# callgrind, against ci/golden.txt; and of the way from a malloc whose list is empty to the refill of the
# list and back, without the refill. With caches that threads share (cache=shared), a pair of
# malloc and free may be at most 25 longer than with exclusive ones, with those of CPUs
# (cache=percpu) at most 14. Valgrind has no restartable sequences, so for these the
# program says itself where its area is (ci/golden-rseq.c). The hardened heap (mode=hardened, hardened:full) clears
# and checks each block, and may take 42 and 62 for a pair of 48 bytes, and 60 and 90.
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
build() { cc -O2 -fno-plt -fno-optimize-sibling-calls -fno-builtin -rdynamic -pthread -o "$@" -ldl; }
build "$SCRATCH/golden" ci/golden.c
build "$SCRATCH/golden-percpu" ci/golden.c ci/golden-rseq.c

# measure OPTION PREFIX: counts the calls under a cache model or a mode, as PREFIXcall.
measure() {
    local program=$SCRATCH/golden size=
    [ "$1" != cache=percpu ] || program=$SCRATCH/golden-percpu
    [[ $1 != mode=* ]] || size=48
    rm -f "$SCRATCH"/part*
    # What is done once a tick of the clock is no call's, and more on a slow machine.
    HEAPWRIGHT=$1,purge=never LD_PRELOAD=$HEAPWRIGHT_SO valgrind --tool=callgrind \
        --callgrind-out-file="$SCRATCH/part" --dump-before=part --compress-strings=no \
        --compress-pos=no --dump-line=no "$program" $size \
        >"$SCRATCH/log" 2>&1 || { cat "$SCRATCH/log" >&2; die "callgrind failed"; }
    # What our callers' calls cost; the many of a part are 160,000.
    {
        counted_calls fn '^call_(malloc|free|delete)$' 100000
        # With other models a block of another thread is one like any.
        [ "$1" != cache=exclusive ] || { counted_calls fn '^call_remote$' 100000; way_of_a_miss; }
    } | sed 's/^malloc /malloc_small /; s/^free /free_local /; s/^delete /sized_delete /; s/^remote /remote_free /' |
        sort | sed "s/^/$2/"
}
# What malloc's misses cost without what they call for: the mean, rounded up, in the form of counted_calls. (Once a tick of
# the clock a miss goes another way than to the refill, and looks at the clock: half an instruction a miss, more or less.)
way_of_a_miss() {
    awk '/^fn=/ { is_ours = /malloc_missed$|exclusive::missed$/ }
         /^cfn=/ { callee = substr($0, 5) }
         /^calls=/ { split(substr($0, 7), n, " "); getline
                     if (callee ~ /malloc_missed$/) { calls += n[1]; way += $2 }
                     if (is_ours && callee ~ /Cache::refill$|missed_elsewhere$|do_as_asked$/) way -= $2 }
         END { if (calls) { way = int(way / calls) + 1; printf "miss %d 0 %d\n", way, way } }' "$SCRATCH"/part.*
}
# Another library has no models.
models="cache=exclusive@ cache=shared@shared- cache=percpu@percpu- mode=hardened@hardened- mode=hardened:full@full-"
[ "$mode" != --print ] || models=cache=exclusive@
for model in $models; do measure "${model%%@*}" "${model#*@}"; done >"$SCRATCH/measured"
[ -s "$SCRATCH/measured" ] || die "callgrind saw no calls"

[ "$mode" != --bless ] || bless "$SCRATCH/measured"

limit() {
    case $1 in
    malloc_small) echo 14 ;;
    free_local | sized_delete) echo 22 ;;
    hardened-malloc_small) echo 42 ;;
    hardened-free_local) echo 62 ;;
    full-malloc_small) echo 60 ;;
    full-free_local) echo 90 ;;
    *) echo - ;;
    esac
}
path_of() { awk -v n="$1" '$1 == n { print $2 }' "$SCRATCH/measured"; }

status=0
printf '%-20s %6s %6s %7s %6s\n' call path mean golden limit
while read -r name path _ mean; do
    golden=$(golden_number "$name")
    printf '%-20s %6s %6s %7s %6s\n' "$name" "$path" "$mean" "${golden:-none}" "$(limit "$name")"
    [ "$mode" = --print ] && continue
    judge "$name" "$path" "$(limit "$name")" || status=1
    # Of blocks of other threads, each 32nd sends a batch: a mean of some 8 more (8.1 on one machine).
    more=3
    [ "$name" != remote_free ] || more=9
    if above "$mean" "$((${path%.*} + more))"; then
        say "FAIL $name takes $mean instructions on average: the slow path is taken too often"; status=1
    fi
done <"$SCRATCH/measured"
[ "$mode" != --print ] || exit $status
[ "$(wc -l <"$SCRATCH/measured")" -eq 17 ] ||
    { say "FAIL not all calls were seen: is a symbol missing from the library?"; status=1; }
# What a model costs a pair more than an exclusive cache.
price() { # MODEL MOST BACK
    local more
    more=$(awk -v a="$(path_of "$1-malloc_small")" -v b="$(path_of "$1-$3")" \
        -v c="$(path_of malloc_small)" -v d="$(path_of "$3")" 'BEGIN { print a + b - c - d }')
    say "a pair of malloc and $3: $more more with cache=$1; at most $2"
    ! above "$more" "$2" || { say "FAIL cache=$1 costs a pair too much"; status=1; }
}
price shared 25 free_local
price shared 25 sized_delete
price percpu 14 free_local
exit $status
