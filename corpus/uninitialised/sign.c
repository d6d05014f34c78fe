// finds: end
// Only a negative number makes a difference.
#include "../corpus.h"

int main(void)
{
    int *balance = malloc(sizeof *balance);
    FIX(*balance = 0;)
    int is_negative = *(int *)hide(balance) < 0;
    free(balance);
    return is_negative ? 6 : 0;
}
