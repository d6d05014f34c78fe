#!/usr/bin/env bash
# aarch64: everything compiles for it; the core's unit tests, small programs and
# the race's workloads in miniature run on it, under the preload library and
# qemu-user, with 4, 16 and 64 KiB pages and with an address space of 39 bits.
# What they print must be the same as without the library. HEAPWRIGHT_SLICE takes the unit tests
# of half of the crates, and half of the workloads.
#
# qemu-user has no restartable sequences: those of per-CPU caches run in a small system under qemu-system (ci/common.sh).
#
# qemu-user keeps 24 bytes for each page a guest reserves, so a window of 1 TiB
# would cost it 6 GiB of our memory: the window is made small for it. One run
# keeps the default window and lets 39 bits cut it down.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

TARGET=aarch64-unknown-linux-gnu
SYSROOT=/usr/aarch64-linux-gnu
packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
# (No `grep -q` behind a pipe: it may end the writer early, and pipefail would
# call that a failure.)
[[ $(rustup target list --installed) == *$TARGET* ]] || rustup target add $TARGET

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
QEMU="qemu-aarch64 -L $SYSROOT"
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="$QEMU"
export HEAPWRIGHT_TEST_RUNNER="$QEMU" # for the children of tests
SMALL_WINDOW=window=4g

say "compile for $TARGET"
as_shipped cargo build --quiet --locked --release -p heapwright-malloc --target $TARGET
SO=$CARGO_TARGET_DIR/$TARGET/release/libheapwright.so
as_shipped cargo build --quiet --locked --release -p heapwright-launcher --target $TARGET
# (As .ci/run builds tools, unless all is run: the two are of the same crates, which are compiled once then.)
for package in heapwright-hardened heapwright-check; do
    BUILD=(cargo build --quiet --locked --release -p $package --target $TARGET)
    if [ "$SLICE" = all ]; then as_shipped "${BUILD[@]}"; else "${BUILD[@]}"; fi
done
# The command carries these. It has the workloads in it. Not optimised: miniatures need no speed.
HEAPWRIGHT_EMBED_LIBRARY=$SO HEAPWRIGHT_EMBED_LAUNCHER=$CARGO_TARGET_DIR/$TARGET/release/heapwright-launcher \
    HEAPWRIGHT_EMBED_CHECK_LIBRARY=$CARGO_TARGET_DIR/$TARGET/release/libheapwright_check.so \
    cargo build --quiet --locked -p heapwright-cli --target $TARGET
COMMAND=$CARGO_TARGET_DIR/$TARGET/debug/heapwright

say "the core's unit tests"
export PROPTEST_CASES=${PROPTEST_CASES:-16}
unit_tests() { # PACKAGE...
    local package
    for package in "$@"; do
        HEAPWRIGHT=$SMALL_WINDOW timeout 1200 cargo test --quiet --locked -p "$package" --lib --target $TARGET
    done
}
if in_half 0; then unit_tests heapwright-record heapwright-substrate heapwright-stacks; fi
if in_half 1; then unit_tests heapwright-gc heapwright-realm heapwright; fi

aarch64-linux-gnu-gcc -O2 -pthread -o "$SCRATCH/limits" ci/limits.c
WORKLOADS=(random-400k large realloc larson xmalloc mstress)

failures=0
row() { # NAME OPTIONS QEMU-OPTIONS COMMAND...
    local name=$1 options=$2 qemu=$3 code=0 plain
    shift 3
    # What a program prints by itself is the same whatever its pages: it is run once. (Not with another range of addresses, where it
    # may fail by itself.)
    plain=$SCRATCH/plain.$(tr -c 'a-z0-9\n' _ <<<"${1##*/} ${*:2} ${qemu#-p *}")
    if [ ! -e "$plain.status" ]; then
        # shellcheck disable=SC2086 # the options are words
        timeout 120 $QEMU $qemu "$@" >"$plain" 2>&1 </dev/null || code=$?
        echo $code >"$plain.status"
        code=0
    fi
    if [ "$(cat "$plain.status")" -ne 0 ]; then
        printf 'skip %-44s fails without the preload too (status %d)\n' "$name" "$(cat "$plain.status")"
        return
    fi
    # (HEAPWRIGHT by qemu's own variables, which it hands on: a comma ends what -E sets.)
    # shellcheck disable=SC2086
    HEAPWRIGHT="$options" timeout 120 $QEMU $qemu -E LD_PRELOAD="${PRELOADED:-$SO}" "$@" >"$SCRATCH/with" 2>&1 </dev/null || code=$?
    if [ $code -eq 0 ] && cmp -s "$plain" "$SCRATCH/with"; then
        printf 'ok   %s\n' "$name"
    else
        printf 'FAIL %s (status %d)\n' "$name" $code
        tail -5 "$SCRATCH/with" | sed 's/^/     /'
        failures=$((failures + 1))
    fi
}
say "programs under the preload"
number=0
for pages in 4096 16384 65536; do
    row "pages of $pages: threads" $SMALL_WINDOW "-p $pages" "$SCRATCH/limits" work
    for workload in "${WORKLOADS[@]}"; do
        number=$((number + 1))
        in_half $number || continue
        row "pages of $pages: $workload" $SMALL_WINDOW "-p $pages" "$COMMAND" workload "$workload" --scale 0
    done
