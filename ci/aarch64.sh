#!/usr/bin/env bash
# Tests aarch64. The libraries, the launcher and the command compile. The unit tests of the library's crates run under
# qemu-user; programs of the tests and the race's workloads in miniature also run under the preload, with pages of 4, 16
# and 64 KiB. qemu-user lacks restartable sequences, so per-CPU caches run in a small system, too (ci/common.sh). And
# qemu-user keeps 24 bytes for each page that a guest reserves: 6 GiB for a window of 1 TiB. So its runs have a small
# window, except two with few addresses (39 bits, 1 GiB).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup aarch64

TARGET=aarch64-unknown-linux-gnu
SYSROOT=/usr/aarch64-linux-gnu
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
QEMU="qemu-aarch64 -L $SYSROOT"
SMALL_WINDOW=window=4g

say "compile for $TARGET"
as_shipped cargo build --quiet --locked --release -p heapwright-malloc --target $TARGET
built=$CARGO_TARGET_DIR/$TARGET/release
as_shipped cargo build --quiet --locked --release -p heapwright-launcher --target $TARGET
for package in heapwright-hardened heapwright-check; do as_shipped cargo build --quiet --locked --release -p $package --target $TARGET; done
HEAPWRIGHT_EMBED_LIBRARY=$built/libheapwright.so HEAPWRIGHT_EMBED_LAUNCHER=$built/heapwright-launcher \
    HEAPWRIGHT_EMBED_CHECK_LIBRARY=$built/libheapwright_check.so cargo check --quiet --locked -p heapwright-cli --target $TARGET

say "the core's unit tests"
export PROPTEST_CASES=${PROPTEST_CASES:-16}
unit_tests() { # PACKAGE...
    local package
    for package in "$@"; do
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=$QEMU HEAPWRIGHT_TEST_RUNNER=$QEMU HEAPWRIGHT=$SMALL_WINDOW \
            timeout 1200 cargo test --quiet --locked -p "$package" --lib --target $TARGET
    done
}
unit_tests heapwright-record heapwright-substrate heapwright-stacks heapwright-gc heapwright-realm heapwright

say "programs under the preload"
failures=0
row() { # NAME COMMAND...: the command ends well
    if "${@:2}" >"$SCRATCH/out" 2>&1 </dev/null; then say "ok   $1"; return; fi
    say "FAIL $1"
    tail -n 12 "$SCRATCH/out" | sed 's/^/     /'
    failures=$((failures + 1))
}
# malloc_suites OPTIONS EMULATOR-WORDS...: one of this system's tests, with its program built for aarch64.
malloc_suites() {
    timeout 1200 env CC=aarch64-linux-gnu-gcc HEAPWRIGHT_TEST_LIBRARY="$built" EMULATOR_KIB=$((64 << 10)) HEAPWRIGHT_TEST_MODE="$1" \
        HEAPWRIGHT_TEST_RUNNER="qemu-aarch64 ${*:2} -L $SYSROOT" \
        cargo test --quiet --locked -p heapwright-malloc --test threads -- destructors_of_keys
}
workloads() { # PAGES
    timeout 1200 env HEAPWRIGHT=$SMALL_WINDOW CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -p $1 -L $SYSROOT -E LD_PRELOAD=$built/libheapwright.so" \
        cargo test --quiet --locked -p heapwright-workloads --lib --target $TARGET -- every_miniature
}
aarch64-linux-gnu-gcc -std=gnu11 -O1 -w -pthread -fno-builtin -Iinclude -o "$SCRATCH/thread_keys" crates/heapwright-malloc/tests/programs/thread_keys.c
aarch64-linux-gnu-gcc -std=gnu11 -O1 -w -pthread -fno-builtin -o "$SCRATCH/tight" crates/heapwright-malloc/tests/programs/tight.c
for pages in 4096 16384 65536; do
    for options in fast debug hardened fast,cache=shared:2 fast,cache=percpu; do
        row "pages of $pages, mode=$options" malloc_suites $options,$SMALL_WINDOW -p $pages
    done
    row "pages of $pages: workloads" workloads $pages
    for library in hardened check; do
        row "pages of $pages, libheapwright-$library.so" timeout 1200 env HEAPWRIGHT=$SMALL_WINDOW $QEMU -p $pages \
            -E LD_PRELOAD="$built/libheapwright_$library.so" "$SCRATCH/thread_keys"
    done
done
row "39-bit addresses, the default window" malloc_suites fast -R 0x8000000000
row "used up and back, 1 GiB of addresses" timeout 1200 $QEMU -R 0x40000000 -E LD_PRELOAD="$built/libheapwright.so" "$SCRATCH/tight" mixed

say "restartable sequences, on a kernel that has them"
system_begin
for file in ld-linux-aarch64.so.1 libc.so.6 libgcc_s.so.1; do system_file "$SYSROOT/lib/$file" lib/$file; done
system_file "$built/libheapwright.so" lib/libheapwright.so
for program in thread_keys caches_wander caches_signals caches_fork caches_hand_over thread_detached; do
    aarch64-linux-gnu-gcc -std=gnu11 -O1 -w -pthread -fno-builtin -Iinclude -o "$SCRATCH/$program" \
        crates/heapwright-malloc/tests/programs/$program.c
    system_file "$SCRATCH/$program" bin/$program
done
# in_system NAME OPTIONS COMMAND...
in_system() { system_row "$1" "LD_PRELOAD=/lib/libheapwright.so HEAPWRIGHT=$2" "/bin/$3"; }
for options in mode=fast mode=debug mode=hardened; do in_system "threads, $options" $options thread_keys; done
in_system "per CPU: threads" cache=percpu,stats=exit thread_keys
in_system "per CPU: moved between CPUs" cache=percpu "caches_wander 1"
in_system "per CPU: signals" cache=percpu "caches_signals all 2 1"
in_system "per CPU: detached threads" cache=percpu thread_detached
in_system "per CPU: forks" cache=percpu "caches_fork 1"
in_system "handing over" cache=auto "caches_hand_over 3 shares"
system_run
grep -Eq 'rseq commits +[1-9]' "$SYSTEM_LOG" || { say "FAIL no sequence was committed"; failures=$((failures + 1)); }

[[ $($QEMU -E LD_PRELOAD="$built/libheapwright.so" -E LD_TRACE_LOADED_OBJECTS=1 "$SCRATCH/tight") == *"$built/libheapwright.so"* ]] ||
    { say "FAIL the preload did not take effect under qemu"; failures=$((failures + 1)); }
[ $failures -eq 0 ] || die "$failures rows failed"
say "all rows hold"
