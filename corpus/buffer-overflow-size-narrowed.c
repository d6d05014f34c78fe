// finds: buffer-overflow
// words: 36-byte
// A length that is kept in 16 bits: 65572 became 36.
#include "corpus.h"

struct record { FIX(uint32_t) BUG(uint16_t) length; };

int main(void)
{
    struct record *r = malloc(sizeof *r);
    size_t payload = 65572;
    r->length = payload;
    char *p = malloc(((struct record *)hide(r))->length);
    for (size_t i = 0; i < 64; i++)
        POKE(p + i, 'p');
    free(hide(p));
    free(r);
    return 0;
}
