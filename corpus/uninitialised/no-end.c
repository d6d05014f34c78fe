// finds: finding
// A string has no end; without other bytes in its block, strlen finds one by chance.
#include "../corpus.h"

int main(void)
{
    char *name = malloc(16);
    memcpy(name, "heap", 4 FIX(+1));
    size_t length = strlen(hide(name));
    free(name);
    return length > 16 ? 5 : 0;
}
