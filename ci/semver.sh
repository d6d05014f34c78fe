#!/usr/bin/env bash
# Whether the crate heapwright keeps what the last release promised (UPGRADING.md), by cargo-semver-checks.
#
#   ci/semver.sh [BASELINE]     a tag or commit; default: the newest tag v*
#
# Not part of .ci/run: building the tool takes longer than all the rest. Where it is not installed, or there was no release, this says so.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

baseline=${1:-$(git tag --list 'v*' --sort=-version:refname | head -n 1)}
[ -n "$baseline" ] || { say "NOT ASKED: there is no release yet to compare with"; exit 0; }
cargo semver-checks --version >/dev/null 2>&1 ||
    { say "NOT ASKED: cargo-semver-checks is not installed (cargo install --locked cargo-semver-checks --version ^0.51)"; exit 0; }
cargo semver-checks --package heapwright --baseline-rev "$baseline" --only-explicit-features \
    --features allocator-api2-02,allocator-api2-03,allocator-api2-04,checked,debug,derive,std
