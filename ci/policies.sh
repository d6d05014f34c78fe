#!/usr/bin/env bash
# Ways to find a shared cache, raced against each other (bench/policies): the nine of
# LLVM's review D47289 and a few more, with 2, 8 and 32 caches, on a load like t-test1
# with 40 and 80 threads; tables beside the review's numbers.
#
#   ci/policies.sh [OPTION...]                       options of `policies race`: --rounds 15 ...
#   ci/policies.sh [OPTION...] --program PATH [ARG...]  any program under the variants, by wall time
#   ci/policies.sh --quick                           that it works; measures nothing
#
# The replay that the review looked at on small devices, with precedence and without:
#
#   ci/policies.sh --caches 2 --variants precedence-4-current,plain-4-current \
#       --program heapwright-replay TRACE
#
# 9 rounds of all take about ten minutes and want a quiet machine.
#
#   TTEST1   the load's program (default: built from bench/caches/programs/ttest1.c)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

quick='' any=''
words=()
while [ $# -gt 0 ]; do
    case $1 in
        --quick) quick=1 ;;
        --program) any=1; words+=("$@"); break ;;
        *) words+=("$1") ;;
    esac
    shift
done
[ -z "$quick" ] || [ ${#words[@]} -eq 0 ] || die "--quick stands alone"

BUILT=$CARGO_TARGET_DIR/bench
bench() { cargo "$1" --quiet --locked --manifest-path bench/Cargo.toml --target-dir "$BUILT" "${@:2}"; }
# Each alone: the library's features are not for the race.
bench build --release -p policies-preload
bench build --release -p policies
LIBRARY=$BUILT/release/libheapwright_policies.so
POLICIES=$BUILT/release/policies

ttest1() {
    if [ -z "${TTEST1:-}" ]; then
        local source=bench/caches/programs/ttest1.c
        [ -f "$source" ] || die "there is no $source; TTEST1 may name its program"
        command_or_package cc gcc
        TTEST1=$SCRATCH/ttest1
        # The compiler must not know what malloc does: it would leave calls out.
        cc -O2 -w -pthread -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free \
            -o "$TTEST1" "$source"
    fi
}

if [ -z "$quick" ]; then
    program=()
    [ -n "$any" ] || { ttest1; program=(--ttest1 "$TTEST1"); }
    "$POLICIES" race --library "$LIBRARY" ${program[@]+"${program[@]}"} ${words[@]+"${words[@]}"}
    exit
fi

# --- quick: does it work? ----------------------------------------------------------

bench test -p policies

# The library defines the whole family, or a program would have two allocators.
nm -D --defined-only "$LIBRARY" | awk '{ print $3 }' >"$SCRATCH/defined"
for name in malloc free calloc realloc reallocarray memalign posix_memalign aligned_alloc valloc malloc_usable_size; do
    grep -qx "$name" "$SCRATCH/defined" || die "libheapwright_policies.so has no $name"
done

# Every variant runs a program with threads; a name that is none is said, once, and
# changes nothing.
run() { timeout 60 env LD_PRELOAD="$LIBRARY" HEAPWRIGHT=cache=shared:2 HEAPWRIGHT_POLICY="$1" sort --parallel=4 -S 1M "$SCRATCH/defined.many"; }
for _ in {1..500}; do cat "$SCRATCH/defined"; done >"$SCRATCH/defined.many"
sort "$SCRATCH/defined.many" >"$SCRATCH/sorted"
for name in $("$POLICIES" list | sed -n 's/^| \([a-z0-9-]*\) .*/\1/p' | grep -v policy); do
    run "$name" >"$SCRATCH/out" 2>"$SCRATCH/err" || die "sort under $name ended with $?"
    cmp -s "$SCRATCH/out" "$SCRATCH/sorted" || die "sort under $name sorts otherwise"
    [ ! -s "$SCRATCH/err" ] || { cat "$SCRATCH/err" >&2; die "$name is not followed in silence"; }
done
run best >"$SCRATCH/out" 2>"$SCRATCH/err" || die "sort under an unknown policy ended with $?"
cmp -s "$SCRATCH/out" "$SCRATCH/sorted" || die "sort under an unknown policy sorts otherwise"
[ "$(grep -c "HEAPWRIGHT_POLICY='best' is no policy" "$SCRATCH/err")" = 1 ] && [ "$(wc -l <"$SCRATCH/err")" = 1 ] ||
    { cat "$SCRATCH/err" >&2; die "an unknown policy is not said in one line"; }

# A race, from the command line to the tables.
rows() { # WHAT COUNT: so many rows of numbers
    local rows
    rows=$(grep -cE '^\| [a-z0-9-]+ \|( [0-9.]* \|)? [0-9.]+ \| [0-9.]+( \([0-9.]+ to [0-9.]+\))? \|' "$SCRATCH/race" || true)
    [ "$rows" -eq "$2" ] || { cat "$SCRATCH/race"; die "$1 has $rows rows in its tables instead of $2"; }
}
"$POLICIES" race --library "$LIBRARY" --caches 2 --rounds 2 --variants before --program sort "$SCRATCH/defined" \
    >"$SCRATCH/race" 2>"$SCRATCH/err" || { cat "$SCRATCH/err" >&2; die "the race fails"; }
rows "the race of sort" 2
! "$POLICIES" race --library /bin/sh --caches 2 --program true >"$SCRATCH/race" 2>"$SCRATCH/err" ||
    die "a library that cannot be preloaded is not noticed"
if [ -n "${TTEST1:-}" ] || [ -f bench/caches/programs/ttest1.c ]; then
    ttest1
    "$POLICIES" race --library "$LIBRARY" --ttest1 "$TTEST1" --caches 2,8 --threads 8,40 --actions 200 --rounds 1 \
        >"$SCRATCH/race" 2>"$SCRATCH/err" || { cat "$SCRATCH/err" >&2; die "the race of ttest1 fails"; }
    rows "the race of ttest1" $((2 * $("$POLICIES" list | tail -n +3 | wc -l)))
else
    say "skip: there is no ttest1 yet"
fi
say "every policy is followed, and raced"
