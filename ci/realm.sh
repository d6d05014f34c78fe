#!/usr/bin/env bash
# The safe door of the collected heap (heapwright::gc::Realm) measured beside other ways to
# share values in safe Rust: gc-arena, gc, dumpster, Rc and Box, on the loads of bench/realm.
# Tables of medians, then what was asked, measured and found.
#
#   ci/realm.sh [options of bench/realm]
#   ci/realm.sh --only splay --rounds 9
#   ci/realm.sh --quick        seconds: only that all runs, and computes the same
#   ci/realm.sh collections [--quick]      a realm's collections beside std's with Rc
#
# The peers run in turns, each once a round in a process of its own; 5 rounds take about four
# minutes and want a quiet machine; .ci/run takes --quick. Ends with 1 if a run fails
# or computes something else, with --strict also if a figure is missed. --help lists
# the options.
#
# One run alone, for a profiler (after it was built, in the target folder):
#
#   perf record bench/release/realm run splay heapwright size=8000
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Alone: with others, Cargo would unite heapwright's features, and measure another one.
cargo build --quiet --release --locked --manifest-path bench/Cargo.toml \
    --target-dir "$CARGO_TARGET_DIR/bench" -p realm

if [ "${1:-}" = collections ]; then
    shift
    exec "$CARGO_TARGET_DIR/bench/release/collections" "$@"
fi
if [ "${1:-}" = --quick ]; then "$CARGO_TARGET_DIR/bench/release/collections" --quick; fi
"$CARGO_TARGET_DIR/bench/release/realm" "$@"
