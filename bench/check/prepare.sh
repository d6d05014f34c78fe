#!/usr/bin/env bash
# prepare.sh WORK full|quick: builds the programs for the comparison of heapwright's check, a sanitizer and memcheck, each
# plain and with AddressSanitizer. Prints a line for each, with tabs: NAME PLAIN SANITIZED [ARGUMENT...]. A program that
# does not build gets a line on stderr.
#
# Three programs are well-known, from sources in crates that Cargo.toml pins and `cargo vendor` fetches into WORK. With
# quick, these run only if they were built before.
set -euo pipefail

[ $# -eq 2 ] || { echo "usage: prepare.sh WORK full|quick" >&2; exit 2; }
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$1"
WORK=$(cd "$1" && pwd)
size=$2
SOURCES=$WORK/sources
FLAGS=(-O2 -g -w)
SANITIZER=(-fsanitize=address -fno-omit-frame-pointer)

missing() { printf 'prepare.sh: %s is left out: %s\n' "$1" "$2" >&2; }
# sized FULL QUICK: prints the chosen one.
sized() { if [ "$size" = quick ]; then echo "$2"; else echo "$1"; fi; }
tabbed() { local IFS=$'\t'; printf '%s\n' "$*"; }

# built NAME COMPILER WORD...: sets PLAIN and SANITIZED; compiles if a source has changed.
built() {
    local name=$1 compiler=$2 kind hash jobs=() job extra
    shift 2
    # The words contain the crates' versions, as folders.
    hash=$({ "$compiler" --version; printf '%s\n' "${FLAGS[@]}" "${SANITIZER[@]}" "$@"; cat "$HERE/$name".c*; } | sha256sum)
    PLAIN=$WORK/$name.plain.${hash:0:12} SANITIZED=$WORK/$name.asan.${hash:0:12}
    if [ -x "$PLAIN" ] && [ -x "$SANITIZED" ]; then return 0; fi
    if [ "$size" = quick ] && [ -n "$vendored" ]; then missing "$name" "it was not built yet, which takes long"; return 1; fi
    rm -f "$WORK/$name".plain.* "$WORK/$name".asan.*
    printf 'building %s\n' "$name" >&2
    for kind in plain asan; do
        extra=()
        [ $kind = plain ] || extra=("${SANITIZER[@]}")
        { "$compiler" "${FLAGS[@]}" "${extra[@]}" -o "$WORK/$name.$kind.part" "$@" &&
            mv "$WORK/$name.$kind.part" "$WORK/$name.$kind.${hash:0:12}"; } >&2 &
        jobs+=($!)
    done
    for job in "${jobs[@]}"; do wait "$job" || { missing "$name" "$compiler does not build it"; return 1; }; done
}

# fetched: ensures that the crates' sources are in SOURCES.
fetched() {
    [ "$SOURCES/lock" -nt "$HERE/Cargo.lock" ] && return 0
    if [ "$size" = quick ]; then return 1; fi
    (cd "$HERE" && cargo vendor --quiet --locked --versioned-dirs "$SOURCES" >/dev/null) && touch "$SOURCES/lock"
}

add_lua() {
    local folder=("$SOURCES"/lua-src-*/lua-5.4.*) file files=()
    for file in "${folder[0]}"/*.c; do
        case ${file##*/} in lua.c | luac.c) ;; *) files+=("$file") ;; esac
    done
    built lua cc -DLUA_USE_POSIX -I"${folder[0]}" "$HERE/lua.c" "${files[@]}" -lm || return 0
    tabbed lua "$PLAIN" "$SANITIZED" "$HERE/loads/objects.lua" "$(sized 250 25)"
}

add_sqlite() {
    local folder=("$SOURCES"/libsqlite3-sys-*/sqlite3) rows
    rows=$(sized 500000 30000)
    built sqlite cc -DSQLITE_THREADSAFE=0 -I"${folder[0]}" "$HERE/sqlite.c" "${folder[0]}/sqlite3.c" -lm || return 0
    sed "s/300000/$((2 * rows))/g; s/150000/$rows/g" "$HERE/../programs/query.sql" >"$WORK/query.$rows.sql"
    tabbed sqlite "$PLAIN" "$SANITIZED" "$WORK/query.$rows.sql"
}

add_quickjs() {
    local folder=("$SOURCES"/rquickjs-sys-*/quickjs)
    local core=("${folder[0]}/quickjs.c" "${folder[0]}/libregexp.c" "${folder[0]}/libunicode.c" "${folder[0]}/dtoa.c")
    built quickjs cc -D_GNU_SOURCE -DNDEBUG -I"${folder[0]}" "$HERE/quickjs.c" "${core[@]}" -lm -lpthread || return 0
    tabbed quickjs "$PLAIN" "$SANITIZED" "$HERE/loads/objects.js" "$(sized 200 20)"
}

add_trees() {
    built trees cc "$HERE/trees.c" || return 0
    tabbed trees "$PLAIN" "$SANITIZED" "$(sized 60 4)"
}

add_words() {
    built words c++ "$HERE/words.cc" || return 0
    tabbed words "$PLAIN" "$SANITIZED" "$(sized 800 60)"
}

add_document() {
    built document c++ "$HERE/document.cc" || return 0
    tabbed document "$PLAIN" "$SANITIZED" "$(sized 500 40)"
}

vendored=1
for program in lua sqlite quickjs; do
    if fetched; then "add_$program"; else missing "$program" "its sources are not here"; fi
done
vendored=
for program in trees words document; do "add_$program"; done
