#!/usr/bin/env bash
# Real projects ask for valgrind in the ways in which their build systems do, unmodified, and get heapwright: `ctest -T
# memcheck` on libyaml, `meson test --setup valgrind` on libxkbcommon, autotools' `make check-valgrind` on libxcrypt. Called by
# ci/valgrind.sh.
#
#   ci/valgrind-projects.sh COMMAND
#
# Sources are Debian's source packages of this release, which change for security fixes only. Where none can be fetched (no
# network, another system) that is a line, and no failure.
# libyaml's own test loses blocks, in eight places by valgrind 3.19: that is what CTest has to count.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
command=${1:?which command}
SOURCES=$CARGO_TARGET_DIR/valgrind-projects
unset VALGRIND_OPTS

"$command" valgrind --install "$SCRATCH/installed" 2>/dev/null
mkdir "$SCRATCH/bin"
# What is asked of valgrind is noted: a project that finds no valgrind passes, too.
cat >"$SCRATCH/bin/valgrind" <<SH
#!/bin/sh
echo "\$*" >>"$SCRATCH/calls"
exec "$SCRATCH/installed/valgrind" "\$@"
SH
chmod +x "$SCRATCH/bin/valgrind"
export PATH=$SCRATCH/bin:$PATH
# called TIMES HOW: whether valgrind was called so often, so.
called() {
    local times
    times=$(grep -c -e "$2" "$SCRATCH/calls" || true)
    [ "$times" -ge "$1" ] || { cat "$SCRATCH/calls"; die "valgrind was called $times times with $2, not $1"; }
    : >"$SCRATCH/calls"
}
# step LOG COMMAND...: its output goes to a log, which is printed where it fails.
step() {
    local log=$SCRATCH/$1
    shift
    "$@" >"$log" 2>&1 </dev/null || { tail -n 40 "$log"; die "$* fails"; }
}

with_ctest() {
    source_package libyaml || return 0
    step libyaml.build cmake -S "$SOURCES/libyaml" -B "$SCRATCH/libyaml" -DCMAKE_BUILD_TYPE=Debug
    step libyaml.build cmake --build "$SCRATCH/libyaml" --target test-version test-reader
    step libyaml.log env -C "$SCRATCH/libyaml" ctest -T memcheck
    called 2 --leak-check=yes
    grep -q '100% tests passed, 0 tests failed out of 2' "$SCRATCH/libyaml.log" &&
        grep -q 'MemCheck: #2: reader .*Defects: 8$' "$SCRATCH/libyaml.log" &&
        ! grep -q 'MemCheck: #1: version' "$SCRATCH/libyaml.log" && grep -q '^Memory Leak - 8$' "$SCRATCH/libyaml.log" ||
        { cat "$SCRATCH/libyaml.log"; die "CTest does not count libyaml's leaks, and them only"; }
    say "libyaml, ctest -T memcheck: 2 tests pass, 8 leaks in test-reader"
}

with_meson() {
    source_package libxkbcommon || return 0
    packages bison xkb-data
    step xkb.build meson setup "$SCRATCH/xkb" "$SOURCES/libxkbcommon" --buildtype debug -Denable-tools=false \
        -Denable-x11=false -Denable-docs=false -Denable-wayland=false -Denable-xkbregistry=false
    # Some of them ask for an X server, or check the list of exported symbols.
    step xkb.log meson test -C "$SCRATCH/xkb" --setup valgrind "${XKB_TESTS[@]}"
    called ${#XKB_TESTS[@]} '--leak-check=full --track-origins=yes --gen-suppressions=all --error-exitcode=99'
    grep -q "^Ok: *${#XKB_TESTS[@]} *$" "$SCRATCH/xkb.log" && grep -q '^Fail: *0 *$' "$SCRATCH/xkb.log" ||
        { cat "$SCRATCH/xkb.log"; die "libxkbcommon's tests fail"; }
    say "libxkbcommon, meson test --setup valgrind: ${#XKB_TESTS[@]} tests pass"
}
XKB_TESTS=(keysym keymap context filecomp rules-file rules-file-includes stringcomp buffercomp log utf8 atom state keyseq
    utils compose)

with_autotools() {
    source_package libxcrypt || return 0
    packages autoconf automake libtool autoconf-archive
    cp -r "$SOURCES/libxcrypt" "$SCRATCH/libxcrypt"
    step xcrypt.build env -C "$SCRATCH/libxcrypt" autoreconf -fi
    step xcrypt.build env -C "$SCRATCH/libxcrypt" ./configure --disable-shared CFLAGS='-g -O1'
    # Most of its tests hash for minutes; these are its others.
    step xcrypt.log make -C "$SCRATCH/libxcrypt" -j2 check-valgrind TESTS="${XCRYPT_TESTS[*]}"
    called ${#XCRYPT_TESTS[@]} '--tool=memcheck --leak-check=full --show-reachable=no'
    grep -q "^# PASS:  ${#XCRYPT_TESTS[@]}$" "$SCRATCH/xcrypt.log" ||
        { cat "$SCRATCH/xcrypt.log"; die "libxcrypt's tests fail"; }
    say "libxcrypt, make check-valgrind: ${#XCRYPT_TESTS[@]} tests pass"
}
XCRYPT_TESTS=(test/badsalt test/badsetting test/gensalt test/byteorder test/crypt-badargs test/alg-md5)

command_or_package cmake cmake
command_or_package meson meson
command_or_package make make
# Half of them in a run of .ci/run.
if in_half 1; then with_ctest; fi
if in_half 1; then with_meson; fi
if in_half 0; then with_autotools; fi
