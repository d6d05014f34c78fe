#!/usr/bin/env bash
# Formatting: rustfmt, of the workspace and of the benchmarks' own.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt
cargo fmt --all --check
cargo fmt --all --check --manifest-path bench/Cargo.toml -- --config-path "$ROOT"
say "formatted"
