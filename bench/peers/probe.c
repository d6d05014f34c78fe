// Prints the files that the allocation functions really come from. Run under
// each preload: one that did not take effect would be glibc under another name.
// It also calls them, so that a library that cannot start dies here.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *file_of(const char *symbol) {
    Dl_info info;
    void *address = dlsym(RTLD_DEFAULT, symbol);
    if (address == NULL || dladdr(address, &info) == 0)
        return "nowhere";
    return info.dli_fname;
}

int main(void) {
    // The blocks pass through a volatile, or the compiler would drop the pairs.
    void *volatile block = malloc(100);
    block = realloc(block, 5000);
    free(block);
    block = calloc(10, 100);
    memset(block, 1, 1000);
    free(block);
    void *aligned = NULL;
    if (posix_memalign(&aligned, 4096, 100) != 0)
        return 1;
    free(aligned);
    // Of C++'s operators the two that the others fall back on.
    static const char *const names[] = {"malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "malloc_usable_size", "_Znwm", "_ZdlPv"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        printf("%s %s\n", names[i], file_of(names[i]));
    return 0;
}
