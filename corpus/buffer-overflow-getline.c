// finds: buffer-overflow
// getline says how much room there is; the program appends after it.
#include "corpus.h"

int main(void)
{
    char text[] = "a line\n", *line = NULL;
    size_t room = 0;
    FILE *f = fmemopen(text, sizeof text - 1, "r");
    CHECK(getline(&line, &room, f) == 7);
    fclose(f);
    POKE(line + room FIX(- 1), '\n');
    free(hide(line));
    return 0;
}
