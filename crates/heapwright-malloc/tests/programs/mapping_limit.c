/*
 * A program has as many mappings as the kernel allows. Growing a large block fails or succeeds as a
 * whole, and a free succeeds. (mremap moves the pages of such blocks. The kernel then refuses
 * mremap, and also the calls that would undo a move that failed half way.)
 */
#include "check.h"
#include <sys/mman.h>

enum { MOST = 1 << 20, BLOCKS = 40, SIZE = 1 << 20 };

int main(void)
{
    char *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(SIZE);
        CHECK(blocks[i] != NULL);
        paint(blocks[i], SIZE, i);
    }
    /* Every other page is another mapping, until there may be no more. */
    size_t page = (size_t)sysconf(_SC_PAGESIZE), used = 0;
    char *pages = mmap(NULL, MOST * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED)
        return 0;
    while (used + 2 < MOST && mprotect(pages + used * page, page, PROT_READ) == 0)
        used += 2;
    for (size_t left = 0; left < 8; left++) {
        for (size_t i = left; i < BLOCKS; i += 8) {
            errno = 0;
            char *longer = realloc(blocks[i], SIZE * 3);
            CHECK(longer != NULL || errno == ENOMEM);
            if (longer)
                blocks[i] = longer;
            CHECK(is_painted(blocks[i], SIZE, i));
        }
        /* Room for one more mapping, and for two. */
        if (used >= 2)
            CHECK(mprotect(pages + (used -= 2) * page, page, PROT_NONE) == 0);
    }
    CHECK(munmap(pages, MOST * page) == 0);
    for (size_t i = 0; i < BLOCKS; i++) {
        CHECK(is_painted(blocks[i], SIZE, i));
        free(blocks[i]);
    }
    char *block = malloc(SIZE);
    CHECK(block != NULL);
    free(block);
    return 0;
}
