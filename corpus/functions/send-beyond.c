// finds: buffer-overflow
// sizes: 24 3000
// words: by send of
// needs: bounds
// A message is one byte longer than its block, as in Heartbleed.
#include "../corpus.h"
#include <sys/socket.h>

int main(void)
{
    char *p = calloc(SIZE, 1);
    size_t n = SIZE;
    BUG(n += 1;)
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        return 1;
    if (send(ends[0], hide(p), n, MSG_DONTWAIT) < 0)
        return 1;
    free(hide(p));
    return 0;
}
