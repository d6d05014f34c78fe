#!/usr/bin/env bash
# The command installs in one step and works by itself: with an empty home, in
# an empty folder, with nothing of this checkout beside it.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# README's first command names no binary.
cargo metadata --no-deps --locked --format-version 1 | grep -q '"default_run":"heapwright"' ||
    die "cargo run -p heapwright-cli does not know which binary is meant"

home=$SCRATCH
cargo install --quiet --locked --path crates/heapwright-cli --root "$home/installed"
cd "$home"
mkdir empty
HOME=$home/empty "$home/installed/bin/heapwright" run --stats -- true 2>"$home/said"
grep -q 'rounding' "$home/said" || { cat "$home/said"; die "no statistics"; }
HOME=$home/empty "$home/installed/bin/heapwright" doctor true
echo "ok: installed, ran a program, printed where its memory was"
