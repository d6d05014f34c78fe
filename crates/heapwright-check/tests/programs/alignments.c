/* Prints the answers of the calls that take an alignment, for right and wrong arguments. */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static const size_t top = (size_t)1 << 63;

static void show(const char *call, size_t alignment, size_t size, void *block, int result)
{
    const char *what = !block ? "null" : (uintptr_t)block % (alignment ? alignment & -alignment : 1) ? "odd" : "block";
    printf("%s(%#zx, %#zx): %s, %d, errno %d\n", call, alignment, size, what, result, errno);
    free(block);
}

int main(void)
{
    const size_t alignments[] = { 0, 1, 3, 8, 24, 48, 4096, 4097, top >> 16, top >> 1, top, top + 1, SIZE_MAX };
    const size_t sizes[] = { 0, 3, 48, 4096, PTRDIFF_MAX, SIZE_MAX };
    /* (A compiler knows what these functions do, and would refuse some of the arguments.) */
    void *(*volatile align[])(size_t, size_t) = { memalign, aligned_alloc };
    int (*volatile into)(void **, size_t, size_t) = posix_memalign;
    void *(*volatile pages[])(size_t) = { valloc, pvalloc };
    for (unsigned j = 0; j < sizeof sizes / sizeof *sizes; j++) {
        for (unsigned i = 0; i < sizeof alignments / sizeof *alignments; i++) {
            void *block = NULL;
            errno = 0;
            int result = into(&block, alignments[i], sizes[j]);
            show("posix_memalign", alignments[i], sizes[j], block, result);
            for (int n = 0; n < 2; n++) {
                errno = 0;
                show(n ? "aligned_alloc" : "memalign", alignments[i], sizes[j], align[n](alignments[i], sizes[j]), 0);
            }
        }
        for (int n = 0; n < 2; n++) {
            errno = 0;
            show(n ? "pvalloc" : "valloc", 4096, sizes[j], pages[n](sizes[j]), 0);
        }
    }
    return 0;
}
