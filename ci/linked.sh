#!/usr/bin/env bash
# A Rust program that links heapwright, alone and under a preloaded heapwright:
# the same output, and under the preload its memory is in the preload's account.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

preload_library
cargo build --quiet --locked --release -p heapwright --example linked
program=$CARGO_TARGET_DIR/release/examples/linked
alone=$("$program")
under=$(LD_PRELOAD=$HEAPWRIGHT_SO HEAPWRIGHT=stats=exit "$program" 2>"$SCRATCH/stats")
[ "$alone" = "$under" ] || die "alone it prints $alone, under the preload $under"
! grep -q "needs the preloaded library" "$SCRATCH/stats" || die "it says that it is not under the preload"
[ -n "$(HEAPWRIGHT=stats=exit "$program" 2>&1 >/dev/null)" ] || die "alone it ignores stats=exit without a word"
allocations=$(sed -nE 's/.* allocations +([0-9]+) of .*/\1/p' "$SCRATCH/stats")
[ "${allocations:-0}" -gt 160000 ] || { cat "$SCRATCH/stats"; die "its allocations are not in the account"; }
say "ok: prints $alone alone and under the preload, which counted $allocations allocations"
