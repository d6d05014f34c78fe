// Functions that stop before the end of their block, which has no end of a string.
#include "corpus.h"
#include <math.h>
#include <strings.h>

static char *text(const char *of)
{
    char *block = malloc(strlen(of));
    CHECK(block != NULL);
    return memcpy(block, of, strlen(of));
}

int main(void)
{
    char *letters = text("abc"), *number = text("12px"), *spaced = text("7 "), *list = text("a,b;"), *end;
    char *volatile set = ",;";
    CHECK(strncmp(letters, "ABCD", 4) > 0 && strcmp(letters, "abd") < 0);
    CHECK(strncasecmp(letters, "ABX", 4) < 0);
    CHECK(atoi(number) == 12 && strtol(number, &end, 10) == 12 && *end == 'p');
    CHECK(strtol(spaced, NULL, 0) == 7 && atoi(spaced) == 7 && atof(spaced) == 7);
    static const struct { const char *text; double value; } floats[] = {
        {"12px", 12}, {"1e5,", 1e5}, {"1.5.7", 1.5}, {"-0x1.8p3;", -12}, {"0x1g", 1}, {"2e+x", 2}, {"3ex", 3}, {".5f", .5},
        {"+infinityx", HUGE_VAL}, {"infin-", HUGE_VAL}, {"none", 0}, {"x", 0}, {"-.x", 0},
    };
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        char *one = text(floats[i].text);
        CHECK(atof(one) == floats[i].value && strtod(one, &end) == floats[i].value);
        free(one);
    }
    CHECK(strcspn(list, set) == 1 && strspn(list, "a") == 1 && strpbrk(list, set) == list + 1);
    CHECK(strstr(list, "b;") == list + 2 && strchr(list, ';') == list + 3);
    char *rest = list;
    CHECK(strsep(&rest, set) == list && strsep(&rest, set) == list + 2 && rest == list + 4);
    free(letters), free(number), free(spaced), free(list);

    // A long text that is taken apart: the rest is not looked at for each word.
    size_t length = 4 << 20, words = 0;
    char *lines = malloc(length + 1);
    CHECK(lines != NULL);
    for (size_t i = 0; i < length; i++)
        lines[i] = i % 8 == 7 ? ',' : 'w';
    lines[length] = 0;
    for (char *word = lines; *word; words++)
        word += strcspn(word, set) + 1;
    CHECK(words == length / 8);
    for (char *save, *word = strtok_r(lines, set, &save); word; word = strtok_r(NULL, set, &save))
        words--;
    CHECK(words == 0);
    free(lines);
    return 0;
}
