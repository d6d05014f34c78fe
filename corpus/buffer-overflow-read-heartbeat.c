// finds: buffer-overflow
// sizes: 32 3008 400000
// words: %SIZE%-byte
// needs: guard=all
// The length in the message is believed: the answer has the heap in it.
#include "corpus.h"

int main(void)
{
    unsigned char *message = calloc(1, SIZE);
    size_t claimed = SIZE - 3 BUG(+ 2000);
    unsigned char *answer = malloc(claimed);
    memcpy(hide(answer), hide(message + 3), claimed);
    free(hide(answer));
    free(message);
    return 0;
}
