/* dlopen looks where its caller's run path says: $ORIGIN is the caller's. */
#include "check.h"
#include <dlfcn.h>

int main(void)
{
    /* Linked with -rpath '$ORIGIN/origin'; the library lies only there. */
    void *found = dlopen("liborigin_test.so", RTLD_NOW);
    CHECK(found != NULL);
    CHECK(dlclose(found) == 0);
    return 0;
}
