#!/usr/bin/env bash
# Fuzzing, for a bounded time a target: sequences of operations against a model,
# right and wrong ones on debug heaps, and any bytes as a stats file and as a
# debug record, a trace or a heap dump. FUZZ_SECONDS sets the time
# (default 40).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

FUZZ_TOOLCHAIN=${FUZZ_TOOLCHAIN:-nightly}
rustup run "$FUZZ_TOOLCHAIN" rustc --version >/dev/null 2>&1 ||
    rustup toolchain install "$FUZZ_TOOLCHAIN" --profile minimal
command_or_package c++ g++
if ! command -v cargo-fuzz >/dev/null; then
    [ -x "$CARGO_TARGET_DIR/tools/bin/cargo-fuzz" ] ||
        cargo install --quiet --locked --debug --root "$CARGO_TARGET_DIR/tools" \
            --target-dir "$CARGO_TARGET_DIR/tools/build" cargo-fuzz
    PATH=$CARGO_TARGET_DIR/tools/bin:$PATH
fi

export CARGO_TARGET_DIR=$CARGO_TARGET_DIR/fuzz
for target in operations debug_heap record debug_record trace heap_dump; do
    say "fuzz: $target"
    mkdir -p "$SCRATCH/$target"
    # The corpus lives for this run only; a crash is printed, with its input.
    rustup run "$FUZZ_TOOLCHAIN" cargo fuzz run --sanitizer none "$target" "$SCRATCH/$target" -- \
        -max_total_time="${FUZZ_SECONDS:-40}" -max_len=4096 -rss_limit_mb=4096 -print_final_stats=1 \
        >"$SCRATCH/$target.log" 2>&1 || { tail -n 40 "$SCRATCH/$target.log"; die "$target found something"; }
    grep -E 'stat::number_of_executed_units' "$SCRATCH/$target.log"
done
