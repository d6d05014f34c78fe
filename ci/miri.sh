#!/usr/bin/env bash
# Miri on the core finds mistakes that no run on real memory shows: undefined behaviour, references that may not
# coexist, pointers without provenance, uninitialised memory and data races. It runs on os/portable.rs, whose
# reservations are allocations that Miri watches. Tests with threads run several times, with other schedules and other
# weak-memory choices each time. Miri can find no fault in files that forbid unsafe code and have no atomics, so their
# unit tests are left out.
#
#   ci/miri.sh [FILTER...]     all, or the library's tests with such names. HEAPWRIGHT_QUICK takes each eighth test and
#                              one seed for threads, and leaves out records, realms, shared magazines and stacks
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup miri

MIRI_TOOLCHAIN=${MIRI_TOOLCHAIN:-nightly}
rustup run "$MIRI_TOOLCHAIN" cargo miri --version
export CARGO_TARGET_DIR=$CARGO_TARGET_DIR/miri

# Every pointer derives from its reservation's pointer. The heap's memory lives as long as the process, by design.
STRICT="-Zmiri-strict-provenance -Zmiri-ignore-leaks"
# A reference to a mutator, a collected heap or a cache covers some thousand cells, and Miri notes each cell each time.
# With the model of aliasing, tests of these and of threads take ten times as long, so they run without the model. Tests
# of their parts (arrays, local marks, tracers, bits) run with it.
UNALIASED="-Zmiri-disable-stacked-borrows"
miri() { # SECONDS FLAGS ARGUMENTS...
    local limit=$1 flags=$2
    shift 2
    MIRIFLAGS="${MIRIFLAGS:-$STRICT} $flags" timeout "$limit" \
        rustup run "$MIRI_TOOLCHAIN" cargo miri test --quiet --locked "$@" | tee "$SCRATCH/out"
    grep -q 'test result: ok. [1-9]' "$SCRATCH/out" || die "no test ran"
}
OTHERS=(-p heapwright -p heapwright-substrate) COLLECTED=(-p heapwright-gc -p heapwright-realm) unit=("${OTHERS[@]}")
PURE=$(grep -rl 'forbid(unsafe_code)' crates/heapwright{,-gc,-substrate}/src | xargs grep -L 'sync::atomic' |
    sed -E 's,^crates/[a-z-]*/src/,,; s,(/mod)?\.rs$,,; s,/,::,g' | paste -sd '|')
names() { # FEATURES PATTERN: lists unit tests that match, except tests of the files in PURE
    rustup run "$MIRI_TOOLCHAIN" cargo miri test --quiet --locked "${unit[@]}" ${1:+--features $1} --lib -- --list 2>/dev/null |
        sed -n 's/: test$//p' | { grep -vE "^($PURE)::tests::" || true; } | { grep -E "$2" || true; } | sort >"$SCRATCH/names"
    [ -s "$SCRATCH/names" ] || die "there is no test like $2"
}
# chosen SECONDS FLAGS FEATURES: runs the tests in $SCRATCH/names; with HEAPWRIGHT_QUICK each eighth.
chosen() {
    local chosen
    mapfile -t chosen < <(awk -v step="$(is_quick && echo 8 || echo 1)" 'NR % step == 1 || step == 1' "$SCRATCH/names")
    say "${#chosen[@]} of $(wc -l <"$SCRATCH/names") tests"
    miri "$1" "$2" "${unit[@]}" ${3:+--features $3} --lib -- --exact "${chosen[@]}"
}

if [ $# -gt 0 ]; then
    miri 3600 "" "${OTHERS[@]}" "${COLLECTED[@]}" --lib -- "$@"
    exit
fi

say "miri: heapwright"
names "" '.'
chosen 3600 "" ""
say "miri: collected heaps"
unit=("${COLLECTED[@]}")
names "" '^tests::'
chosen 3600 "$UNALIASED" ""
say "miri: their parts"
names "" '::tests::'
chosen 3600 "" ""
unit=("${OTHERS[@]}")
# (Under Miri the debug heap has no guards and stacks.)
say "miri: the debug heap"
names debug '^debug::'
chosen 1800 "" debug
if ! is_quick; then
    say "miri: heapwright-record"
    miri 600 "" -p heapwright-record --lib
    say "miri: realms"
    miri 1200 "$UNALIASED" -p heapwright-realm --features derive,std --test realm --test collections --test realm_threads
    say "miri: pools whose magazines threads share"
    miri 600 "-Zmiri-env-set=HEAPWRIGHT=cache=shared:2" "${OTHERS[@]}" --lib -- pool::models registry::tests \
        a_shared_pool threads_share objects_made_here
    say "miri: the depot of stacks"
    miri 900 "-Zmiri-many-seeds=1..3 -Zmiri-preemption-rate=0.05" -p heapwright-stacks --lib -- depot
fi
# A seed decides the schedule, the addresses, and the values of relaxed loads.
for seed in $(seq "${MIRI_SEEDS:-$(is_quick && echo 1 || echo 4)}"); do
    say "miri: threads, with seed $seed"
    miri 1500 "$UNALIASED -Zmiri-seed=$seed -Zmiri-preemption-rate=0.05" "${OTHERS[@]}" "${COLLECTED[@]}" --lib -- \
        blocks_freed_by_another blocks_outlive threads_that_end a_heap_of_its_own counts_from_many \
        threads_share objects_made_here thread_indices_are_passed
done
