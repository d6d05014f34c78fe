#!/usr/bin/env bash
# The pytest plugin, installed from its folder, on an extension in C that is built here: of each test that is wrong the
# same test is there right. The wrong ones fail, under their names and with the function at fault; the others pass.
#
#   ci/pytest.sh
#
#   HEAPWRIGHT_COMMAND  the command (default: built from this checkout)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
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
