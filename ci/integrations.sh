#!/usr/bin/env bash
# The integrations with other tools, each on programs with a mistake and their twins without.
#
#   ci/integrations.sh action      the GitHub action, as a dry run: its shell steps on a program that loses
#                                  a block and on one that does not, with the variables and files of a
#                                  runner (ci/action.py). `gh` is a file that records its arguments
#   ci/integrations.sh pytest      the pytest plugin, installed from its folder, on an extension in
#                                  C that is built here. Each wrong test has a correct twin. The
#                                  wrong tests fail, under their names and with the function at
#                                  fault
#   ci/integrations.sh listeners   the listeners for GoogleTest and Catch2, each on a program in
#                                  which two tests lose a block and the others none. The two fail,
#                                  under their names. The commands in their failures show the
#                                  functions at fault. Also the package for Go's tests, if Go is
#                                  installed: a test that loses memory of C fails, and its twin that
#                                  loses none passes
#
#   HEAPWRIGHT_COMMAND  the command (default: built from this checkout)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

action() {
    command_or_package cc gcc
    packages python3-yaml
    the_command

    # Where the action installs the command from (that this works: ci/registry.sh).
    source=$(sed -n 's|.*--path "$GITHUB_ACTION_PATH/\(.*\)"|\1|p' integrations/github-action/action.yml)
    [ -f "integrations/github-action/$source/Cargo.toml" ] || die "the action installs from '$source', where nothing is"

    cd "$SCRATCH"
    mkdir bin
    ln -s "$HEAPWRIGHT_COMMAND" bin/heapwright
    # Says what it was asked for; a pull request has a comment of an earlier run if there is a file `earlier`.
    cat >bin/gh <<'SH'
#!/bin/sh
case "$*" in
*--paginate*) if [ -e earlier ]; then echo 55; fi ;;
*) echo "gh $*" ;;
esac
SH
    chmod +x bin/gh
    export PATH=$SCRATCH/bin:$PATH
    printf '#include <stdlib.h>\nint main(void) { char *volatile block = malloc(1234); block = NULL; return block != NULL; }\n' >wrong.c
    printf '#include <stdlib.h>\nint main(void) { char *volatile block = malloc(1234); free(block); return 0; }\n' >right.c
    cc -g wrong.c -o wrong
    cc -g right.c -o right

    # action WANTED-EXIT-CODE INPUT...
    action() {
        local wanted=$1 status=0
        shift
        rm -rf runner
        mkdir runner
        # Debian's, which has the package.
        /usr/bin/python3 "$ROOT/ci/action.py" "$ROOT/integrations/github-action/action.yml" runner "$@" >log 2>&1 || status=$?
        [ "$status" = "$wanted" ] || { cat log; die "$*: ends with $status, not $wanted"; }
    }
    says() { grep -q -- "$1" "${2:-log}" || { cat log; die "nothing says '$1'"; }; }
    says_not() { ! grep -q -- "$1" "${2:-log}" || { cat log; die "something says '$1'"; }; }

    action 99 command='./right && ./wrong' comment=true github.event_name=pull_request github.event.number=7
    says 'Result: failed with 99'
    says '1,234 bytes in 1 block' runner/GITHUB_STEP_SUMMARY
    says 'in main .*wrong.c:2' runner/GITHUB_STEP_SUMMARY
    says "upload-sarif@v3 {'sarif_file': '.*heapwright.sarif', 'category': 'heapwright'}"
    says '^gh api .* POST repos/owner/project/issues/7/comments --field body=@.*summary.md$'
    /usr/bin/python3 - runner/heapwright.*/heapwright.sarif <<'PY'
