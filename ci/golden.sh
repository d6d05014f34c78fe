#!/usr/bin/env bash
# Compares the lengths of paths with golden numbers. Callgrind counts the instructions of a call, with the ret.
#
#   ci/golden.sh [calls]   malloc (small), free (local) and sized delete, with each kind of cache and in hardened mode,
#                          which clears and verifies blocks; a free of another thread's block; a malloc's way to the
#                          refill and back when its list is empty. A pair of calls may take 25 instructions more with
#                          shared caches than with exclusive caches, and 14 more with per-CPU caches.
#   ci/golden.sh sizes     a pair of allocation and free, of the entry points at sizes from 16 bytes to 1,000,000
#                          (golden-sizes.c). A path may be longer than its golden number by 3 instructions or 2 %,
#                          whichever is more. memset itself is not counted.
#   ci/golden.sh gc        the inline functions of heapwright_gc.h. Callgrind counts each byte that `rep stosb` clears.
#   ci/golden.sh pools     calls of pools and arenas (bench/pools)
#
#   ... --bless            write the measured numbers to ci/golden.txt, ci/golden-sizes.txt ...
#   ... --print            only print (for other libraries: HEAPWRIGHT_SO=...)
#
# `path` is a call's mean in the shortest part of 8 calls, which all stayed on the fast path. `mean` is over many calls,
# some with slow paths. For sizes the shortest part of 64 pairs counts.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup golden

what=calls
case ${1:-} in calls | sizes | gc | pools) what=$1; shift ;; esac
mode=${1:-}
case $mode in '' | --bless | --print) ;; *) die "usage: ci/golden.sh [calls|sizes|gc|pools] [--bless|--print]" ;; esac
GOLDEN=$ROOT/ci/golden-$what.txt
[ $what != calls ] || GOLDEN=$ROOT/ci/golden.txt
BLESS="ci/golden.sh $what --bless"
BRANCHES=
[ $what != pools ] || BRANCHES=--branch-sim=yes
[ "$(uname -m)" = x86_64 ] || { say "skip: the golden numbers are x86-64's"; exit 0; }
[ $what = pools ] || preload_library

# callgrind MARK PROGRAM...: leaves dumps in $SCRATCH/part.*, each with the counts since the previous call of MARK.
callgrind() {
    rm -f "$SCRATCH"/part*
    valgrind --tool=callgrind --callgrind-out-file="$SCRATCH/part" --dump-before="$1" $BRANCHES \
        --compress-strings=no --compress-pos=no --dump-line=no "${@:2}" >"$SCRATCH/said" 2>"$SCRATCH/log" ||
        { cat "$SCRATCH/log" >&2; die "callgrind failed"; }
}

# counted_calls fn|cfn PATTERN MANY: prints a line `name path branches mean`, in no order, for each function call_NAME
# that matches, from callgrind's dumps. With cfn it counts these functions with their callees, with fn only the callees.
# `path` is the least mean of a part with 8 calls, and `mean` that of a part with MANY calls or more. `branches` are the
# path's conditional branches. Callgrind leaves out trailing zeros of a line of costs.
counted_calls() {
    awk -v edge="$1=" -v pattern="$2" -v many="$3" '
        FNR == 1  { close_part() }
        /^events:/ { for (i = 2; i <= NF; i++) if ($i == "Bc") bc = i }
        index($0, edge) == 1 { fn = substr($0, length(edge) + 1); next }
        /^calls=/ { split(substr($0, 7), n, " "); getline
                    if (fn ~ pattern) { calls[fn] += n[1]; cost[fn] += $2; if (bc) branches[fn] += $bc } }
        function close_part(  fn, each) {
            for (fn in calls) {
                each = cost[fn] / calls[fn]
                if (calls[fn] == 8 && (!(fn in path) || each < path[fn])) { path[fn] = each; taken[fn] = branches[fn] / 8 }
                if (calls[fn] >= many && (!(fn in mean) || each < mean[fn])) mean[fn] = each
            }
            delete calls; delete cost; delete branches
        }
        END {
            close_part()
            for (fn in path) printf "%s %.1f %.1f %.1f\n", substr(fn, 6), path[fn], taken[fn], mean[fn]
        }
    ' "$SCRATCH"/part.*
}

# above A B: whether A exceeds B by more than rounding.
above() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > b + 0.05) }'; }

