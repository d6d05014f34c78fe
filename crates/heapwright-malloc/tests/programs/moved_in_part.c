/*
 *   moved_in_part COUNT back|gone
 *
 * The kernel moves COUNT mappings of a block that grows, and then refuses. The contents must be in
 * the longer block, or in their old place. When the kernel refuses, it has unmapped the destination
 * of the mapping that it does not move. `back`: the destination can be mapped again. `gone`: it
 * cannot.
 *
 * The library's system calls come here (-rdynamic). Like the kernel's (since 6.17), this mremap
 * moves one mapping after the other. Prints the number of refused calls.
 */
#include "check.h"
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { MIB = 1 << 20 };

static int moves_left = 1 << 30, refused, may_map = 1;

/* The end of the mapping that an address lies in. */
static uintptr_t end_of_mapping(uintptr_t address)
{
    static char text[1 << 16];
    int file = open("/proc/self/maps", O_RDONLY);
    CHECK(file >= 0);
    size_t length = 0;
    ssize_t got;
    while ((got = read(file, text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)got;
    close(file);
    text[length] = 0;
    for (char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        uintptr_t from = strtoul(line, &line, 16), to = strtoul(line + 1, &line, 16);
        if (from <= address && address < to)
            return to;
    }
    return 0;
}

void *mremap(void *at, size_t old, size_t size, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    char *to = flags & MREMAP_FIXED ? va_arg(rest, char *) : NULL;
    va_end(rest);
    if (!to)
        return (void *)syscall(SYS_mremap, at, old, size, flags, to);
    for (size_t moved = 0; moved < old;) {
        uintptr_t from = (uintptr_t)at + moved, end = end_of_mapping(from);
        size_t part = end - from < old - moved ? end - from : old - moved;
        if (moves_left-- <= 0) {
            refused++;
            may_map = may_map > 1;
            CHECK(munmap(to + moved, part) == 0);
            errno = ENOMEM;
            return MAP_FAILED;
        }
        if (syscall(SYS_mremap, from, part, part, flags, to + moved) < 0)
            return MAP_FAILED;
        moved += part;
    }
    return to;
}

void *mmap(void *at, size_t size, int access, int flags, int file, off_t offset)
{
    if (!may_map) {
        may_map = 1;
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, size, access, flags, file, offset);
}

/* Grows a block, and takes the memory behind it, so that the block cannot grow in place. */
static char *grown(char *block, size_t size)
{
    char *longer = realloc(block, size);
    CHECK(longer != NULL);
    for (char *behind = NULL; behind < longer;) {
        behind = malloc(100000);
        CHECK(behind != NULL);
    }
    return longer;
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    char *block = grown(NULL, MIB);
    paint(block, MIB, 1);
    for (size_t size = MIB; size < 8 * MIB; size *= 2) {
        block = grown(block, 2 * size);
        CHECK(is_painted(block, size, 1));
        paint(block, 2 * size, 1);
    }
    moves_left = atoi(argv[1]);
    may_map = strcmp(argv[2], "gone") ? 2 : 1;
    block = grown(block, 16 * MIB);
    CHECK(is_painted(block, 8 * MIB, 1));
    free(block);
    printf("%d\n", refused);
    return 0;
}
