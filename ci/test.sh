#!/usr/bin/env bash
# Builds the libraries and the launcher as they are shipped, then runs the workspace's tests: unit, property and
# conformance tests, and examples in the documentation.
#
#   ci/test.sh                 all
#   ci/test.sh models          those of malloc's suite that depend on the cache model, with shared and per-CPU caches
#   ci/test.sh WORDS...        `cargo test WORDS...` with these libraries
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup test

# In CI tests of limits may change how the machine accounts memory, for seconds.
[ -z "${CI:-}" ] || export HEAPWRIGHT_TEST_OVERCOMMIT=1
all_libraries
HEAPWRIGHT_TEST_LIBRARY=$(dirname "$HEAPWRIGHT_SO")
export HEAPWRIGHT_TEST_LIBRARY
if [ -z "${HEAPWRIGHT_EMBED_LIBRARY:-}" ]; then
    as_shipped cargo build --quiet --release --locked -p heapwright-launcher
    export HEAPWRIGHT_EMBED_LIBRARY=$HEAPWRIGHT_SO HEAPWRIGHT_EMBED_LAUNCHER=$CARGO_TARGET_DIR/release/heapwright-launcher
    export HEAPWRIGHT_EMBED_CHECK_LIBRARY=$HEAPWRIGHT_CHECK_SO
fi
[ $# -eq 0 ] || [ "$*" = models ] || exec cargo test --locked --no-fail-fast "$@"

status=0
run() { say "test $*"; cargo test --locked --no-fail-fast "$@"; }
# Runs tests of malloc's suite that depend on the model. (shared:2: threads must meet. tests/caches.rs tries others.)
under() { # MODEL
    local status=0
    export HEAPWRIGHT_TEST_CACHE=$1
    say "cache=$1"
    run --quiet -p heapwright-malloc --test api --test cxx --test dlopen --test fork --test lifetime --test statistics --test threads || status=$?
    run --quiet -p heapwright-malloc --test surroundings -- limit_itself refuse_guards sandbox small_stack || status=$?
    return $status
}
# (The models run one after the other, because their tests write the same files.)
if [ "$*" = models ]; then
    for model in shared:2 percpu; do under $model || status=$?; done
    exit $status
fi

# (Link-time optimisation takes longer than the tests.)
CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_DEBUG=0 \
    cargo build --quiet --release --locked -p heapwright-malloc --features observe --target-dir "$CARGO_TARGET_DIR/observe"
export HEAPWRIGHT_TEST_OBSERVING_LIBRARY=$CARGO_TARGET_DIR/observe/release

# `both A B` runs two parts at once, because many tests wait. The output of A comes when B has ended.
both() {
    "$1" >"$SCRATCH/first" 2>&1 &
    "$2" || status=$?
    wait $! || status=$?
    cat "$SCRATCH/first"
}
OTHERS=(--workspace --exclude heapwright --exclude heapwright-gc --exclude heapwright-realm --exclude heapwright-stacks --exclude heapwright-substrate)
# `checked` changes the work of pools, so it is built apart.
library() {
    local status=0
    run "${LIBRARY[@]}" "${ALL[@]}" || status=$?
    run --quiet -p heapwright --features checked --test checked_pools || status=$?
    run --quiet -p heapwright --features checked --lib -- pool:: arena:: 2>"$SCRATCH/reports" || status=$?
    grep -v 'ended with' "$SCRATCH/reports" || true
    return $status
}
others() { run "${OTHERS[@]}"; }
cargo test --locked --no-run --quiet "${LIBRARY[@]}" "${ALL[@]}" || status=$?
cargo test --locked --no-run --quiet "${OTHERS[@]}" || status=$?
both library others
exit $status
