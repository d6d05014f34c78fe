// finds: end
// Two structs that are equal are compared with the bytes between their members.
#include "../corpus.h"

struct key {
    short kind;
    long number;
};

NOINLINE static struct key *make(short kind, long number)
{
    struct key *key = FIX(calloc(1, sizeof *key)) BUG(malloc(sizeof *key));
    key->kind = kind;
    key->number = number;
    return key;
}

int main(void)
{
    struct key *one = make(1, 2), *other = make(1, 2);
    int differ = memcmp(hide(one), hide(other), sizeof *one);
    free(one);
    free(other);
    return differ ? 4 : 0;
}