bless() {
    echo "# Instructions with the ret, x86-64, written by $BLESS: of a call, or of a pair of each size."
    if [ $what = sizes ]; then show_sizes; else cut -d' ' -f1,2 "$SCRATCH/measured"; fi
}

golden_number() { awk -v n="$1" '$1 == n { print $2 }' "$GOLDEN" 2>/dev/null || true; }

# judge NAME PATH LIMIT: reports a path that has no golden number, or exceeds it or its limit (-: none). Returns 1 then.
judge() {
    local status=0 number
    number=$(golden_number "$1")
    if [ -z "$number" ]; then
        say "FAIL $1 has no golden number in ${GOLDEN#"$ROOT"/}"; status=1
    elif above "$2" "$number"; then
        say "FAIL $1 takes $2 instructions; the golden number is $number"; status=1
    elif above "$number" "$2"; then
        say "note: $1 got shorter: please lower its golden number to $2 ($BLESS)"
    fi
    if [ "$3" != - ] && above "$2" "$3"; then say "FAIL $1 takes $2 instructions; the limit is $3"; status=1; fi
    return $status
}

# Without sibling calls each call is a call instruction. Without a PLT it has no stub.
PLAIN=(-O2 -fno-plt -fno-optimize-sibling-calls -fno-builtin -rdynamic -pthread)

# measure OPTION PREFIX: counts the calls under a cache model or a mode, as PREFIXcall.
measure() {
    local program=$SCRATCH/golden size=
    [ "$1" != cache=percpu ] || program=$SCRATCH/golden-percpu
    [[ $1 != mode=* ]] || size=48
    # (purge=never: the periodic work at each tick of the clock belongs to no call.)
    HEAPWRIGHT=$1,purge=never LD_PRELOAD=$HEAPWRIGHT_SO callgrind part "$program" $size
    {
        counted_calls fn '^call_(malloc|free|delete)$' 100000
        # With other models a block of another thread is like any other block.
        [ "$1" != cache=exclusive ] || { counted_calls fn '^call_remote$' 100000; way_of_a_miss; }
    } | sed 's/^malloc /malloc_small /; s/^free /free_local /; s/^delete /sized_delete /; s/^remote /remote_free /' |
        sort | sed "s/^/$2/"
}
# The mean cost of malloc's misses without the refill, rounded up, in the form of counted_calls. (Once a tick a miss reads
# the clock instead: about half an instruction for each miss.)
way_of_a_miss() {
    awk '/^fn=/ { is_ours = /heap::own::malloc$/ }
         /^cfn=/ { callee = substr($0, 5) }
         /^calls=/ { split(substr($0, 7), n, " "); getline
                     if (callee ~ /heap::own::malloc$/) { calls += n[1]; way += $2 }
                     if (is_ours && callee ~ /Cache::refill$|own::malloc_otherwise$/) way -= $2 }
         END { if (calls) { way = int(way / calls) + 1; printf "miss %d 0 %d\n", way, way } }' "$SCRATCH"/part.*
}

measure_calls() {
    local models model
    cc "${PLAIN[@]}" -o "$SCRATCH/golden" ci/golden.c -ldl
    cc "${PLAIN[@]}" -o "$SCRATCH/golden-percpu" ci/golden.c ci/golden-rseq.c -ldl
    # Another library has no models.
    models="cache=exclusive@ cache=shared@shared- cache=percpu@percpu- mode=hardened@hardened- mode=hardened:full@full-"
    [ "$mode" != --print ] || models=cache=exclusive@
    for model in $models; do measure "${model%%@*}" "${model#*@}"; done
}

measure_gc() {
    cc -O2 -Wall -Wextra -Werror -fno-optimize-sibling-calls -Iinclude -o "$SCRATCH/golden-gc" ci/golden-gc.c \
        -L"$(dirname "$HEAPWRIGHT_SO")" -lheapwright -Wl,-rpath,"$(dirname "$HEAPWRIGHT_SO")"
    callgrind part "$SCRATCH/golden-gc"
    counted_calls cfn '^call_gc_' 100000 | sort
}

# Counts the calls with a golden number, and with --print the calls of others, too.
measure_pools() {
    # By the profile of bench/Cargo.toml, also in .ci/run: without link-time optimisation some calls are not inlined.
    (unset CARGO_PROFILE_RELEASE_LTO CARGO_PROFILE_RELEASE_CODEGEN_UNITS && bench build -p pools --bin pools)
    callgrind golden_part "$MADE/pools" golden
    counted_calls cfn '^call_' 8000 | sort | if [ "$mode" = --print ]; then cat; else awk 'NR == FNR { golden[$1]; next } $1 in golden' "$GOLDEN" -; fi
}

