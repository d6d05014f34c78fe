// leaks: definite 1 ? at A in count_lines
// The line that getline made belongs to its caller, also after the end of the file.
#include "corpus.h"

NOINLINE int count_lines(FILE *in)
{
    char *line = NULL;
    size_t room = 0;
    int n = 0;
    while (getline(&line, &room, in) >= 0) // LEAK A
        n++;
    FIX(free(line);)
    return n;
}

int main(void)
{
    char text[] = "one\ntwo\nthree\n";
    FILE *in = fmemopen(text, strlen(text), "r");
    CHECK(count_lines(in) == 3);
    fclose(in);
    wipe();
    return 0;
}
