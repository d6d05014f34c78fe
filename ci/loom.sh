#!/usr/bin/env bash
# loom on the core's lock-free part (remote.rs): every interleaving of two or
# three threads, within a bound on preemptions, with every value the memory
# model allows. Then the proof that these tests can fail: without each of the
# fences and orderings the design rests on, one of them must.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# A target folder of its own: the flag would rebuild everything in the other.
export RUSTFLAGS="${RUSTFLAGS:-} --cfg loom"
export CARGO_TARGET_DIR=$CARGO_TARGET_DIR/loom
export LOOM_MAX_PREEMPTIONS=${LOOM_MAX_PREEMPTIONS:-3}
# Optimised, because there are many orders; but the release profile's link-time
# optimisation takes longer than the tests.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16

loom() { timeout 600 cargo test --quiet --locked --release -p heapwright --lib loom -- "$@"; }

loom "$@" | tee "$SCRATCH/out"
grep -q 'test result: ok. [1-9]' "$SCRATCH/out" || die "no loom test ran"

say "without what the design rests on, a test must fail:"
SOURCE=crates/heapwright/src/remote.rs
mkdir "$SCRATCH/mutant"
tar cf - --exclude=./target --exclude=./.git --exclude='./*/target' . | tar xf - -C "$SCRATCH/mutant"
failures=0
# mutant NAME PATTERN REPLACEMENT: replaces the first match in remote.rs.
mutant() {
    local name=$1 pattern=$2 replacement=$3
    perl -0pe "s/$pattern/$replacement/" "$SOURCE" >"$SCRATCH/mutant/$SOURCE"
    if cmp -s "$SOURCE" "$SCRATCH/mutant/$SOURCE"; then
        printf 'FAIL %-44s the source has no such line any more\n' "$name"
        failures=$((failures + 1))
    elif (cd "$SCRATCH/mutant" && loom) >"$SCRATCH/out" 2>&1; then
        printf 'FAIL %-44s no test noticed\n' "$name"
        failures=$((failures + 1))
    elif grep -q 'test result: FAILED' "$SCRATCH/out"; then
        printf 'ok   %s\n' "$name"
    else
        printf 'FAIL %-44s does not build\n' "$name"
        tail -5 "$SCRATCH/out"
        failures=$((failures + 1))
    fi
}
mutant "the leaver does not fence" 'fence\(Ordering::SeqCst\);(\s+!stack)' '$1'
mutant "the freer does not fence" 'fence\(Ordering::SeqCst\);(\s+self\.is_orphaned)' '$1'
mutant "the leaver fences too weakly" 'fence\(Ordering::SeqCst\);(\s+!stack)' 'fence(Ordering::AcqRel);$1'
mutant "a push does not release" 'compare_exchange_weak\(top, head, Ordering::Release' 'compare_exchange_weak(top, head, Ordering::Relaxed'
mutant "a take does not acquire" 'null_mut\(\), Ordering::Acquire' 'null_mut(), Ordering::Relaxed'
mutant "a claim does not acquire" 'ORPHANED, CLAIMED, Ordering::Acquire' 'ORPHANED, CLAIMED, Ordering::Relaxed'
mutant "letting go does not release" 'ORPHANED, Ordering::Release' 'ORPHANED, Ordering::Relaxed'
mutant "blocks are counted after the push" 'self\.count\.fetch_add\(count, Ordering::Relaxed\);' ''
[ $failures -eq 0 ] || die "$failures mutants survived"
