// A library is opened, calls back, allocates, and is closed, again and again:
// what it allocated outlives it.
// plugin: yes
// asan: alien
#include "corpus.h"
#include <dlfcn.h>

#ifdef PLUGIN
static char *own;
__attribute__((constructor)) static void loaded(void) { own = malloc(5000); }
__attribute__((destructor)) static void unloaded(void) { free(own); }
void *plugin_work(void *(*allocate)(size_t), size_t n)
{
    char *a = allocate(n), *b = malloc(n);
    memset(a, 'a', n);
    memset(b, 'b', n);
    free(a);
    return b;
}
#else
static void *allocate(size_t n) { return calloc(1, n); }

int main(void)
{
    char *left[100];
    for (int i = 0; i < 100; i++) {
        void *library = dlopen(corpus_plugin(), RTLD_NOW);
        CHECK(library != NULL);
        void *(*work)(void *(*)(size_t), size_t) = (void *(*)(void *(*)(size_t), size_t))dlsym(library, "plugin_work");
        left[i] = work(allocate, (size_t)i * 50 + 1);
        dlclose(library);
    }
    for (int i = 0; i < 100; i++) {
        CHECK(left[i][i] == 'b');
        free(left[i]);
    }
    return 0;
}
#endif
