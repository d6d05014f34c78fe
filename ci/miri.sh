#!/usr/bin/env bash
# Miri on the core's unit tests: undefined behaviour, wrong aliasing, pointers
# without provenance, leaks and data races, which no run on real memory shows.
# It runs on os/portable.rs. `slow_` tests are too long for an interpreter.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

MIRI_TOOLCHAIN=${MIRI_TOOLCHAIN:-nightly}
rustup run "$MIRI_TOOLCHAIN" cargo miri --version >/dev/null 2>&1 ||
    rustup toolchain install "$MIRI_TOOLCHAIN" --profile minimal --component miri,rust-src
rustup run "$MIRI_TOOLCHAIN" cargo miri --version

# Strict provenance: the design derives every pointer from its reservation's.
# Isolation stays on but for the clock and the environment, which are refused
# with an error instead of an abort.
export MIRIFLAGS="${MIRIFLAGS:--Zmiri-strict-provenance -Zmiri-isolation-error=warn-nobacktrace}"
export CARGO_TARGET_DIR=$CARGO_TARGET_DIR/miri
export PROPTEST_CASES=${PROPTEST_CASES:-4}

# An interpreter uses one core: the two halves run side by side. A half that
# takes longer than this has a test that should be smaller under cfg(miri).
PATIENCE=${PATIENCE:-600}
miri() { rustup run "$MIRI_TOOLCHAIN" cargo miri test --quiet --locked --lib "$@"; }
say "miri: heapwright-record"
miri -p heapwright-record

say "miri: heapwright"
miri -p heapwright --no-run
half() { # NAME FILTERS...
    local name=$1 code=0
    shift
    timeout "$PATIENCE" rustup run "$MIRI_TOOLCHAIN" cargo miri test --quiet --locked --lib -p heapwright -- \
        --skip slow_ --format=pretty "$@" >"$SCRATCH/$name" 2>&1 || code=$?
    [ $code -eq 124 ] && echo "timed out after $PATIENCE s; the last line names no result" >>"$SCRATCH/$name"
    return $code
}
status=0
half chunk chunk:: & first=$!
half rest --skip chunk:: & second=$!
wait $first || status=1
wait $second || status=1
grep -hE '^test ' "$SCRATCH/chunk" "$SCRATCH/rest"
[ $status -eq 0 ] || { tail -n 40 "$SCRATCH/chunk" "$SCRATCH/rest"; exit 1; }
