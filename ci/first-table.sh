#!/usr/bin/env bash
# The first table: time and peak memory of a few programs under glibc,
# heapwright, mimalloc v3 and snmalloc (docs/benchmarks.md says how to read it).
# Arguments go to the program: --pairs N, --only A,B, --json FILE, --list.
# Not part of .ci/run: it needs a quiet machine.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

command_or_package cc gcc
command_or_package c++ g++
command_or_package sqlite3 sqlite3
preload_library
cargo run --quiet --release --locked --manifest-path bench/Cargo.toml -p first-table \
    --target-dir "$CARGO_TARGET_DIR/bench" -- --heapwright "$HEAPWRIGHT_SO" "$@"
