#!/usr/bin/env bash
# Rust programs that link heapwright: one alone and under a preloaded heapwright, the same output, and under the preload
# its memory is in the preload's account; and a server whose heap profile is behind an address.
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

# A server with a heap profile behind an address: what is kept is in the record that the socket gets.
cargo build --quiet --locked --release -p heapwright --features debug --example profile_endpoint
"$CARGO_TARGET_DIR/release/examples/profile_endpoint" >"$SCRATCH/address" &
server=$!
trap 'kill $server 2>/dev/null; rm -rf "$SCRATCH"' EXIT
for _ in $(seq 100); do [ ! -s "$SCRATCH/address" ] || break; sleep 0.05; done
get() { # PATH: the answer's body
    local line
    exec 3<>"/dev/tcp/$(sed 's#:#/#' "$SCRATCH/address")"
    printf 'GET %s HTTP/1.0\r\n\r\n' "$1" >&3
    while IFS= read -r line <&3 && [ "$line" != $'\r' ]; do :; done
    cat <&3
}
[ "$(get /page/0 | head -n 1)" = /page/0 ] || die "the server does not serve"
get /heap >"$SCRATCH/before"
for page in $(seq 100); do get "/page/$page" >/dev/null; done
get /heap >"$SCRATCH/after"
for record in before after; do
    [ "$(head -c 7 "$SCRATCH/$record")" = HWDEBUG ] || die "the endpoint's answer is no record"
done
[ "$(stat -c %s "$SCRATCH/after")" -gt "$(stat -c %s "$SCRATCH/before")" ] || die "what the server keeps is not in the profile"
# The same server on the hardened heap: nothing is reported, whatever its blocks' stacks are.
for mode in hardened hardened:full; do
    kill $server && wait $server 2>/dev/null || true
    HEAPWRIGHT=mode=$mode "$CARGO_TARGET_DIR/release/examples/profile_endpoint" >"$SCRATCH/address" 2>"$SCRATCH/said" &
    server=$!
    for _ in $(seq 100); do [ ! -s "$SCRATCH/address" ] || break; sleep 0.05; done
    for page in $(seq 20); do [ "$(get "/page/$page" | head -n 1)" = "/page/$page" ] || die "mode=$mode: the server does not serve"; done
    [ ! -s "$SCRATCH/said" ] || { cat "$SCRATCH/said" >&2; die "mode=$mode: it says something"; }
done
say "ok: /heap answers with a record of $(stat -c %s "$SCRATCH/after") bytes"
