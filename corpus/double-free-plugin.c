// finds: double-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// stack: plugin_close
// plugin: yes
// A library that was opened at run time frees what its user freed.
#include "corpus.h"
#include <dlfcn.h>

#ifdef PLUGIN
NOINLINE void *plugin_open(size_t size) { return malloc(size); }
NOINLINE void plugin_close(void *p) { free(hide(p)); }
#else
int main(void)
{
    void *library = dlopen(corpus_plugin(), RTLD_NOW);
    CHECK(library != NULL);
    void *(*open)(size_t) = (void *(*)(size_t))dlsym(library, "plugin_open");
    void (*close)(void *) = (void (*)(void *))dlsym(library, "plugin_close");
    char *p = open(SIZE);
    POKE(p, 1);
    BUG(free(hide(p));)
    close(p);
    dlclose(library);
    return 0;
}
#endif
