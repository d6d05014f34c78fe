/* An extension with mistakes and right twins, for the plugin (ci/integrations.sh pytest). */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdlib.h>
#include <string.h>

static char *volatile block;

__attribute__((noinline)) static void fill(size_t size) {
    block = malloc(size);
    memset(block, 1, size);
}
/* Allocates a block of `size` bytes, and forgets it or frees it. */
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
