#!/usr/bin/env bash
# All tests: builds the preload library alone, as it is shipped, then runs the
# workspace's tests, unit, property, conformance programs and examples in the
# documentation.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

command_or_package cc gcc
command_or_package c++ g++
preload_library
# All of them, even after a failure: the list is worth more than the first.
cargo test --locked --workspace --no-fail-fast "$@"
