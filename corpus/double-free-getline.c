// finds: double-free
// The buffer of getline belongs to the loop, and is freed in it and after it.
#include "corpus.h"

int main(void)
{
    char text[] = "one\ntwo\n", *line = NULL;
    size_t room = 0;
    FILE *f = fmemopen(text, sizeof text - 1, "r");
    CHECK(getline(&line, &room, f) == 4);
    fclose(f);
    BUG(free(hide(line));)
    free(hide(line));
    return 0;
}
