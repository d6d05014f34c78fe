#!/usr/bin/env bash
# Clippy with every warning an error: the workspace with its tests, the library with all features; then each crate and each feature
# alone and with none, where a name that another feature or crate brings would be missing, the C library as it is shipped, and the
# benchmarks. HEAPWRIGHT_SLICE takes a sixth of what is alone.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cargo clippy --version >/dev/null 2>&1 || rustup component add clippy
clippy() { say "clippy $*"; cargo clippy --quiet --locked "$@" -- -D warnings; }
clippy --workspace --all-targets
clippy -p heapwright --all-targets --features allocator-api2-02,allocator-api2-03,allocator-api2-04,debug,derive,std,observe,symbols

number=0
# alone WORDS...: in one slice of six.
alone() {
    number=$((number + 1))
    ! in_slice $number || clippy "$@"
}
BENCH=(--manifest-path bench/Cargo.toml --target-dir "$CARGO_TARGET_DIR/bench")
alone "${BENCH[@]}" --workspace --all-targets
alone -p heapwright --all-targets --features checked
alone "${BENCH[@]}" -p policies --features schedules --bin schedules
for features in allocator-api2-02 allocator-api2-03 allocator-api2-04 debug derive,std observe symbols; do
    alone -p heapwright --features $features
done
alone -p heapwright --no-default-features
alone -p heapwright-gc --all-targets
alone -p heapwright-gc --all-targets --features derive,std
alone -p heapwright-stacks --all-targets
alone -p heapwright-substrate --all-targets
alone -p heapwright-substrate --all-targets --features debug,testing
alone -p heapwright-malloc
alone -p heapwright-malloc --features observe
alone -p heapwright-hardened --all-targets
alone -p heapwright-check --all-targets
