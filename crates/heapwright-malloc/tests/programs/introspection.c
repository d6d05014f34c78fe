/* mallinfo, mallinfo2, mallopt, malloc_info, malloc_stats, malloc_trim. */
#include "check.h"
#include <fcntl.h>
#include <malloc.h>

int main(void)
{
    enum { COUNT = 1000 };
    static void *small[COUNT];
    struct mallinfo2 before = mallinfo2();
    for (int i = 0; i < COUNT; i++) {
        small[i] = malloc(1000);
        CHECK(small[i] != NULL);
        memset(small[i], 1, 1000);
    }
    char *large = malloc(32 << 20);
    CHECK(large != NULL);
    memset(large, 1, 32 << 20);
    struct mallinfo2 during = mallinfo2();
    CHECK(during.uordblks + during.hblkhd >=
          before.uordblks + before.hblkhd + 1000 * COUNT + (32 << 20));
    CHECK(during.hblkhd >= before.hblkhd + (32 << 20));
    CHECK(during.hblks > before.hblks);
    CHECK(during.arena >= during.uordblks);
    CHECK(during.fordblks == during.arena - during.uordblks);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    struct mallinfo narrow = mallinfo();
#pragma GCC diagnostic pop
    CHECK(narrow.hblkhd >= 32 << 20);
    CHECK(narrow.uordblks > 0);
    for (int i = 0; i < COUNT; i++)
        free(small[i]);
    free(large);
    struct mallinfo2 after = mallinfo2();
    CHECK(after.uordblks + after.hblkhd < during.uordblks + during.hblkhd - (32 << 20));

    CHECK(mallopt(M_MMAP_THRESHOLD, 128 * 1024) == 1);
    CHECK(mallopt(M_TRIM_THRESHOLD, 256 * 1024) == 1);
    CHECK(mallopt(M_ARENA_MAX, 2) == 1);
    CHECK(mallopt(12345, 1) == 1);

    int trimmed = malloc_trim(0);
    CHECK(trimmed == 0 || trimmed == 1);
    /* Memory that went back no longer counts. */
    struct mallinfo2 given = mallinfo2();
    CHECK(given.fordblks < 16 << 20 && given.arena == given.uordblks + given.fordblks);

    /* The XML document is well formed, as far as this test can see. */
    char *document = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&document, &length);
    CHECK(stream != NULL);
    CHECK(malloc_info(0, stream) == 0);
    CHECK(fclose(stream) == 0);
    CHECK(strncmp(document, "<malloc version=\"1\">", 20) == 0);
    CHECK(strstr(document, "<system type=\"current\" size=\"") != NULL);
    CHECK(length > 10 && strcmp(document + length - 10, "</malloc>\n") == 0);
    int open = 0;
    for (const char *c = document; *c; c++)
        if (*c == '<')
            open += c[1] == '/' ? -1 : 1;
        else if (*c == '/' && c[1] == '>')
            open--;
    CHECK(open == 0);
    free(document);
    errno = 0;
    CHECK(malloc_info(1, stdout) == EINVAL);

    /* malloc_stats writes on stderr. */
    int pipes[2];
    CHECK(pipe(pipes) == 0);
    int saved = dup(2);
    CHECK(saved >= 0 && dup2(pipes[1], 2) == 2);
    malloc_stats();
    fflush(stderr);
    CHECK(dup2(saved, 2) == 2);
    close(pipes[1]);
    static char text[16384];
    size_t got = 0;
    ssize_t n;
    while ((n = read(pipes[0], text + got, sizeof text - 1 - got)) > 0)
        got += (size_t)n;
    CHECK(got > 50);
    CHECK(text[got - 1] == '\n');
    if (hw_version) {
        CHECK(strncmp(text, "heapwright: memory of process ", 30) == 0);
        CHECK(strstr(text, "resident now") != NULL);
        CHECK(strstr(text, "given back so far") != NULL);
    }
    return 0;
}
