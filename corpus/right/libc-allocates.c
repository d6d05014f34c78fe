// Functions of the C library that allocate for their caller or for themselves.
// asan: alien
#include "corpus.h"
#include <dirent.h>
#include <fnmatch.h>
#include <glob.h>
#include <iconv.h>
#include <locale.h>
#include <netdb.h>
#include <pwd.h>
#include <regex.h>
#include <search.h>
#include <time.h>
#include <wchar.h>

int main(void)
{
    for (int round = 0; round < 20; round++) {
        char *text = NULL, *line = NULL, *stream = NULL;
        size_t room = 0, length = 0;
        CHECK(asprintf(&text, "%s %0500d %f", "text", round, 1e300) > 500);
        FILE *f = fmemopen(text, strlen(text), "r");
        CHECK(getdelim(&line, &room, ' ', f) == 5);
        fclose(f);
        f = open_memstream(&stream, &length);
        for (int i = 0; i < 3000; i++)
            fprintf(f, "%d ", i);
        fclose(f);
        CHECK(length > 10000);
        free(stream), free(line), free(text);
        struct dirent **entries;
        int n = scandir("/proc/self", &entries, NULL, alphasort);
        CHECK(n > 10);
        while (n-- > 0)
            free(entries[n]);
        free(entries);
        glob_t paths;
        CHECK(glob("/proc/self/[a-m]*", 0, NULL, &paths) == 0);
        globfree(&paths);
        regex_t re;
        CHECK(regcomp(&re, "^(a|b)*[0-9]{2,30}$", REG_EXTENDED) == 0);
        CHECK(regexec(&re, "abab123", 0, NULL, 0) == 0);
        regfree(&re);
        free(realpath("/proc/self/exe", NULL));
        free(getcwd(NULL, 0));
        free(strndup("abcdef", 3));
        free(wcsdup(L"wide"));
        setenv("CORPUS", round % 2 ? "odd" : "even, and longer than odd", 1);
        setlocale(LC_ALL, round % 2 ? "C" : "C.UTF-8");
        struct addrinfo *address = NULL, hints = { .ai_flags = AI_NUMERICHOST };
        CHECK(getaddrinfo("127.0.0.1", "80", &hints, &address) == 0);
        freeaddrinfo(address);
        iconv_t conversion = iconv_open("UTF-16", "UTF-8");
        if (conversion != (iconv_t)-1)
            iconv_close(conversion);
        getpwuid(0);
        tzset();
        FILE *pipe = popen("echo hello", "r");
        char word[10];
        CHECK(fscanf(pipe, "%9s", word) == 1 && strcmp(word, "hello") == 0);
        pclose(pipe);
        void *tree = NULL;
        for (int i = 0; i < 50; i++)
            tsearch(&"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"[i], &tree, (int (*)(const void *, const void *))strcmp);
        tdestroy(tree, (void (*)(void *))hide);
    }
    puts("all of them");
    return 0;
}
