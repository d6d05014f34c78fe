// finds: double-free
// One string is the key of two nodes of a tree that frees its keys.
#include "corpus.h"
#include <search.h>

static int by_address(const void *a, const void *b)
{
    return strcmp((const char *)a + 1, (const char *)b + 1);
}

struct key { char text[40]; void *body; };
static void free_key(void *key) { free(hide(((struct key *)key)->body)); }

int main(void)
{
    struct key a = { "1a", malloc(40) }, b = { "1b", malloc(40) };
    BUG(free(b.body); b.body = a.body;)
    void *root = NULL;
    tsearch(&a, &root, by_address);
    tsearch(&b, &root, by_address);
    tdestroy(root, free_key);
    return 0;
}
