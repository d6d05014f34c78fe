/* Heap feng shui: the attacker wants the victim's block right behind one of his own, which he can overflow.
   He knows in which order blocks are made and freed, not where. 10,000 rounds in one process of each way:

   in-a-row    his block, then the victim's
   hole        he makes 64 blocks and frees one; the victim is made. No block is freed otherwise, so lists are
               drained and he works where blocks are fresh
   spray       32 of his and 32 victims in turns: how often one particular block of his has a victim behind it

   The last is printed and decides nothing: half of all neighbours are victims then, in any order. */
#define OWN_MAIN
#include "attack.h"

enum { SIZE = 48, ROUNDS = 10000 };
static bool behind(const char *mine, const char *other) { return other > mine && other - mine <= 96; }


static double in_a_row(void)
{
    int hits = 0;
    for (int i = 0; i < ROUNDS; i++) {
        char *mine = malloc(SIZE), *victim = malloc(SIZE);
        hits += behind(mine, victim);
        /* Some stay, some go, as in a program. */
        if (i % 3 != 0)
            free(mine);
        if (i % 5 != 0)
            free(victim);
    }
    return (double)hits / ROUNDS;
}

static double hole(void)
{
    int hits = 0;
    for (int i = 0; i < ROUNDS; i++) {
        char *row[64];
        for (int j = 0; j < 64; j++)
            row[j] = malloc(SIZE);
        free(row[41]);
        hits += behind(row[40], malloc(SIZE));
    }
    return (double)hits / ROUNDS;
}

static double spray(void)
{
    int hits = 0;
    static char *mine[32], *victims[32];
    for (int i = 0; i < ROUNDS; i++) {
        for (int j = 0; j < 32; j++) {
            mine[j] = malloc(SIZE);
            victims[j] = malloc(SIZE);
        }
        bool hit = false;
        for (int j = 0; j < 32; j++)
            hit |= behind(mine[16], victims[j]);
        hits += hit;
        for (int j = 0; j < 32; j++) {
            free(mine[j]);
            free(victims[j]);
        }
    }
    return (double)hits / ROUNDS;
}

int main(void)
{
    double a = in_a_row(), b = hole(), c = spray();
    char text[100];
    snprintf(text, sizeof text, "in a row %.4f, hole %.4f, spray %.4f", a, b, c);
    return verdict(a >= 0.25 || b >= 0.25, text);
}
