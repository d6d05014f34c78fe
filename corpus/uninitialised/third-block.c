// finds: end
// Of many blocks of one call, only one has a byte that is not written.
#include "../corpus.h"

NOINLINE static char *make(int number)
{
    char *block = malloc(100);
    for (int i = 0; i < 100; i++)
        BUG(if (number != 37 || i != 42)) block[i] = 'a';
    return block;
}

int main(void)
{
    int others = 0;
    for (int number = 0; number < 60; number++) {
        char *block = hide(make(number));
        for (int i = 0; i < 100; i++)
            others += block[i] != 'a' && block[i] != 0;
        free(block);
    }
    return others ? 8 : 0;
}
