// finds: double-free
// A failed asprintf leaves its argument alone: the caller must not free it again.
#include "corpus.h"

int main(void)
{
    char *text = NULL;
    CHECK(asprintf(&text, "%s-%d", "heap", 42) == 7);
    free(hide(text));
    FIX(text = NULL;)
    free(hide(text));
    return 0;
}
