#!/usr/bin/env bash
# Fuzzes each target for a bounded time.
#
#   ci/fuzz.sh      fuzz/fuzz_targets, with a nightly compiler: sequences of operations against a model; right and wrong
#                   sequences on debug heaps; any bytes as a stats file, a debug record, a trace or a heap dump, with
#                   bombs among them. A target gets FUZZ_SECONDS (40; with HEAPWRIGHT_QUICK 10)
#   ci/fuzz.sh gc   fuzz/gc.c, with clang: calls of the collected heap's C interface under AddressSanitizer, for
#                   GC_FUZZ_SECONDS (120; 40). Without the write barrier it must find something
#
# The first has flags as `cargo fuzz` gives them, but no sanitizer, and needs only a nightly compiler.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# fuzz PROGRAM SECONDS FLAGS...: returns 1 if it finds something; the log has a crash, with its input. A deadlock is a
# finding. The corpus (the folder with PROGRAM's name) lives for this run only.
fuzz() {
    local name=${1##*/}
    mkdir -p "$SCRATCH/$name.corpus"
    (cd "$SCRATCH" && "$1" "$name.corpus" -max_total_time="$2" -timeout=60 -print_final_stats=1 "${@:3}") >"$SCRATCH/log" 2>&1 || return 1
    # A build without counters would be no fuzzer.
    grep -q 'inline 8-bit counters' "$SCRATCH/log" || { cat "$SCRATCH/log"; die "$name is built without coverage"; }
    say "fuzz: $name: $(grep stat::number_of_executed_units "$SCRATCH/log")"
}
found() { tail -n 60 "$SCRATCH/log"; die "$1 found something"; }

fuzz_targets() {
    local target targets=(operations debug_heap record debug_record trace heap_dump) triple memory toolchain=${FUZZ_TOOLCHAIN:-nightly} flags
    setup fuzz
    export CARGO_TARGET_DIR=$CARGO_TARGET_DIR/fuzz
    triple=$(rustc -vV | sed -n 's/^host: //p')
    # Debug assertions stay, because a fuzzer notices much by them. (With --target, build scripts lack these flags.)
    flags=(--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
        -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions)
    RUSTFLAGS=${flags[*]} rustup run "$toolchain" cargo build --quiet --release --locked \
        --manifest-path fuzz/Cargo.toml --target "$triple" "${targets[@]/#/--bin=}"
    for target in "${targets[@]}"; do
        # No file costs a reader much more memory than the file's bytes, nor seconds. (4 KiB of input make 1 MiB.)
        memory=512
        case $target in operations | debug_heap) memory=4096 ;; esac
        fuzz "$CARGO_TARGET_DIR/$triple/release/$target" "${FUZZ_SECONDS:-$(is_quick && echo 10 || echo 40)}" -max_len=4096 -rss_limit_mb=$memory || found "$target"
    done
}

# The program uses the sanitizer's malloc. The library clears memory with the C library's memset, which the sanitizer
# must not take for an access of the program (replace_intrin=0).
fuzz_gc() {
    local folder seed name
    setup fuzz-gc
    preload_library
    folder=$(dirname "$HEAPWRIGHT_SO")
    export ASAN_OPTIONS=detect_leaks=0:abort_on_error=0:handle_abort=1:replace_intrin=0
    for name in gc gc-without-barrier; do
        clang -g -O1 -fsanitize=fuzzer,address -pthread -Wall -Wextra -Iinclude $([ $name = gc ] || echo -DWITHOUT_BARRIER) \
            -o "$SCRATCH/$name" fuzz/gc.c -L"$folder" -lheapwright -Wl,-rpath,"$folder"
        mkdir "$SCRATCH/$name.corpus"
        for seed in 1 2 3 4 5 6 7 8; do head -c 2048 /dev/urandom >"$SCRATCH/$name.corpus/$seed"; done
    done
    local options=(-max_len=2048 -len_control=0 -rss_limit_mb=4096)
    fuzz "$SCRATCH/gc" "${GC_FUZZ_SECONDS:-$(is_quick && echo 40 || echo 120)}" "${options[@]}" || found "the collected heap's interface"
    if fuzz "$SCRATCH/gc-without-barrier" 60 "${options[@]}"; then die "an unreported store was not noticed"; fi
    say "ok   without the write barrier something is found"
}

case ${1:-targets} in
    targets | gc) "fuzz_${1:-targets}" ;;
    *) die "usage: ci/fuzz.sh [gc]" ;;
esac
