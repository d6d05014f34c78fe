// finds: write-after-free
// words: 120-byte
// getline needed a larger buffer: what pointed into the old one dangles.
#include "corpus.h"

int main(void)
{
    char *text = malloc(1000), *line = NULL;
    memset(text, 'w', 1000);
    memcpy(text, "first\n", 6);
    size_t room = 0;
    FILE *f = fmemopen(text, 1000, "r");
    CHECK(getline(&line, &room, f) == 6);
    char *word = line;
    CHECK(getline(&line, &room, f) == 994);
    FIX(word = line;)
    POKE(word, 'F');
    fclose(f);
    free(line);
    free(text);
    return 0;
}
