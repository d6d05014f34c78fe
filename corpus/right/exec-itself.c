// The program executes itself ten times, with blocks alive each time.
// asan: alien
#include "corpus.h"

int main(int argc, char **argv)
{
    (void)argc;
    const char *left = getenv("CORPUS_LEFT");
    int n = left ? atoi(left) : 10;
    char *volatile kept = malloc((size_t)n * 1000 + 1), text[16];
    kept[0] = 1;
    churn(100);
    if (n == 0) {
        free(kept);
        puts("at last");
        return 0;
    }
    snprintf(text, sizeof text, "%d", n - 1);
    setenv("CORPUS_LEFT", text, 1);
    execv("/proc/self/exe", argv);
    return 1;
}
