#!/usr/bin/env bash
# Tests systems without a back end of our own (macOS, Windows, FreeBSD): the library's crates compile for them without a
# warning, with their features for stable Rust. Pools, arenas, realms and the debug wrappers use os/portable there.
#
#   ci/portable.sh            compiles (a minute). Linking would need a system's own tools
#   ci/portable.sh --run      also runs the tests, for minutes: for Windows under wine, for RISC-V under qemu-user. On
#                             a system itself .github/workflows/portable.yml runs them
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

TARGETS=(x86_64-apple-darwin aarch64-apple-darwin x86_64-pc-windows-msvc x86_64-pc-windows-gnu x86_64-unknown-freebsd)
LIBRARIES=(-p heapwright -p heapwright-gc -p heapwright-realm -p heapwright-substrate)
FEATURES=heapwright/allocator-api2-02,heapwright/allocator-api2-03,heapwright/allocator-api2-04,heapwright/debug,heapwright/derive,heapwright/std,heapwright-realm/derive,heapwright-realm/std
# Tests for every system: the unit tests, and tests of programs.
TESTS=(--lib --test anywhere --test realm --test collections --test realm_threads --test allocator_api2 --test debug_global --test allocations)

# The hosted machines must run the same tests: one line of the workflow for macOS and Windows, one for FreeBSD.
lines=$(grep -cF -- "cargo test --locked --no-fail-fast ${TESTS[*]} ${LIBRARIES[*]} --features $FEATURES" .github/workflows/portable.yml || true)
[ "$lines" -eq 2 ] || die ".github/workflows/portable.yml runs other tests than these: ${TESTS[*]} ${LIBRARIES[*]} --features $FEATURES"

installed=$(rustup target list --installed)
for target in "${TARGETS[@]}"; do
    [[ $installed == *$target* ]] || rustup target add "$target" 2>"$SCRATCH/said" || { cat "$SCRATCH/said"; die "no Rust for $target"; }
    cargo check --quiet --locked --target "$target" "${LIBRARIES[@]}" --features "$FEATURES,heapwright/checked" 2>"$SCRATCH/said" ||
        { cat "$SCRATCH/said"; die "it does not compile for $target"; }
    if [ -s "$SCRATCH/said" ]; then cat "$SCRATCH/said"; die "a warning for $target"; fi
    say "ok   $target compiles"
done
[ "${1:-}" = --run ] || exit 0
setup systems

run() { # TARGET
    cargo test --quiet --locked --no-fail-fast "${TESTS[@]}" --target "$1" "${LIBRARIES[@]}" --features "$FEATURES"
    cargo test --quiet --locked --test checked_pools --target "$1" -p heapwright --features checked
    say "ok   $1: tests"
}

export WINEPREFIX=$CARGO_TARGET_DIR/portable/wine WINEDEBUG=-all CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=wine
mkdir -p "$WINEPREFIX"
# Rust's random numbers come from a library that older wines lack.
if [ -z "$(find /usr/lib -name 'bcryptprimitives.dll' -path '*wine*' -print -quit)" ]; then
    x86_64-w64-mingw32-gcc -shared -o "$WINEPREFIX/bcryptprimitives.dll" -x c - -ladvapi32 <<'EOF'
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL ProcessPrng(PBYTE at, SIZE_T size) { return SystemFunction036(at, size); }
EOF
    WINEPATH=$(tr / '\\' <<<"Z:$WINEPREFIX")
    export WINEPATH
fi
run x86_64-pc-windows-gnu

RISCV=riscv64gc-unknown-linux-gnu
[[ $installed == *$RISCV* ]] || rustup target add $RISCV
export CARGO_TARGET_RISCV64GC_UNKNOWN_LINUX_GNU_LINKER=riscv64-linux-gnu-gcc
export CARGO_TARGET_RISCV64GC_UNKNOWN_LINUX_GNU_RUNNER="qemu-riscv64 -L /usr/riscv64-linux-gnu"
export HEAPWRIGHT_TEST_RUNNER=$CARGO_TARGET_RISCV64GC_UNKNOWN_LINUX_GNU_RUNNER # for tests that start themselves
run $RISCV
