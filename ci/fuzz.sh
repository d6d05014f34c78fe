#!/usr/bin/env bash
# Fuzzing, for a bounded time a target: sequences of operations against a model,
# right and wrong ones on debug heaps, and any bytes as a stats file and as a
# debug record, a trace or a heap dump, bombs among them. FUZZ_SECONDS sets the time
# (default 40). HEAPWRIGHT_SLICE takes half of the targets.
#
# The flags are those that `cargo fuzz` gives the compiler (without a sanitizer): coverage
# counters, and what is compared. So nothing has to be installed but a nightly compiler.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

FUZZ_TOOLCHAIN=${FUZZ_TOOLCHAIN:-nightly}
rustup run "$FUZZ_TOOLCHAIN" rustc --version >/dev/null 2>&1 ||
    rustup toolchain install "$FUZZ_TOOLCHAIN" --profile minimal
command_or_package c++ g++

targets=() number=0
for target in operations debug_heap record debug_record trace heap_dump; do
    ! in_half $number || targets+=("$target")
    number=$((number + 1))
done

export CARGO_TARGET_DIR=$CARGO_TARGET_DIR/fuzz
TRIPLE=$(rustc -vV | sed -n 's/^host: //p')
# Debug assertions stay: they are half of what a fuzzer can notice. (With --target, build scripts
# are built without these flags.)
flags=(--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions)
RUSTFLAGS=${flags[*]} rustup run "$FUZZ_TOOLCHAIN" cargo build --quiet --release --locked \
    --manifest-path fuzz/Cargo.toml --target "$TRIPLE" "${targets[@]/#/--bin=}"
for target in "${targets[@]}"; do
    say "fuzz: $target"
    # No file costs a reader much more than its own bytes, or seconds. (4 KiB of input make 1 MiB.)
    memory=4096
    case $target in record | debug_record | trace | heap_dump) memory=512 ;; esac
    mkdir -p "$SCRATCH/$target"
    # The corpus lives for this run only; a crash is printed, with its input.
    (cd "$SCRATCH" && "$CARGO_TARGET_DIR/$TRIPLE/release/$target" "$SCRATCH/$target" \
        -max_total_time="${FUZZ_SECONDS:-40}" -max_len=4096 -rss_limit_mb=$memory -timeout=60 -print_final_stats=1) \
        >"$SCRATCH/$target.log" 2>&1 || { tail -n 40 "$SCRATCH/$target.log"; die "$target found something"; }
    # A build without counters would be no fuzzer.
    grep -q 'inline 8-bit counters' "$SCRATCH/$target.log" || { tail -n 40 "$SCRATCH/$target.log"; die "$target is built without coverage"; }
    grep -E 'stat::number_of_executed_units' "$SCRATCH/$target.log"
done
