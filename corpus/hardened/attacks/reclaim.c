/* The attacker's next block takes the place of the freed one that a dangling pointer still leads to. How often,
   if he makes 1, 16, 256 of them; 10,000, 10,000 and 1,000 rounds in one process. */
#define OWN_MAIN
#include "attack.h"

enum { SIZE = 48 };

static double reclaimed(int blocks, int rounds)
{
    int hits = 0;
    static char *made[256];
    for (int i = 0; i < rounds; i++) {
        char *dangling = hide(malloc(SIZE));
        free(dangling);
        bool hit = false;
        for (int j = 0; j < blocks; j++) {
            made[j] = malloc(SIZE);
            hit |= made[j] == dangling;
        }
        hits += hit;
        for (int j = 0; j < blocks; j++)
            free(made[j]);
    }
    return (double)hits / rounds;
}

int main(void)
{
    /* Some live blocks, as in a program. */
    static char *live[2000];
    for (int i = 0; i < 2000; i++)
        live[i] = malloc(SIZE);
    for (int i = 0; i < 2000; i += 3)
        free(live[i]);
    double one = reclaimed(1, 10000), some = reclaimed(16, 10000), many = reclaimed(256, 1000);
    char text[100];
    snprintf(text, sizeof text, "by 1 block %.4f, by 16 %.4f, by 256 %.4f", one, some, many);
    return verdict(one >= 0.25 || some >= 0.25, text);
}
