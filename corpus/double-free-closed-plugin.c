// finds: double-free
// sizes: 24 3000
// plugin: yes
// The library that allocated the block and freed it is gone, and so are the
// addresses in the stacks that were recorded.
#include "corpus.h"
#include <dlfcn.h>

#ifdef PLUGIN
static char *mine;
NOINLINE void *plugin_open(size_t size) { return mine = malloc(size); }
__attribute__((destructor)) static void plugin_unload(void) { free(hide(mine)); }
#else
int main(void)
{
    void *library = dlopen(corpus_plugin(), RTLD_NOW);
    CHECK(library != NULL);
    void *(*open)(size_t) = (void *(*)(size_t))dlsym(library, "plugin_open");
    char *p = open(SIZE);
    POKE(p, 1);
    dlclose(library);
    BUG(free(hide(p));)
    return 0;
}
#endif