measure_sizes() {
    cc "${PLAIN[@]}" -Wall -Wextra -o "$SCRATCH/golden-sizes" ci/golden-sizes.c -ldl
    LD_PRELOAD=$HEAPWRIGHT_SO callgrind part "$SCRATCH/golden-sizes"
    cp "$SCRATCH/said" "$SCRATCH/cells"
    # Prints a line `ENTRY-STATE-SIZE count` for each cell. A cell has 5 parts, the first its warm-up.
    awk '
        FILENAME ~ /cells$/ { cell[cells++] = $1; next }
        FNR == 1 { close_part(); number = FILENAME; sub(/.*\./, "", number); number-- }
        /^fn=/  { ours = $0 ~ /^fn=call_(get|put)$/ }
        /^cfn=/ { callee = substr($0, 5) }
        /^calls=/ { getline; if (ours) sum += $2; else if (callee ~ /memset/) sum -= $2 }
        function close_part(  which) {
            which = int(number / 5)
            if (number % 5 && (!(which in least) || sum < least[which])) least[which] = sum
            sum = 0
        }
        END { close_part(); for (i = 0; i < cells; i++) printf "%s %.1f\n", cell[i], least[i] / 64 }
    ' "$SCRATCH/cells" "$SCRATCH"/part.*
}

# A row for each entry point and state, a column for each size.
show_sizes() {
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
}
judge_sizes() {
    awk '
        NR == FNR && $1 == "bytes" { for (c = 2; c <= NF; c++) sizes[c] = $c }
        NR == FNR { for (c = 2; c <= NF && $1 != "bytes" && $1 != "#"; c++) golden[$1 "-" sizes[c]] = $c; next }
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
}

"measure_$what" >"$SCRATCH/measured"
[ -s "$SCRATCH/measured" ] || die "callgrind saw no calls"
[ "$mode" != --bless ] || bless >"$GOLDEN"
if [ $what = sizes ]; then
    show_sizes
    [ "$mode" = --print ] || judge_sizes
    exit
fi

limit() {
    case $1 in
    malloc_small) echo 14 ;;
    free_local | sized_delete) echo 22 ;;
    hardened-malloc_small) echo 42 ;;
    hardened-free_local) echo 64 ;;
    full-malloc_small) echo 60 ;;
    full-free_local) echo 90 ;;
    gc_new | arena_u32) echo 10 ;;
    gc_new_sized) echo 15 ;;
    gc_write) echo 5 ;;
    gc_barrier | gc_touch | gc_touch_slot) echo 4 ;;
    arena_layout) echo 12 ;;
    *) echo - ;;
    esac
}
# slack NAME: prints by how many instructions a call's mean may exceed its path; nothing if there is no limit.
slack() {
    case $1 in
    # Each 32nd free of other threads' blocks sends a batch: a mean of some 8 more.
    remote_free) echo 9 ;;
    # The block arrives zeroed.
    gc_new | arena_* | pool_*) ;;
    gc_*) echo 8 ;;
    *) echo 3 ;;
    esac
}
path_of() { awk -v n="$1" '$1 == n { print $2 }' "$SCRATCH/measured"; }

if [ "$mode" = --print ]; then awk '{ print $1, $2, $4, $3 }' "$SCRATCH/measured"; exit; fi
status=0
printf '%-20s %6s %6s %8s %7s %6s\n' call path mean branches golden limit
while read -r name path branches mean; do
    golden=$(golden_number "$name")
    printf '%-20s %6s %6s %8s %7s %6s\n' "$name" "$path" "$mean" "$branches" "${golden:-none}" "$(limit "$name")"
    judge "$name" "$path" "$(limit "$name")" || status=1
    more=$(slack "$name")
    if [ -n "$more" ] && above "$mean" "$((${path%.*} + more))"; then
        say "FAIL $name takes $mean instructions on average: the slow path is taken too often"; status=1
    fi
done <"$SCRATCH/measured"
case $what in calls) calls=17 ;; gc) calls=7 ;; pools) calls=11 ;; esac
[ "$(wc -l <"$SCRATCH/measured")" -eq $calls ] ||
    { say "FAIL not all calls were seen: is a symbol missing from the library?"; status=1; }
[ $what = calls ] || exit $status

price() { # MODEL MOST BACK: the cost of a pair with a model, less the cost with an exclusive cache
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
