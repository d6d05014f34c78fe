#!/usr/bin/env bash
# Tests Lua 5.4 on the collected heap (runtimes/lua). Builds Debian's source twice, with Lua's own collector and with
# heapwright's. The port's test must pass in six ways to collect. Lua's own suite must pass on both builds, if it can be
# fetched. The benchmarks must print the same on both. Without Lua's source the script says so and passes.
#
#   runtimes/lua/check.sh                             these tests
#   runtimes/lua/check.sh bench [ROUNDS] [NAME...]    also the benchmarks' times at equal peak memory, as a table
#   LUA_TESTS=FOLDER runtimes/lua/check.sh            with this suite: testes of github.com/lua/lua, tag v5.4.4
#                                                     (default: lua-5.4.4-tests of lua.org)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../ci/common.sh"
setup lua

preload_library
SOURCES=$CARGO_TARGET_DIR/lua/sources
source_package lua5.4 || { say "skipped: no source of lua5.4"; exit 0; }
out=$CARGO_TARGET_DIR/lua
sh runtimes/lua/build.sh "$SOURCES/lua5.4/src" "$(dirname "$HEAPWRIGHT_SO")/libheapwright.a" "$out" >"$SCRATCH/build" 2>&1 ||
    { cat "$SCRATCH/build" >&2; die "Lua does not build"; }
! grep -E 'lgc|lheap' "$SCRATCH/build" || die "warnings"

for options in stats generations=0 stress stress,markers=2 markers=2,factor=110 least=65536,verify; do
    told=$(LUA_HEAPWRIGHT=$options timeout 300 "$out/lua-heapwright" runtimes/lua/test.lua 2>"$SCRATCH/told") && [ "$told" = ok ] ||
        { cat "$SCRATCH/told" >&2; die "runtimes/lua/test.lua fails with LUA_HEAPWRIGHT=$options"; }
done
say "ok   the port's test, in six ways to collect"

# The suite of this version.
tests=${LUA_TESTS:-$out/lua-5.4.4-tests}
if [ ! -d "$tests" ]; then
    command -v curl >/dev/null && curl -sSfL --max-time 60 https://www.lua.org/tests/lua-5.4.4-tests.tar.gz 2>"$SCRATCH/curl" |
        tar -xz -C "$out" 2>"$SCRATCH/tar" || rm -rf "$tests"
fi
suite() { # LUA HEADERS: runs all.lua, as a user that may not do everything
    local lua=$1 attempt status process as=()
    rm -rf "$SCRATCH/suite"
    cp -r "$tests" "$SCRATCH/suite"
    local library
    for library in 1 11 2 21; do
        gcc -std=gnu99 -O2 -I"$out/$2" -fPIC -shared -o "$SCRATCH/suite/libs/lib$library.so" "$SCRATCH/suite/libs/lib$library.c"
    done
    gcc -std=gnu99 -O2 -I"$out/$2" -fPIC -shared -o "$SCRATCH/suite/libs/lib2-v2.so" "$SCRATCH/suite/libs/lib22.c"
    if [ "$(id -u)" -eq 0 ]; then
        as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
        chmod 711 "$SCRATCH"
        chmod -R a+rwX "$SCRATCH/suite"
        cp "$lua" "$SCRATCH/suite/lua-of-the-suite"
        lua=./lua-of-the-suite
    fi
    # main.lua tests Ctrl-C by a race of its own shell scripts, which a busy machine loses.
    for attempt in 1 2 3 4 5 6; do
        status=0
        # (The input is a pipe, because the suite tests an input that cannot be rewound.)
        (cd "$SCRATCH/suite" && : | timeout 390 ${as[@]+"${as[@]}"} "$lua" all.lua >"$SCRATCH/said" 2>&1) || status=$?
        [ "$status" -ne 0 ] || break
        # A lost race leaves the processes behind that it wanted to interrupt.
        for process in /proc/[0-9]*; do
            [ "$(readlink "$process/cwd" 2>/dev/null)" != "$SCRATCH/suite" ] || kill -9 "${process#/proc/}" 2>/dev/null || true
        done
        grep -qa 'main.lua:[0-9]*: assertion failed' "$SCRATCH/said" || break
    done
    [ "$status" -eq 0 ] && grep -qa 'final OK !!!' "$SCRATCH/said"
}
if [ -f "$tests/all.lua" ]; then
    suite "$out/lua-own" own || { tail -n 5 "$SCRATCH/said" >&2; die "Lua's own suite fails on Lua itself, here"; }
    suite "$out/lua-heapwright" heapwright || { tail -n 8 "$SCRATCH/said" >&2; die "Lua's own suite fails"; }
    say "ok   Lua's suite, all of it"
else
    say "skipped: Lua's suite (lua.org cannot be reached; give its folder in LUA_TESTS)"
fi

if [ "${1:-}" = bench ]; then
    rounds=${2:-3}
    shift $(($# < 2 ? $# : 2))
    python3 runtimes/lua/compare.py "$out/lua-own" "$out/lua-heapwright" --rounds "$rounds" "$@"
else
    python3 runtimes/lua/compare.py "$out/lua-own" "$out/lua-heapwright" --quick >"$SCRATCH/compared"
    say "ok   $(grep -c '| best |' "$SCRATCH/compared") benchmarks print the same"
fi