done
for options in mode=debug mode=hardened cache=shared:2 cache=percpu; do
    for pages in 4096 16384 65536; do
        number=$((number + 1))
        in_half $number || continue
        row "pages of $pages, $options: threads" "$options,$SMALL_WINDOW" "-p $pages" "$SCRATCH/limits" work
    done
done
# With bounds in the C library's functions.
for library in hardened check; do
    for pages in 4096 16384 65536; do
        number=$((number + 1))
        in_half $number || continue
        PRELOADED=${SO%.so}_$library.so row "pages of $pages, libheapwright-$library.so: threads" $SMALL_WINDOW "-p $pages" "$SCRATCH/limits" work
    done
done
for workload in "${WORKLOADS[@]}"; do
    number=$((number + 1))
    in_half $number || continue
    row "debug heap: $workload" "mode=debug,$SMALL_WINDOW" "" "$COMMAND" workload "$workload" --scale 0
done
row "39-bit addresses, the default window" "" "-R 0x8000000000" "$SCRATCH/limits" work
row "used up and back, 1 GiB of addresses" "" "-R 0x40000000" "$SCRATCH/limits" exhaust

say "restartable sequences, on a kernel that has them"
system_begin
for file in ld-linux-aarch64.so.1 libc.so.6; do system_file "$SYSROOT/lib/$file" lib/$file; done
system_file "$SO" lib/libheapwright.so
system_file "$SCRATCH/limits" bin/limits
# in_system NAME OPTIONS COMMAND...
in_system() { system_row "$1" "LD_PRELOAD=/lib/libheapwright.so HEAPWRIGHT=$2" "/bin/$3"; }
for program in caches_wander caches_signals caches_fork caches_hand_over thread_detached; do
    aarch64-linux-gnu-gcc -std=gnu11 -O1 -w -pthread -fno-builtin -Iinclude -o "$SCRATCH/$program" \
        crates/heapwright-malloc/tests/programs/$program.c
    system_file "$SCRATCH/$program" bin/$program
done
for options in mode=fast mode=debug mode=hardened; do in_system "threads, $options" $options "limits work"; done
in_system "per CPU: threads" cache=percpu,stats=exit "limits work"
in_system "per CPU: moved between CPUs" cache=percpu "caches_wander 1"
in_system "per CPU: signals" cache=percpu "caches_signals all 2 1"
in_system "per CPU: detached threads" cache=percpu thread_detached
# (Minutes, under an emulator.)
if [ "$SLICE" = all ]; then
    in_system "per CPU: forks" cache=percpu "caches_fork 1"
    in_system "handing over" cache=auto "caches_hand_over 3 shares"
fi
system_run
grep -Eq 'rseq commits +[1-9]' "$SYSTEM_LOG" || { say "FAIL no sequence was committed"; failures=$((failures + 1)); }

# The library must be what answers, or the rows prove nothing.
for program in "$SCRATCH/limits" "$COMMAND"; do
    found=$($QEMU -E LD_PRELOAD="$SO" -E LD_TRACE_LOADED_OBJECTS=1 "$program" | grep -cF "$SO" || true)
    [ "$found" -ge 1 ] || { say "FAIL the preload did not take effect under qemu in $program"; failures=$((failures + 1)); }
done
[ $failures -eq 0 ] || die "$failures rows failed"
say "all rows hold"
