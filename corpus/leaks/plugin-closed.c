// leaks: definite 1 SIZE at A in plugin_start
// sizes: 24 3000 400000
// plugin: yes
// lsan: differs It has no name for a place in a library that was closed.
// A library that was opened at run time keeps a block in a variable of its own, and is closed.
#include "corpus.h"
#include <dlfcn.h>

#ifdef PLUGIN
void *state;
NOINLINE void plugin_start(size_t size)
{
    state = malloc(size); // LEAK A
    POKE(state, 1);
}
NOINLINE void plugin_stop(void) { FIX(free(state);) }
#else
int main(void)
{
    void *library = dlopen(corpus_plugin(), RTLD_NOW);
    CHECK(library != NULL);
    void (*start)(size_t) = (void (*)(size_t))dlsym(library, "plugin_start");
    void (*stop)(void) = (void (*)(void))dlsym(library, "plugin_stop");
    start(SIZE);
    stop();
    dlclose(library);
    wipe();
    return 0;
}
#endif
