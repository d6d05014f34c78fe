#!/usr/bin/env bash
# Who calls valgrind gets heapwright: CTest's memcheck step, meson's wrapper and test setup, and a
# Makefile's check-valgrind, on a project with a right test and one that loses a block.
# Each of them has to see the one and to pass the other, as it does with valgrind.
#
#   ci/valgrind.sh
#
#   HEAPWRIGHT_COMMAND  the command (default: built from this checkout)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
command_or_package cc gcc
command_or_package cmake cmake
command_or_package meson meson
command_or_package make make
the_command

project=$SCRATCH/project
mkdir "$project"
cat >"$project/right.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    char *block = malloc(10);
    if (!block)
        return 1;
    puts("right");
    free(block);
    return 0;
}
C
cat >"$project/wrong.c" <<'C'
#include <stdlib.h>
int main(void) {
    char *volatile block = malloc(1234);
    block = NULL;
    return block != NULL;
}
C
cat >"$project/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.16)
project(small C)
include(CTest)
foreach(name right wrong)
    add_executable(${name} ${name}.c)
    add_test(NAME ${name} COMMAND ${name})
endforeach()
CMAKE
cat >"$project/meson.build" <<'MESON'
project('small', 'c')
valgrind = find_program('valgrind')
add_test_setup('valgrind', exe_wrapper: [valgrind, '--leak-check=full', '--error-exitcode=42'], timeout_multiplier: 10)
foreach name : ['right', 'wrong']
    test(name, executable(name, name + '.c'))
endforeach
MESON
# What autoconf-archive's AX_VALGRIND_CHECK makes of a Makefile: a log compiler and a log for each test.
cat >"$project/Makefile" <<'MAKE'
VALGRIND = valgrind
TESTS = right wrong
all: $(TESTS)
check-valgrind: $(TESTS:=.valgrind)
%.valgrind: %
	$(VALGRIND) --tool=memcheck --leak-check=full --show-reachable=no --num-callers=30 \
	    --error-exitcode=1 --quiet --log-file=$*.log ./$<
MAKE

"$HEAPWRIGHT_COMMAND" valgrind --install "$SCRATCH/bin" 2>/dev/null
export PATH=$SCRATCH/bin:$PATH
export -n VALGRIND_OPTS 2>/dev/null || true
valgrind --tool=memcheck --help >/dev/null || die "configure's probe fails"
! valgrind --tool=helgrind --help 2>/dev/null >/dev/null || die "helgrind is said to be there"

cd "$SCRATCH"
cmake -S project -B with-cmake -DCMAKE_BUILD_TYPE=Debug >cmake.log && cmake --build with-cmake >>cmake.log || { cat cmake.log; die "no build"; }
(cd with-cmake && ctest -T memcheck) >ctest.log 2>&1 || { cat ctest.log; die "ctest -T memcheck fails"; }
grep -q 'MemCheck: #2: wrong .*Defects: 1$' ctest.log && ! grep -q 'MemCheck: #1: right' ctest.log &&
    grep -q '^Memory Leak - 1$' ctest.log || { cat ctest.log; die "ctest does not see the leak, and it only"; }
grep -q '1,234 bytes in 1 blocks are definitely lost in loss record 1 of 1' with-cmake/Testing/Temporary/MemoryChecker.2.log ||
    die "the log has another sentence"
say "ctest: a defect in the wrong test, none in the right one"

meson setup with-meson project --buildtype debug >meson.log || { cat meson.log; die "no build"; }
for how in '--setup valgrind' "--wrap 'valgrind --leak-check=full --error-exitcode=42'"; do
    eval "meson test -C with-meson $how" >meson.log 2>&1 && die "meson passes the wrong test"
    grep -q 'right *OK' meson.log && grep -q 'wrong *FAIL.*exit status 42' meson.log ||
        { cat meson.log; die "meson $how does not see the leak, and it only"; }
done
say "meson: the wrong test fails, the right one passes"

make -s -C project right wrong CFLAGS=-g
make -s -C project right.valgrind || die "make check-valgrind fails the right test"
! make -s -C project wrong.valgrind 2>/dev/null || die "make check-valgrind passes the wrong test"
[ ! -s project/right.log ] && grep -q 'definitely lost' project/wrong.log || die "the logs are others"
say "make check-valgrind: the wrong test fails, the right one passes"

# --- real projects -------------------------------------------------------------------------------
#
# Their unmodified build systems call valgrind, and get heapwright: `ctest -T memcheck` on libyaml,
# `meson test --setup valgrind` on libxkbcommon, autotools' `make check-valgrind` on libxcrypt. The
# sources are Debian's source packages of this release, which change only for security fixes. If
# none can be fetched (no network, another system), one line says so, and the script does not fail.
# libyaml's own test loses blocks, in eight places by valgrind 3.19: CTest must count eight.
HEAPWRIGHT_COMMAND=$(realpath "$HEAPWRIGHT_COMMAND")
cd "$ROOT"
SOURCES=$CARGO_TARGET_DIR/valgrind-projects
unset VALGRIND_OPTS

mkdir "$SCRATCH/noted"
# Calls of valgrind are counted, because a project that finds no valgrind passes, too.
cat >"$SCRATCH/noted/valgrind" <<SH
#!/bin/sh
echo "\$*" >>"$SCRATCH/calls"
exec "$SCRATCH/bin/valgrind" "\$@"
SH
chmod +x "$SCRATCH/noted/valgrind"
export PATH=$SCRATCH/noted:$PATH
# called TIMES HOW: whether valgrind was called TIMES times with the words HOW.
called() {
    local times
    times=$(grep -c -e "$2" "$SCRATCH/calls" || true)
    [ "$times" -ge "$1" ] || { cat "$SCRATCH/calls"; die "valgrind was called $times times with $2, not $1"; }
    : >"$SCRATCH/calls"
}
# step LOG COMMAND...: runs the command with its output in a log, and prints the log if it fails.
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

# Half of them in a run of .ci/run.
if in_half 1; then with_ctest; fi
if in_half 1; then with_meson; fi
if in_half 0; then with_autotools; fi
