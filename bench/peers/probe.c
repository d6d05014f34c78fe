// Prints the files that define the allocation functions. Run under each preload: an ignored preload
// would be glibc under another name. The program also calls the functions, so that a library that
// cannot start fails here.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *file_of(void *address) {
    Dl_info info;
    if (address == NULL || dladdr(address, &info) == 0)
        return "nowhere";
    return info.dli_fname;
}

int main(void) {
    // The blocks pass through a volatile variable, or the compiler would remove the pairs.
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
    // The bindings of this program's own calls count. glibc's checking library has its functions in
    // the old version of each name, which a search by name alone does not find.
    const struct { const char *name; void *address; } functions[] = {
        {"malloc", (void *)malloc}, {"calloc", (void *)calloc}, {"realloc", (void *)realloc}, {"free", (void *)free},
        {"posix_memalign", (void *)posix_memalign}, {"aligned_alloc", (void *)aligned_alloc},
        {"malloc_usable_size", (void *)malloc_usable_size},
        // The two operators of C++ that all its other operators call.
        {"_Znwm", dlsym(RTLD_DEFAULT, "_Znwm")}, {"_ZdlPv", dlsym(RTLD_DEFAULT, "_ZdlPv")},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        printf("%s %s\n", functions[i].name, file_of(functions[i].address));
    return 0;
}
