// finds: buffer-overflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
// The header of a struct with a flexible array was not counted.
#include "corpus.h"

struct packet { uint32_t length, kind; char body[]; };

int main(void)
{
    struct packet *p = malloc(SIZE FIX(+ sizeof *p));
    p->length = SIZE;
    memset(hide(p->body), 'b', SIZE);
    free(hide(p));
    return 0;
}
