// The same in an extension of Python, a module with a function for each; see reads.c. The script that is run loads it and
// calls the one that is asked for.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include "../corpus.h"

static NOINLINE char *letters(size_t bytes)
{
    char *block = PyMem_RawMalloc(bytes);
    memset(hide(block), 'a', bytes);
    return hide(block);
}

static volatile long sink;
#define SINK(value) (sink += (long)(value))
#define NAMED(name) static PyObject *name(PyObject *self, PyObject *none)
#define DONE Py_RETURN_NONE

// read: bytes_freed use-after-free function
NAMED(bytes_freed)
{
    char *p = letters(3000);
    BUG(PyMem_RawFree(p);)
    PyObject *made = PyBytes_FromStringAndSize(hide(p), 3000);
    FIX(PyMem_RawFree(p);)
    return made;
}

// read: text_freed use-after-free function
NAMED(text_freed)
{
    char *p = letters(60);
    p[59] = 0;
    BUG(PyMem_RawFree(p);)
    PyObject *made = PyBytes_FromString(hide(p));
    FIX(PyMem_RawFree(p);)
    return made;
}

// read: text_no_end buffer-overflow function
NAMED(text_no_end)
{
    char *p = letters(30);
    FIX(p[29] = 0;)
    PyObject *made = PyBytes_FromString(p);
    PyMem_RawFree(p);
    return made;
}

// read: bytes_beyond buffer-overflow function
NAMED(bytes_beyond)
{
    char *p = letters(1000);
    PyObject *made = PyByteArray_FromStringAndSize(p, 1000 BUG(+16));
    PyMem_RawFree(p);
    return made;
}

// read: bytes_before buffer-underflow function
NAMED(bytes_before)
{
    char *p = letters(1000);
    PyObject *made = PyBytes_FromStringAndSize(p BUG(-1), 900);
    PyMem_RawFree(p);
    return made;
}

// read: buffer_freed use-after-free loop
NAMED(buffer_freed)
{
    char *p = letters(500);
    BUG(PyMem_RawFree(p);)
    for (int i = 0; i < 500; i++)
        SINK(((char *)hide(p))[i]);
    FIX(PyMem_RawFree(p);)
    DONE;
}

// read: resized_freed use-after-free loop
NAMED(resized_freed)
{
    char *p = letters(64), *old = hide(p);
    p = PyMem_RawRealloc(p, 100000);
    FIX(old = p;)
    for (int i = 0; i < 64; i++)
        SINK(old[i]);
    PyMem_RawFree(p);
    DONE;
}

// read: rows_freed use-after-free loop
NAMED(rows_freed)
{
    char *rows[10];
    for (int i = 0; i < 10; i++)
        rows[i] = letters(256);
    for (int i = 0; i < 10; i++) {
        BUG(PyMem_RawFree(rows[i]);)
        for (int k = 0; k < 256; k++)
            SINK(((char *)hide(rows[i]))[k]);
        FIX(PyMem_RawFree(rows[i]);)
    }
    DONE;
}

// read: sum_beyond buffer-overflow loop
NAMED(sum_beyond)
{
    char *p = letters(80);
    for (int i = 0; i < 80 BUG(+1); i++)
        SINK(p[i]);
    PyMem_RawFree(p);
    DONE;
}

// read: rows_before buffer-underflow loop
NAMED(rows_before)
{
    for (int row = 0; row < 4; row++) {
        char *p = letters(160);
        for (int i = 159; i >= BUG(-1) FIX(0); i--)
            SINK(p[i]);
        PyMem_RawFree(p);
    }
    DONE;
}

#define ENTRY(name) { #name, name, METH_NOARGS, NULL }

static PyMethodDef methods[] = {
    ENTRY(bytes_freed), ENTRY(text_freed), ENTRY(text_no_end), ENTRY(bytes_beyond), ENTRY(bytes_before),
    ENTRY(buffer_freed), ENTRY(resized_freed), ENTRY(rows_freed), ENTRY(sum_beyond), ENTRY(rows_before),
    { 0 },
};

static struct PyModuleDef module = { PyModuleDef_HEAD_INIT, "reads", NULL, -1, methods };

PyMODINIT_FUNC PyInit_reads(void)
{
    return PyModule_Create(&module);
}