import json, sys
(result,) = json.load(open(sys.argv[1]))["runs"][0]["results"]
location = result["locations"][0]["physicalLocation"]
assert result["ruleId"] == "definitely-lost" and location["artifactLocation"]["uri"] == "wrong.c", result
PY
    action 0 command=./wrong fail-on=none sarif=false comment=true github.event_name=push
    says '1,234 bytes in 1 block' runner/GITHUB_STEP_SUMMARY
    says '== Upload: skipped'
    says '== Comment: skipped'
    says '== output exit-code: 0'
    action 0 command='./right | cat; ./right' comment=true github.event_name=pull_request
    says_not '^gh '
    says_not '1,234 bytes in 1 block' runner/GITHUB_STEP_SUMMARY
    touch earlier
    action 0 command=./right comment=true github.event_name=pull_request github.event.number=7
    says '^gh api .* PATCH repos/owner/project/issues/comments/55 --field body=@.*summary.md$'
    printf 'leak:main\n' >known.supp
    action 0 command=./wrong options='--suppress known.supp'
    action 3 command='exit 3'
    action 2 command=./right fail-on=everything
    says 'everything'
    say "the action: a leak ends it with 99, SARIF, summary and comment; the others pass"
}

pytest() {
    command_or_package cc gcc
    command_or_package python3 python3
    the_command
    export HEAPWRIGHT_COMMAND

    # A copy: pip builds in the folder that it installs from.
    cp -r integrations/pytest-heapwright "$SCRATCH/plugin"
    cd "$SCRATCH"
    { python3 -m venv venv && venv/bin/pip install --quiet ./plugin; } >pip.log 2>&1 || {
        say "skipped: pip cannot install pytest here ($(tail -n 1 pip.log))"
        exit 0
    }
    include=$(venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
    [ -f "$include/Python.h" ] || packages python3-dev

    cat >shop.c <<'C'
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdlib.h>
#include <string.h>

static char *volatile block;

__attribute__((noinline)) static void fill(size_t size) {
    block = malloc(size);
    memset(block, 1, size);
}
/* A block of so many bytes that is forgotten, or freed. */
static PyObject *forget(PyObject *self, PyObject *size) {
    fill(PyLong_AsSize_t(size));
    block = NULL;
    Py_RETURN_NONE;
}
static PyObject *give_back(PyObject *self, PyObject *size) {
    fill(PyLong_AsSize_t(size));
    free(block);
    block = NULL;
    Py_RETURN_NONE;
}
/* A Python object with a reference too many, or with the right number. */
static PyObject *count_wrong(PyObject *self, PyObject *none) {
    PyObject *object = PyBytes_FromStringAndSize(NULL, 3000);
    Py_INCREF(object);
    return object;
}
static PyObject *count_right(PyObject *self, PyObject *none) { return PyBytes_FromStringAndSize(NULL, 3000); }
static PyObject *free_twice(PyObject *self, PyObject *none) {
    fill(40);
    free(block);
    free(block);
    block = NULL;
    Py_RETURN_NONE;
}
static PyObject *write_beyond(PyObject *self, PyObject *none) {
    fill(40);
    block[40] = 2;
    free(block);
    block = NULL;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"forget", forget, METH_O, ""},
                                  {"give_back", give_back, METH_O, ""},
                                  {"count_wrong", count_wrong, METH_NOARGS, ""},
                                  {"count_right", count_right, METH_NOARGS, ""},
                                  {"free_twice", free_twice, METH_NOARGS, ""},
                                  {"write_beyond", write_beyond, METH_NOARGS, ""},
                                  {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "shop", "", -1, functions};
PyMODINIT_FUNC PyInit_shop(void) { return PyModule_Create(&module); }
C
    cc -g -O1 -w -shared -fPIC -I"$include" shop.c -o shop.so

    cat >test_shop.py <<'PY'
import os

import pytest
import shop

mark = pytest.mark


def test_right_block(): shop.give_back(1234)
def test_right_object(): shop.count_right()
def test_right_cycle():
    ring = []
    ring.append(ring)
@mark.limit_leaks("2 KB")
def test_right_little_lost(): shop.forget(1234)
@mark.limit_memory("24 MB")
def test_right_peak(): shop.give_back(20 << 20)
# After it the process's own peak is above all later limits: each has to be seen all the same.
@mark.limit_memory("64 MB")
def test_right_high_peak(): bytearray(50 << 20)
@mark.limit_memory("200 KB")
def test_right_low_peak(): bytearray(100 << 10)
@mark.xfail(strict=True)
def test_right_as_expected(): shop.forget(1234)

@mark.parametrize("times", [1, 2])
def test_wrong_block(times):
    for _ in range(times):
        shop.forget(1234)
def test_wrong_object(): shop.count_wrong()
@mark.limit_leaks("1 KB")
def test_wrong_much_lost(): shop.forget(1234)
@mark.limit_memory("24 MB")
def test_wrong_peak(): shop.give_back(30 << 20)
@mark.limit_memory("200 KB")
def test_wrong_low_peak(): bytearray(300 << 10)
@mark.no_heap_errors
def test_wrong_free(): shop.free_twice()
def test_wrong_write(): shop.write_beyond()
@pytest.fixture
def forgets():
    yield
    shop.forget(1234)
def test_wrong_fixture(forgets): pass
def test_wrong_child():
    child = os.fork()
    if child == 0:
        shop.free_twice()
        os._exit(0)
    os.waitpid(child, 0)
PY
    cat >test_right.py <<'PY'
import atexit, os
import shop


def test_right():
    if "AT_EXIT" in os.environ:
        atexit.register(shop.free_twice)
PY

    export COLUMNS=300 # so that pytest cuts no line
    pytest=(venv/bin/python -m pytest -q -p no:cacheprovider)
    fails() { sed -n 's/^FAILED [^:]*::\([^ ]*\) .*/\1/p' "$1" | sort | tr '\n' ' '; }
    expect() { # NAME WANTED GOT LOG
        [ "$2" = "$3" ] || { cat "$4"; die "$1: wanted '$2', got '$3'"; }
    }

    "${pytest[@]}" test_shop.py -k right >plain.log 2>&1 || true
    expect "without --heapwright" "test_right_as_expected " "$(fails plain.log)" plain.log

    status=0
    "${pytest[@]}" --heapwright test_shop.py >all.log 2>&1 || status=$?
    expect "exit code" 1 $status all.log
    wrong="test_wrong_block[1] test_wrong_block[2] test_wrong_child test_wrong_fixture test_wrong_free test_wrong_low_peak test_wrong_much_lost test_wrong_object test_wrong_peak test_wrong_write "
    expect "--heapwright" "$wrong" "$(fails all.log)" all.log
    for sentence in 'test_wrong_block\[1\] - heapwright: 1.2 KiB in 1 block lost' 'test_wrong_block\[2\] - heapwright: 2.4 KiB in 2 blocks lost' \
        'test_wrong_much_lost .*the limit is 1.0 KiB' 'test_wrong_peak .*30.0 MiB .*the limit is 24.0 MiB' \
        'test_wrong_free - heapwright: double-free' 'test_wrong_write - heapwright: buffer-overflow' \
        '^    fill .*shop.c:9$' '^    forget .*shop.c:14$' '^    count_wrong .*shop.c:' '^    free_twice .*shop.c:34$' '^    (Python)$'; do
        grep -q "$sentence" all.log || { cat all.log; die "nothing says '$sentence'"; }
    done
    ! grep -q 'outside of tests' all.log || { cat all.log; die "something is said to be outside of tests"; }
    say "pytest --heapwright: 10 wrong tests fail by name, 8 right ones pass"

    status=0
    "${pytest[@]}" --heapwright-marked test_shop.py >marked.log 2>&1 || status=$?
    expect "--heapwright-marked" "test_right_as_expected test_wrong_free test_wrong_low_peak test_wrong_much_lost test_wrong_peak " "$(fails marked.log)" marked.log
    say "pytest --heapwright-marked: those with a marker fail"

    "${pytest[@]}" --heapwright test_right.py >right.log 2>&1 || { cat right.log; die "a right test fails"; }
    status=0
    AT_EXIT=1 "${pytest[@]}" --heapwright --heapwright-keep kept test_right.py >exit.log 2>&1 || status=$?
    expect "a double free at exit" 1 $status exit.log
    grep -q 'heapwright, outside of tests:' exit.log && grep -q '1 passed' exit.log || { cat exit.log; die "the double free at exit is not said"; }
    [ "$("$HEAPWRIGHT_COMMAND" report --format gcc kept 2>&1 | grep -c 'double-free')" -ge 1 ] || die "the records that were kept have nothing"
    status=0
    "${pytest[@]}" --heapwright --heapwright-keep kept test_right.py >again.log 2>&1 || status=$?
    expect "a folder that has records" 2 $status again.log
    ! grep -q 'outside of tests' again.log || { cat again.log; die "findings of an earlier run are told again"; }
    printf 'double-free:free_twice\n' >known.supp
    AT_EXIT=1 "${pytest[@]}" --heapwright --heapwright-suppress known.supp test_right.py >known.log 2>&1 || { cat known.log; die "a suppression has no effect"; }
    say "what is found outside of tests fails the run, once, unless it is suppressed"

    printf 'import pytest\n@pytest.mark.limit_leaks("much")\ndef test(): pass\n' >test_bad.py
    status=0
    "${pytest[@]}" --heapwright test_bad.py >bad.log 2>&1 || status=$?
    expect "a limit that is no size" 4 $status bad.log
    grep -q "'much' is no size" bad.log || { cat bad.log; die "the bad limit is not named"; }
    status=0
    HEAPWRIGHT_COMMAND=/nowhere "${pytest[@]}" --heapwright test_right.py >none.log 2>&1 || status=$?
    expect "no command" 4 $status none.log
    say "bad input: one line, exit code 4"
}

listeners() {
    command_or_package c++ g++
    packages libgtest-dev catch2
    the_command
    INCLUDE=(-I"$ROOT/include" -I"$ROOT/integrations/cpp")
    cd "$SCRATCH"

    cat >shop.h <<'CPP'
#include <cstdlib>
#include <vector>
static char *volatile block;
__attribute__((noinline)) static void forget() { block = static_cast<char *>(malloc(1234)); block = nullptr; }
__attribute__((noinline)) static void give_back() { block = static_cast<char *>(malloc(1234)); free(block); block = nullptr; }
/* What is still led to is not lost. */
static std::vector<int> *const kept = new std::vector<int>;
struct Shop {
    std::vector<int> *goods = new std::vector<int>(100);
    ~Shop() { delete goods; }
};
CPP
    cat >googletest.cc <<'CPP'
#include "heapwright_googletest.h"
#include "shop.h"
struct Fixture : testing::Test, Shop {};
TEST(Right, block) { give_back(); }
TEST(Wrong, block) { forget(); }
TEST(Right, behind) { kept->push_back(1); }
TEST_F(Fixture, right) { EXPECT_EQ(goods->size(), 100u); }
TEST_F(Fixture, wrong) { forget(); }
int main(int argc, char **argv) {
    testing::InitGoogleTest(&argc, argv);
    testing::UnitTest::GetInstance()->listeners().Append(new heapwright::LeakListener);
    return RUN_ALL_TESTS();
}
CPP
    cat >catch2.cc <<'CPP'
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#include "heapwright_catch2.h"
#include "shop.h"
TEST_CASE("right block") { give_back(); }
TEST_CASE("wrong block") { forget(); }
TEST_CASE_METHOD(Shop, "right behind") { kept->push_back(1); REQUIRE(goods->size() == 100); }
TEST_CASE_METHOD(Shop, "wrong section") {
    SECTION("gives back") { give_back(); }
    SECTION("forgets") { forget(); }
}
CPP


    # program NAME TESTS-THAT-FAIL LIBRARY...
    program() {
        local name=$1 wanted=$2 status=0 command
        c++ -std=c++17 -g -O0 "${INCLUDE[@]}" "$name.cc" -o "$name" "${@:3}"
        "./$name" >plain.log 2>&1 || { cat plain.log; die "$name fails without heapwright"; }
        "$HEAPWRIGHT_COMMAND" check --leaks no --fail-on none --keep "$name.records" -o report -- "./$name" >log 2>&1 || status=$?
        [ "$status" -ne 0 ] && [ "$status" -lt 99 ] || { cat log; die "$name ends with $status"; }
        # Catch2 breaks long lines.
        sed -i -e ':a' -e 'N' -e '$!ba' -e 's/record\.\n */record./g; s/\n *record\./ record./g' log
        [ "$(sed -n 's/^\[  FAILED  \] \(.*\) (.*/\1/p; s/^\(\(right\|wrong\) .*\)$/\1/p' log | tr '\n' ',')" = "$wanted" ] ||
            { cat log; die "$name: other tests fail than $wanted"; }
        [ "$(grep -c 'heapwright: 1234 bytes in 1 block are lost' log)" = 2 ] || { cat log; die "$name: other leaks are told"; }
        cd "$name.records"
        sed -n 's/.*stacks: heapwright \(diff [^ ]* [^ ]*\).*/\1/p' ../log >../commands
        while read -r command; do
            # shellcheck disable=SC2086 # its words are the arguments
            "$HEAPWRIGHT_COMMAND" $command >../diff || true
            grep -q 'definitely-lost: 1,234 bytes in 1 block' ../diff && grep -q ' in forget .*shop.h:4' ../diff || { cat ../diff; die "$name: $command shows another stack"; }
        done <../commands
        [ "$(wc -l <../commands)" = 2 ] || die "$name: not each leak has a command"
        cd ..
        say "$name: two tests fail, each with its leak; the others pass, and all do without heapwright"
    }
    program googletest "Wrong.block,Fixture.wrong," -lgtest
    program catch2 "wrong block,wrong section,"

    command -v go >/dev/null || { say "go: not here, passed over"; exit 0; }
    mkdir go && cd go
    cat >go.mod <<E
module shop

go 1.21

require heapwright v0.0.0

replace heapwright => $ROOT/integrations/go
E
    cat >shop.go <<'G'
package shop

/*
#include <stdlib.h>
__attribute__((noinline)) static void forget(void) { char *volatile block = malloc(1234); block = NULL; }
__attribute__((noinline)) static void give_back(void) { free(malloc(1234)); }
*/
import "C"

func Forget()   { C.forget() }
func GiveBack() { C.give_back() }
G
    cat >shop_test.go <<'G'
package shop

import (
	"heapwright"
	"testing"
)

func TestMain(m *testing.M) { heapwright.Main(m) }

func TestRight(t *testing.T) {
	heapwright.Leaks(t)
	GiveBack()
}

func TestWrong(t *testing.T) {
	heapwright.Leaks(t)
	Forget()
}

func TestBehind(t *testing.T) {
	heapwright.Leaks(t)
	GiveBack()
}
G
    export CGO_CFLAGS="-O1 -g -I$ROOT/include" GOFLAGS=-mod=mod
    go test . >plain.log 2>&1 && (cd "$ROOT/integrations/go" && go test .) >>plain.log 2>&1 || { cat plain.log; die "the Go tests fail without heapwright, or the package's own"; }
    ! go test -v -exec "$HEAPWRIGHT_COMMAND check --anyway --fail-on none -o $PWD/report --" . >log 2>&1 || { cat log; die "the wrong Go test passes"; }
    [ "$(sed -n 's/^--- FAIL: \([A-Za-z]*\) .*/\1/p' log)" = TestWrong ] && grep -q 'heapwright: 1234 bytes in 1 blocks of C are lost' log ||
        { cat log; die "go: other tests fail than TestWrong"; }
    grep -q 'definitely-lost: 1,234 bytes in 1 block' report || { cat report; die "go: the report has not the leak"; }
    say "go: the test that loses memory of C fails; the others pass, and all do without heapwright"
}

case ${1:-} in
    action | pytest | listeners) "$@" ;;
    *) die "usage: ci/integrations.sh action|pytest|listeners" ;;
esac
