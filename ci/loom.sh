#!/usr/bin/env bash
# loom on the core's lock-free parts (remote, and registry's desks, shared, common): every interleaving of
# two or three threads, within a bound on preemptions, with every value the memory
# model allows. Then the proof that these tests can fail: without each of the
# fences and orderings the design rests on, one of them must.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. ci/mutants.sh

# A target folder of its own: the flag would rebuild everything in the other.
export RUSTFLAGS="${RUSTFLAGS:-} --cfg loom"
export CARGO_TARGET_DIR=$CARGO_TARGET_DIR/loom
export LOOM_MAX_PREEMPTIONS=${LOOM_MAX_PREEMPTIONS:-3}
# Optimised, because there are many orders; but the release profile's link-time
# optimisation takes longer than the tests.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
# A null where none may be is then a failure, and not the end of the test program.
export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true

loom() { timeout 600 cargo test --quiet --locked --release -p heapwright --lib loom -- "$@"; }

loom "$@" | tee "$SCRATCH/out"
grep -q 'test result: ok. [1-9]' "$SCRATCH/out" || die "no loom test ran"

say "without what the design rests on, a test must fail:"
run_mutant() { (cd "$SCRATCH/mutant" && loom); }
is_noticed() { grep -q 'test result: FAILED' "$1"; }
copy_tree
mutant remote.rs "the leaver does not fence" 'fence\(Ordering::SeqCst\);(\s+!stack)' '$1'
mutant remote.rs "the freer does not fence" 'fence\(Ordering::SeqCst\);(\s+self\.is_orphaned)' '$1'
mutant remote.rs "the leaver fences too weakly" 'fence\(Ordering::SeqCst\);(\s+!stack)' 'fence(Ordering::AcqRel);$1'
mutant remote.rs "a push does not release" 'compare_exchange_weak\(top, head, Ordering::Release' 'compare_exchange_weak(top, head, Ordering::Relaxed'
mutant remote.rs "a take does not acquire" 'null_mut\(\), Ordering::Acquire' 'null_mut(), Ordering::Relaxed'
mutant remote.rs "a claim does not acquire" 'ORPHANED, CLAIMED, Ordering::Acquire' 'ORPHANED, CLAIMED, Ordering::Relaxed'
mutant remote.rs "letting go does not release" 'ORPHANED, Ordering::Release' 'ORPHANED, Ordering::Relaxed'
mutant remote.rs "blocks are counted after the push" 'self\.count\.fetch_add\(count, Ordering::Relaxed\);' ''
mutant registry/desks.rs "leaving a desk does not release" 'fetch_and\(([^;]*), Ordering::Release\)' 'fetch_and($1, Ordering::Relaxed)'
mutant registry/desks.rs "taking a desk does not acquire" 'fetch_or\(bit, Ordering::Acquire\)' 'fetch_or(bit, Ordering::Relaxed)'
mutant registry/desks.rs "a desk is taken without looking" 'before & bit == 0' 'true'
mutant registry/common.rs "a shared object is entered without looking" 'if current\.try_lock\(\) \{' 'if { let _ = current.try_lock(); true } {'
shared=registry/shared.rs
mutant $shared "taking a shared cache does not acquire" 'TAKES: Ordering = Ordering::Acquire' 'TAKES: Ordering = Ordering::Relaxed'
mutant $shared "giving it back does not release" 'GIVES: Ordering = Ordering::Release' 'GIVES: Ordering = Ordering::Relaxed'
mutant $shared "who waits does not wait" 'let got = slot\.wait\(\)' 'let got = true'
mutant $shared "K is told without an order" 'self\.count\.store\(made, Ordering::Release\)' 'self.count.store(made, Ordering::Relaxed)'
mutant $shared "K is read without an order" 'self\.count\.load\(Ordering::Acquire\)' 'self.count.load(Ordering::Relaxed)'
mutant $shared "K is told before the slots" '(self\.slots\[made\]\.store)' 'self.count.store(made + 1, Ordering::Release); $1'
mutant $shared "K is told before the strides" '(let mut strides = 0;)' 'self.count.store(made, Ordering::Release); $1'
mutant $shared "the strides' number is told without an order" 'self\.stride_count\.store\(strides, Ordering::Release\)' 'self.stride_count.store(strides, Ordering::Relaxed)'
mutant $shared "the strides' number is read without an order" 'self\.registry\.stride_count\.load\(Ordering::Acquire\)' 'self.registry.stride_count.load(Ordering::Relaxed)'
all_noticed
