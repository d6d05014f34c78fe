/* keep: a small server. It keeps values by name, for one client after the other.
 *
 *     keep SOCKET
 *
 *     set NAME VALUE    ->  ok
 *     get NAME          ->  the value, or an empty line
 *     end               ->  the server ends
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
struct entry {
    struct entry *next;
    char *name, *value;
};
static struct entry *table[64];

/* Where the entry of that name is, or would be. */
static struct entry **find(const char *name) {
    unsigned hash = 5381;
    for (const char *c = name; *c != '\0'; c++)
        hash = hash * 33 + (unsigned char)*c;
    struct entry **place = &table[hash % 64];
    while (*place != NULL && strcmp((*place)->name, name) != 0)
        place = &(*place)->next;
    return place;
}

static void set(const char *name, const char *value) {
    struct entry **place = find(name);
    if (*place != NULL) {
        (*place)->value = strdup(value);
        return;
    }
    struct entry *entry = malloc(sizeof *entry);
    entry->next = NULL;
    entry->name = strdup(name);
    entry->value = strdup(value);
    *place = entry;
}

/* Serves one client to its end; 0 if the server is to end. */
static int serve(FILE *in, FILE *out) {
    char line[4096], name[64];
    int value;
    while (fgets(line, sizeof line, in) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "set %63s %n", name, &value) == 1) {
            set(name, line + value);
            fputs("ok\n", out);
        } else if (sscanf(line, "get %63s", name) == 1) {
            struct entry *entry = *find(name);
            fprintf(out, "%s\n", entry == NULL ? "" : entry->value);
        } else if (strcmp(line, "end") == 0) {
            return 0;
        }
        fflush(out);
    }
    return 1;
}

int main(int argc, char **argv) {
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof address.sun_path, "%s", argc > 1 ? argv[1] : "keep.socket");
    unlink(address.sun_path);
    signal(SIGPIPE, SIG_IGN); /* A client may go away. */
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 8) != 0) {
        perror(address.sun_path);
        return 1;
    }
    for (int more = 1; more;) {
        int client = accept(listener, NULL, NULL);
        FILE *in = fdopen(client, "r"), *out = fdopen(dup(client), "w");
        more = serve(in, out);
        fclose(in);
        fclose(out);
    }
    unlink(address.sun_path);
    return 0;
}
