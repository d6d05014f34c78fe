// probe: prints the file that malloc, free and operator delete really come
// from, and a peer's version number where it has one. Run once under every
// preload before the race: a preload that did not take effect would be glibc
// under another name.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static const char *file_of(const char *symbol) {
    Dl_info info;
    void *address = dlsym(RTLD_DEFAULT, symbol);
    if (address == NULL || dladdr(address, &info) == 0)
        return "-";
    return info.dli_fname;
}

int main(void) {
    free(malloc(100));
    int (*version)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "mi_version");
    printf("%s\n%s\n%s\n%d\n", file_of("malloc"), file_of("free"), file_of("_ZdlPvm"), version ? version() : 0);
    return 0;
}
