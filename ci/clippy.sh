#!/usr/bin/env bash
# Clippy with every warning an error: the workspace with its tests, the core
# with each feature alone (in CI one or two of them in a slice) and with none, the C library alone
# (as it is shipped), and the benchmarks.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cargo clippy --version >/dev/null 2>&1 || rustup component add clippy
clippy() { say "clippy $*"; cargo clippy --quiet --locked "$@" -- -D warnings; }
clippy --workspace --all-targets
# Every target with all features; then the library alone with each one, where a name that another
# feature brings would be missing.
clippy -p heapwright --all-targets --features allocator-api2-02,allocator-api2-03,allocator-api2-04,debug,derive,std,observe,symbols
clippy -p heapwright --all-targets --features checked
clippy -p heapwright --no-default-features
FEATURES=(allocator-api2-02 allocator-api2-03 allocator-api2-04 debug derive,std observe symbols)
for at in "${!FEATURES[@]}"; do
    in_slice "$at" || continue
    clippy -p heapwright --features "${FEATURES[$at]}"
done
clippy -p heapwright-gc --all-targets
clippy -p heapwright-gc --all-targets --features derive,std
clippy -p heapwright-stacks --all-targets
clippy -p heapwright-substrate --all-targets
clippy -p heapwright-substrate --all-targets --features debug,testing
clippy -p heapwright-malloc
clippy -p heapwright-malloc --features observe
clippy -p heapwright-hardened --all-targets
clippy -p heapwright-check --all-targets
bench=(--manifest-path bench/Cargo.toml --target-dir "$CARGO_TARGET_DIR/bench")
# (The tests in what `schedules` includes of the library are loom's, which it has not.)
clippy "${bench[@]}" --workspace --exclude schedules --all-targets
clippy "${bench[@]}" -p schedules
