#!/usr/bin/env bash
# prepare.sh WORK: makes the inputs of the real programs in the race, the same on every machine, and writes
# WORK/suite.toml for `heapwright bench --suite`. A program that is not installed gets a line on stderr. Rules:
#   - it allocates much by malloc, and not by an allocator in its executable;
#   - its output does not depend on the clock, on the folder or on addresses, as the race compares it between allocators;
#   - it takes half a second to two seconds under glibc; above one, it is marked long and gets fewer rounds.
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: prepare.sh WORK" >&2; exit 2; }
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export LC_ALL=C.UTF-8
. "$HERE/inputs.sh"
inputs_in "$1"

# --- the suite's file -----------------------------------------------------------

quoted() { local text=${1//\\/\\\\}; printf '"%s"' "${text//\"/\\\"}"; }

# program NAME STANDS_FOR [FIELD...] -- COMMAND...: one entry; a field is a line of TOML.
program() {
    local name=$1 stands_for=$2 field word list=
    shift 2
    printf '\n[[program]]\nname = %s\nstands_for = %s\n' "$(quoted "$name")" "$(quoted "$stands_for")"
    while [ "$1" != -- ]; do field=$1; shift; printf '%s\n' "$field"; done
    shift
    for word in "$@"; do list+="${list:+, }$(quoted "$word")"; done
    printf 'command = [%s]\n' "$list"
}

# --- the programs ------------------------------------------------------------------

add_python3() {
    local python
    python=$(python_here) || { missing python3 "no python3"; return; }
    program python3-malloc "A Python service whose every object is a block of malloc's: dictionaries, strings, JSON" \
        'environment = { PYTHONMALLOC = "malloc", PYTHONHASHSEED = "1" }' -- "$python" "$HERE/objects.py"
    program python3 "The same with Python's own small-object allocator, as it runs by default: malloc sees what is larger" \
        'environment = { PYTHONHASHSEED = "1" }' -- "$python" "$HERE/objects.py"
}

add_sqlite3() {
    have sqlite3 || { missing sqlite3 "no sqlite3"; return; }
    program sqlite3 "A database in memory: bulk insert, indices, joins, updates; a page cache and a block for nearly every value" \
        "stdin = $(quoted "$HERE/query.sql")" -- "$(command -v sqlite3)" :memory:
}

add_redis() {
    have redis-server && have redis-cli || { missing redis "no redis-server or redis-cli"; return; }
    generated redis 220000 redis.commands
    program redis "A server under load: values of many sizes set, replaced, appended and dropped for as long as it lives" \
        'threads = 1' -- /bin/sh "$HERE/redis.sh" "$WORK/redis.commands"
}

add_cc1() {
    local cc1
    cc1=$(cc1_here) || { missing cc1 "no gcc"; return; }
    generated c 90 generated.c
    program cc1 "The C compiler proper on one optimised unit: trees and passes, much allocated and kept, some freed" \
        'long = true' -- "$cc1" -quiet -O2 "$WORK/generated.c" -o -
}

# rustc's executable contains a jemalloc. But its compiler is a library: a main function of one line calls the same entry
# point and leaves malloc to the system.
add_rustc() {
    local root symbol library
    root=$(rustc --print sysroot 2>/dev/null) || { missing rustc "no rustc"; return; }
    symbol=$(nm -D -u "$root/bin/rustc" 2>/dev/null | grep -oE '[A-Za-z0-9_]*rustc_driver_impl4main[A-Za-z0-9_]*' | head -1) || true
    library=$(ls "$root"/lib/librustc_driver-*.so 2>/dev/null | head -1) || true
    [ -n "$symbol" ] && [ -n "$library" ] || { missing rustc "this rustc is not a small program around librustc_driver"; return; }
    printf 'void %s(void);\nint main(void) { %s(); return 0; }\n' "$symbol" "$symbol" >"$WORK/rustc.c"
    cc -O1 "$WORK/rustc.c" "$library" -Wl,-rpath,"$root/lib" -o "$WORK/rustc" || { missing rustc "its library does not link"; return; }
    generated rust 12 generated.rs
    program rustc "A Rust build step: one crate of generics, derives and formatting compiled for debugging, its units in parallel" \
        'long = true' 'threads = 4' -- "$WORK/rustc" --edition 2021 --crate-name generated --crate-type lib \
        -C debuginfo=1 -C codegen-units=4 -o "$WORK/generated.rlib" "$WORK/generated.rs"
}

add_git() {
    have git || { missing git "no git"; return; }
    repository repository.git 900
    local quiet='environment = { GIT_CONFIG_GLOBAL = "/dev/null", GIT_CONFIG_NOSYSTEM = "1" }'
    program git-log "Version control reading: the history with its patches, many short-lived buffers of every size" \
        "$quiet" -- "$(command -v git)" -C "$WORK/repository.git" log -p --stat -M main
    # Which delta a thread finds first depends on the threads' order.
    program git-pack "Version control writing: four threads search for deltas, with large blocks that pass between them" \
        "$quiet" 'threads = 4' 'compare_output = false' -- "$(command -v git)" -C "$WORK/repository.git" \
        pack-objects --all --threads=4 --window=12 --no-reuse-delta --stdout -q
}

add_json_tree() {
    have cargo || { missing json-tree "no cargo"; return; }
    cargo build --quiet --release --locked --manifest-path "$HERE/../Cargo.toml" -p json-tree --target-dir "$WORK/cargo" ||
        { missing json-tree "it does not build"; return; }
    generated json 60000 tree.json
    program json-tree "A JSON parser in Rust: a document of 16 MB as a tree, copied, thinned and written" \
        -- "$WORK/cargo/release/json-tree" "$WORK/tree.json"
}

add_jq() {
    have jq || { missing jq "no jq"; return; }
    generated json 25000 records.json
    program jq "A JSON processor in C: reference-counted values of every size, filtered and grouped" -- \
        "$(command -v jq)" -c '[.[] | select(.active) | {id, n: (.name | ascii_upcase), t: (.tags | length), total: ([.items[] | .count * .price] | add)}] | group_by(.t) | map({t: .[0].t, n: length, total: (map(.total // 0) | add | floor)})' "$WORK/records.json"
}

add_perl() {
    program perl "A text script: hashes of arrays of strings that grow, are joined, sorted and dropped" \
        'environment = { PERL_HASH_SEED = "0" }' -- "$(command -v perl)" "$HERE/text.pl"
}

add_ruby() {
    have ruby || { missing ruby "no ruby"; return; }
    local ruby
    ruby=$(ruby -e 'puts RbConfig.ruby')
    program ruby "A Ruby program: records grouped, rendered and parsed; what its collector does not keep itself comes from malloc" \
        -- "$ruby" --disable-gems "$HERE/records.rb"
}

{
    echo "# Written by prepare.sh for heapwright bench --suite."
    for step in python3 sqlite3 redis cc1 rustc git json_tree jq perl ruby; do "add_$step"; done
} >"$WORK/suite.toml.part"
mv "$WORK/suite.toml.part" "$WORK/suite.toml"
echo "$WORK/suite.toml"
