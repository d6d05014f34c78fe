#!/usr/bin/env bash
# Miri on the core: undefined behaviour, references that may not coexist,
# pointers without provenance, memory that nobody wrote, and data races, which
# no run on real memory shows. It runs on os/portable.rs, whose reservations are
# allocations that Miri watches. The tests with threads run several times, with
# other schedules and other weak-memory choices each time.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

MIRI_TOOLCHAIN=${MIRI_TOOLCHAIN:-nightly}
rustup run "$MIRI_TOOLCHAIN" cargo miri --version >/dev/null 2>&1 ||
    rustup toolchain install "$MIRI_TOOLCHAIN" --profile minimal --component miri,rust-src
rustup run "$MIRI_TOOLCHAIN" cargo miri --version
export CARGO_TARGET_DIR=$CARGO_TARGET_DIR/miri

# Strict provenance: every pointer derives from its reservation's. Leaks are no
# news: the heap's memory lives as long as the process, by design.
STRICT="-Zmiri-strict-provenance -Zmiri-ignore-leaks"
miri() { # SECONDS FLAGS ARGUMENTS...
    local limit=$1 flags=$2
    shift 2
    MIRIFLAGS="${MIRIFLAGS:-$STRICT} $flags" timeout "$limit" \
        rustup run "$MIRI_TOOLCHAIN" cargo miri test --quiet --locked "$@" | tee "$SCRATCH/out"
    grep -q 'test result: ok. [1-9]' "$SCRATCH/out" || die "no test ran"
}

say "miri: heapwright-record"
miri 600 "" -p heapwright-record --lib
say "miri: heapwright"
miri 1800 "" -p heapwright --lib -- --skip gc::tests "$@"
# A reference to a mutator or a heap is one to some thousand cells, and each is noted anew each
# time: these tests do without the model of aliasing, which takes ten times as long. Their parts
# (arrays, lanes, tracers, bits) ran with it above.
say "miri: collected heaps"
miri 2100 "-Zmiri-disable-stacked-borrows" -p heapwright --lib -- gc::tests
say "miri: realms"
miri 600 "-Zmiri-disable-stacked-borrows" -p heapwright --features derive,std --test realm
# Spans, side memory, the table of checked blocks: what the debug heap believes of
# pointers. Guards and stacks there are none here.
say "miri: the debug heap"
miri 300 "" -p heapwright --features debug --lib -- debug::
say "miri: pools whose magazines threads share"
miri 600 "-Zmiri-env-set=HEAPWRIGHT=cache=shared:2" -p heapwright --lib -- pool::models registry::tests \
    a_shared_pool threads_share objects_made_here
# A seed decides the schedule, the addresses, and what a relaxed load sees.
SEEDS=${MIRI_SEEDS:-3}
say "miri: threads, with $SEEDS other seeds"
miri 900 "-Zmiri-many-seeds=1..$((SEEDS + 1)) -Zmiri-preemption-rate=0.05" -p heapwright --lib -- \
    blocks_freed_by_another blocks_outlive threads_that_end a_heap_of_its_own counts_from_many \
    threads_share objects_made_here desks_are_passed
