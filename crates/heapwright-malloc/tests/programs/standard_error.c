/*
 *   standard_error held         no file of the program's has a second descriptor; the library's own
 *                               descriptors close with exec
 *   standard_error chance FILE  closes standard error, opens FILE, which gets the number 2, and frees a
 *                               pointer into a block
 *   standard_error meant FILE   makes FILE its standard error, and frees a pointer into a block
 */
#include "check.h"
#include <fcntl.h>
#include <sys/stat.h>

static void free_wrongly(void)
{
    char *volatile block = malloc(40);
    free(block + 8);
}

static void look(void)
{
    for (int other = 3; other < 1024; other++) {
        struct stat mine, its;
        if (fstat(other, &its) != 0)
            continue;
        CHECK(fcntl(other, F_GETFD) & FD_CLOEXEC);
        for (int file = 0; file < 3; file++)
            CHECK(fstat(file, &mine) == 0 && (mine.st_dev != its.st_dev || mine.st_ino != its.st_ino));
    }
}

int main(int argc, char **argv)
{
    CHECK(argc >= 2);
    if (!strcmp(argv[1], "held")) {
        /* The parent may have left descriptors open. */
        for (int other = 3; other < 1024; other++)
            close(other);
        execl("/proc/self/exe", argv[0], "look", (char *)NULL);
        return 2;
    }
    if (!strcmp(argv[1], "look")) {
        void *volatile block = malloc(100);
        look();
        free(block);
        look();
        return 0;
    }
    int file = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(file > 2);
    if (!strcmp(argv[1], "meant")) {
        CHECK(dup2(file, 2) == 2 && dup2(2, 2) == 2 && dup2(-1, 2) == -1);
    } else {
        close(2);
        CHECK(open(argv[2], O_RDWR) == 2);
    }
    free_wrongly();
    return 0;
}
