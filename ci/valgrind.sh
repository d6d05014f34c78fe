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

bash "$ROOT/ci/valgrind-projects.sh" "$(realpath "$HEAPWRIGHT_COMMAND")"
