#!/usr/bin/env bash
# The minimum supported Rust version, read from Cargo.toml: the workspace and
# the C library alone compile with it.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

version=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
[ -n "$version" ] || die "Cargo.toml states no rust-version"
rustup run "$version" rustc --version 2>/dev/null || rustup toolchain install "$version" --profile minimal
export CARGO_TARGET_DIR=$CARGO_TARGET_DIR/msrv
rustup run "$version" cargo check --quiet --locked --workspace
rustup run "$version" cargo check --quiet --locked -p heapwright --features allocator-api2-02,allocator-api2-03,allocator-api2-04,derive,std
say "compiles with Rust $version"
