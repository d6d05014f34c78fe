/* Opens a plug-in in C++, privately, uses it and closes it. */
#include "check.h"
#include <dlfcn.h>

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    CHECK(dlsym(RTLD_DEFAULT, "_ZSt17__throw_bad_allocv") == NULL);
    for (int i = 0; i < 5; i++) {
        void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        CHECK(plugin != NULL);
        int (*plugin_run)(void) = (int (*)(void))dlsym(plugin, "plugin_run");
        CHECK(plugin_run != NULL);
        CHECK(plugin_run() == 0);
        CHECK(dlclose(plugin) == 0);
    }
    return 0;
}
