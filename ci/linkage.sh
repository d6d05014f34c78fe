#!/usr/bin/env bash
# Ways to link libheapwright.a into a program: static, static-pie, with link-time optimisation, C++
# without its runtime. The debug heap of a static program must have stack traces. The first table of
# docs/platforms.md has a row for each. Then Rust programs that link heapwright. One runs alone and
# under a preloaded heapwright: its output must be the same, and under the preload its memory is in
# the preload's account. Another is a server that offers its heap profile at an address.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

command_or_package cc gcc
command_or_package c++ g++
preload_library
ARCHIVE=$(dirname "$HEAPWRIGHT_SO")/libheapwright.a
[ -f "$ARCHIVE" ] || die "no archive beside $HEAPWRIGHT_SO"

failures=0
verdict() { # NAME STATUS: one row
    if [ "$2" -eq 0 ]; then printf 'ok   %s\n' "$1"; else printf 'FAIL %s\n' "$1"; failures=$((failures + 1)); fi
}
# row NAME COMPILER WORDS...: what is compiled works, says nothing, and is on heapwright.
row() {
    local name=$1 mode status=0
    shift
    "$@" -o "$SCRATCH/program" "$ARCHIVE" >"$SCRATCH/log" 2>&1 || { cat "$SCRATCH/log"; verdict "$name" 1; return 0; }
    for mode in mode=fast mode=debug cache=percpu; do
        HEAPWRIGHT=$mode timeout 60 "$SCRATCH/program" work >"$SCRATCH/out" 2>"$SCRATCH/err" </dev/null || status=1
        [ ! -s "$SCRATCH/err" ] || status=1
    done
    [ "$(HEAPWRIGHT=stats=exit "$SCRATCH/program" work 2>&1 >/dev/null | grep -c 'live blocks')" -eq 1 ] || status=1
    [ $status -eq 0 ] || tail -n 5 "$SCRATCH/err"
    verdict "$name" $status
}
cat >"$SCRATCH/classes.cc" <<'C'
// Needs no more of the runtime than operators new and delete.
struct Node { Node *next; int value; };
int main() {
    Node *list = nullptr;
    for (int i = 0; i < 100000; i++) list = new Node{list, i};
    long sum = 0;
    while (list) { Node *next = list->next; sum += list->value; delete list; list = next; }
    char *text = new char[1000]();
    sum += text[999];
    delete[] text;
    return sum == 4999950000 ? 0 : 1;
}
C
row "dynamic, the archive" cc -O2 -pthread ci/limits.c
row "static" cc -O2 -pthread -static ci/limits.c
row "static-pie" cc -O2 -pthread -static-pie -fPIE ci/limits.c
row "link-time optimisation" cc -O2 -pthread -flto ci/limits.c
row "link-time optimisation, static" cc -O2 -pthread -flto -static ci/limits.c
c++ -O1 -fno-builtin -fno-exceptions -fno-rtti -c -o "$SCRATCH/classes.o" "$SCRATCH/classes.cc"
row "C++ without its runtime (-nostdlib++)" cc "$SCRATCH/classes.o"
row "C++ without its runtime, static" cc -static "$SCRATCH/classes.o"

cat >"$SCRATCH/twice.c" <<'C'
#include <stdlib.h>
static char *volatile kept;
__attribute__((noinline)) char *make_it(void) { return malloc(40); }
__attribute__((noinline)) void end_it(char *block) { free(block); }
int main(void) { kept = make_it(); end_it(kept); end_it(kept); return 0; }
C
# (gcc asks for the table that unwinders search in all programs but static ones.)
for how in "-static -Wl,--eh-frame-hdr" -static-pie; do
    # shellcheck disable=SC2086 # flags are words
    cc -O1 -w -g -fPIE -fomit-frame-pointer -fno-optimize-sibling-calls $how -o "$SCRATCH/twice" "$SCRATCH/twice.c" "$ARCHIVE"
    HEAPWRIGHT=mode=debug "$SCRATCH/twice" >"$SCRATCH/out" 2>&1 </dev/null || true
    status=0
    # Each function of the program is in a trace, by the address of a call in it.
    addr2line -f -e "$SCRATCH/twice" $(sed -nE 's/.*\+(0x[0-9a-f]+)\).*/\1/p' "$SCRATCH/out") </dev/null >"$SCRATCH/names"
    for name in make_it end_it main; do grep -qx $name "$SCRATCH/names" || status=1; done
    [ $status -eq 0 ] || cat "$SCRATCH/out"
    verdict "stack traces, $how" $status
done
[ $failures -eq 0 ] || die "$failures rows failed"
say "all rows hold"

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

# A server that offers its heap profile at an address: the record from the socket has the live
# blocks.
cargo build --quiet --locked --release -p heapwright --features debug --example profile_endpoint
"$CARGO_TARGET_DIR/release/examples/profile_endpoint" >"$SCRATCH/address" &
server=$!
trap 'kill $server 2>/dev/null; tidy' EXIT
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
# The same server on the hardened heap: nothing is reported, whatever the stacks of its blocks.
for mode in hardened hardened:full; do
    kill $server && wait $server 2>/dev/null || true
    HEAPWRIGHT=mode=$mode "$CARGO_TARGET_DIR/release/examples/profile_endpoint" >"$SCRATCH/address" 2>"$SCRATCH/said" &
    server=$!
    for _ in $(seq 100); do [ ! -s "$SCRATCH/address" ] || break; sleep 0.05; done
    for page in $(seq 20); do [ "$(get "/page/$page" | head -n 1)" = "/page/$page" ] || die "mode=$mode: the server does not serve"; done
    [ ! -s "$SCRATCH/said" ] || { cat "$SCRATCH/said" >&2; die "mode=$mode: it says something"; }
done
say "ok: /heap answers with a record of $(stat -c %s "$SCRATCH/after") bytes"
