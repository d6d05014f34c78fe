// finds: stdout
// A member that decides a branch is not set.
#include "../corpus.h"

struct item {
    int used, flags;
};

int main(void)
{
    struct item *item = malloc(sizeof *item);
    item->used = 1;
    FIX(item->flags = 0;)
    if (((struct item *)hide(item))->flags)
        puts("flags are set");
    free(item);
    return 0;
}
