#include <stdlib.h>
#include <string.h>

/* The leak of README's first report: a text that is no comment is not freed. */
static int parse(const char *text)
{
    char *copy = strdup(text);
    if (copy[0] != '#')
        return 1;
    free(copy);
    return 0;
}

int main(void)
{
    return parse("colour = green") != 1;
}
