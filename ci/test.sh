#!/usr/bin/env bash
# All tests: builds the preload library alone, as it is shipped, then runs the
# workspace's tests, unit, property, conformance programs and examples in the
# documentation. malloc's suite runs once for each cache model.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

command_or_package cc gcc
command_or_package c++ g++
preload_library
# All of them, even after a failure: the list is worth more than the first.
status=0
cargo test --locked --workspace --no-fail-fast "$@" || status=$?
[ $# -eq 0 ] || exit $status
# malloc's suite again where threads share caches, with the library that is there. (Two
# caches: fewer than threads, so that they meet; tests/caches.rs tries other numbers.)
for model in shared:2 percpu; do
    say "cache=$model"
    HEAPWRIGHT_TEST_CACHE=$model HEAPWRIGHT_TEST_LIBRARY=$(dirname "$HEAPWRIGHT_SO") \
        cargo test --quiet --locked -p heapwright-malloc --no-fail-fast || status=$?
done
# What features add or change.
cargo test --quiet --locked -p heapwright --features allocator-api2-02,allocator-api2-04 \
    --test allocator_api2 || status=$?
cargo test --quiet --locked -p heapwright --features lookups --lib debug::lookup:: || status=$?
cargo test --quiet --locked -p heapwright --features debug,allocator-api2-02,allocator-api2-04 \
    --test debug_global --test debug_check --test allocator_api2 || status=$?
cargo test --quiet --locked -p heapwright --features checked --test checked_pools || status=$?
cargo test --quiet --locked -p heapwright --features checked --lib -- pool:: arena:: 2>"$SCRATCH/reports" ||
    { status=$?; grep -v 'ended with' "$SCRATCH/reports" >&2; }
cargo test --quiet --locked -p heapwright --features derive,std --test realm || status=$?
cargo test --quiet --locked -p heapwright --features derive,std --doc -- gc:: || status=$?
# The debug heap: its own tests, its examples, and programs that have it as their
# global allocator.
cargo test --quiet --locked -p heapwright --features debug --lib -- debug:: stacks:: options:: || status=$?
cargo test --quiet --locked -p heapwright --features debug --doc || status=$?
exit $status
