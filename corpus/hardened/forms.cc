/* C++: given back by another call than the one it was made by, or with another size or alignment. */
#include "frame.h"

constexpr std::align_val_t ALIGNED{ALIGNMENT};

/* Makes a victim, gives it back wrongly, or rightly in the twin. */
template <class Wrong> static void given_back(Form form, Wrong wrong)
{
    char *p = prepare(form);
    if (bad)
        wrong(p);
    else
        right_free(form, p, size);
    settle(nullptr);
}

static void new_free() { given_back(NEW, [](char *p) { free(p); }); }
static void new_delete_array() { given_back(NEW, [](char *p) { ::operator delete[](p); }); }
static void array_free() { given_back(NEW_ARRAY, [](char *p) { free(p); }); }
static void array_delete() { given_back(NEW_ARRAY, [](char *p) { ::operator delete(p); }); }
static void malloc_delete() { given_back(MALLOC, [](char *p) { ::operator delete(p); }); }
static void malloc_delete_array() { given_back(MALLOC, [](char *p) { ::operator delete[](p); }); }
static void new_realloc() { given_back(NEW, [](char *p) { free(realloc(p, size * 2)); }); }

/* The size of a base class, of a class that has grown, and of one with a byte less. */
static void sized_half() { given_back(NEW, [](char *p) { ::operator delete(p, size / 2); }); }
static void sized_double() { given_back(NEW, [](char *p) { ::operator delete(p, size * 2); }); }
static void sized_by_one() { given_back(NEW, [](char *p) { ::operator delete(p, size - 1); }); }
static void sized_array() { given_back(NEW_ARRAY, [](char *p) { ::operator delete[](p, size * 2); }); }

static void aligned_delete() { given_back(NEW_ALIGNED, [](char *p) { ::operator delete(p); }); }
static void plain_delete_aligned() { given_back(NEW, [](char *p) { ::operator delete(p, ALIGNED); }); }
static void aligned_other()
{
    given_back(NEW_ALIGNED, [](char *p) { ::operator delete(p, std::align_val_t(4096)); });
}

const Case FORMS[] = {
    {"mismatch", "new-free", true, new_free},
    {"mismatch", "new-delete-array", true, new_delete_array},
    {"mismatch", "array-free", true, array_free},
    {"mismatch", "array-delete", true, array_delete},
    {"mismatch", "malloc-delete", true, malloc_delete},
    {"mismatch", "malloc-delete-array", true, malloc_delete_array},
    {"mismatch", "new-realloc", true, new_realloc},
    {"wrong-size", "sized-half", true, sized_half},
    {"wrong-size", "sized-double", true, sized_double},
    {"wrong-size", "sized-by-one", true, sized_by_one},
    {"wrong-size", "sized-array", true, sized_array},
    {"wrong-alignment", "aligned-delete", true, aligned_delete},
    {"wrong-alignment", "plain-delete-aligned", true, plain_delete_aligned},
    {"wrong-alignment", "aligned-other", true, aligned_other},
    {},
};
