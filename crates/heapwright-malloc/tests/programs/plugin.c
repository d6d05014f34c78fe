/* A library for the tests of dlopen: it allocates and frees, also through libc. */
#include "check.h"
#include <malloc.h>

void *plugin_malloc(size_t size) { return malloc(size); }
void plugin_free(void *block) { free(block); }
void *plugin_realloc(void *block, size_t size) { return realloc(block, size); }
char *plugin_strdup(const char *text) { return strdup(text); }

/* A library's own calls: all within the library, through libc, and back. */
int plugin_work(void)
{
    for (size_t i = 1; i < 2000; i++) {
        char *p = malloc(i);
        CHECK(p != NULL);
        memset(p, 'x', i);
        p[i - 1] = 0;
        char *q = strdup(p);
        CHECK(q != NULL && strcmp(p, q) == 0);
        free(p);
        q = realloc(q, i * 2);
        CHECK(q != NULL);
        free(q);
        char *line = NULL;
        CHECK(asprintf(&line, "%zu", i) > 0);
        free(line);
    }
    return 0;
}

static char *from_constructor;
__attribute__((constructor)) static void begin(void)
{
    from_constructor = strdup("made while the library was opened");
    CHECK(from_constructor != NULL);
}
__attribute__((destructor)) static void end(void) { free(from_constructor); }
