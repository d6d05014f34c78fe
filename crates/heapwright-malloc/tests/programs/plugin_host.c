/*
 * Opens a library in every way that dlopen knows, and passes blocks to it and back. Opens and
 * closes it many times.
 */
#include "check.h"
#include <dlfcn.h>
#include <malloc.h>

static void use(const char *path, int flags)
{
    void *plugin = dlopen(path, flags);
    if (!plugin)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(plugin != NULL);
    void *(*plugin_malloc)(size_t) = (void *(*)(size_t))dlsym(plugin, "plugin_malloc");
    void (*plugin_free)(void *) = (void (*)(void *))dlsym(plugin, "plugin_free");
    void *(*plugin_realloc)(void *, size_t) =
        (void *(*)(void *, size_t))dlsym(plugin, "plugin_realloc");
    char *(*plugin_strdup)(const char *) = (char *(*)(const char *))dlsym(plugin, "plugin_strdup");
    int (*plugin_work)(void) = (int (*)(void))dlsym(plugin, "plugin_work");
    CHECK(plugin_malloc && plugin_free && plugin_realloc && plugin_strdup && plugin_work);

    CHECK(plugin_work() == 0);
    for (size_t size = 1; size < 500000; size = size * 2 + 3) {
        /* The library's block: the program frees, resizes and measures it. */
        char *p = plugin_malloc(size);
        CHECK(p != NULL);
        paint(p, size, size);
        CHECK(malloc_usable_size(p) >= size);
        p = realloc(p, size * 2);
        CHECK(p != NULL && is_painted(p, size, size));
        free(p);
        free(plugin_malloc(size));
        /* The program's block: the library frees and resizes it. */
        p = malloc(size);
        CHECK(p != NULL);
        paint(p, size, size);
        p = plugin_realloc(p, size * 3);
        CHECK(p != NULL && is_painted(p, size, size));
        plugin_free(p);
    }
    char *text = plugin_strdup("a text");
    CHECK(text != NULL && strcmp(text, "a text") == 0);
    free(text);
    text = strdup("another");
    CHECK(text != NULL);
    plugin_free(text);
    CHECK(dlclose(plugin) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    /* 1: also with RTLD_DEEPBIND, which is no problem for glibc's malloc. */
    int deep = atoi(argv[2]) ? RTLD_DEEPBIND : 0;
    for (int i = 0; i < 20; i++) {
        use(argv[1], RTLD_NOW);
        use(argv[1], RTLD_LAZY | RTLD_LOCAL);
        use(argv[1], RTLD_NOW | deep);
        use(argv[1], RTLD_LAZY | RTLD_LOCAL | deep);
    }
    /* Errors are dlopen's own. */
    CHECK(dlopen("/nonexistent/library.so", RTLD_NOW | deep) == NULL);
    CHECK(strstr(dlerror(), "/nonexistent/library.so") != NULL);
    void *self = dlopen(NULL, RTLD_NOW);
    CHECK(self != NULL && dlsym(self, "malloc") != NULL);
    use(argv[1], RTLD_NOW | RTLD_GLOBAL | deep);
    return 0;
}
