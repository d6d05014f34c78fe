/* Runs a file of SQL on a database in memory and prints the rows: sqlite FILE */
#include "sqlite3.h"
#include <stdio.h>
#include <stdlib.h>

static int row(void *unused, int count, char **values, char **names)
{
    (void)unused;
    (void)names;
    for (int i = 0; i < count; i++)
        printf("%s%s", i ? "|" : "", values[i] ? values[i] : "");
    putchar('\n');
    return 0;
}

int main(int count, char **words)
{
    FILE *file = count == 2 ? fopen(words[1], "r") : NULL;
    if (!file)
        return 2;
    static char text[1 << 16];
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);

    sqlite3 *database;
    char *message = NULL;
    int failed = sqlite3_open(":memory:", &database) || sqlite3_exec(database, text, row, NULL, &message);
    if (failed)
        fprintf(stderr, "%s\n", message ? message : "no database");
    sqlite3_free(message);
    sqlite3_close(database);
    sqlite3_shutdown();
    return failed;
}
