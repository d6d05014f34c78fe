// The first process of a small system for ci/common.sh: runs what /rows says, line by line, and turns the machine off.
//
//   /rows    NAME|VARIABLE=VALUE ...|PROGRAM ARGUMENT...      no quotes, no spaces within a word
//
// Prints `row STATUS NAME` for each on the console, behind what the program wrote: the status is that of a shell.

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 32, PATIENCE = 240 };

static int words_of(char *text, char **words) {
    int count = 0;
    for (char *word = strtok(text, " "); word != NULL && count < MOST - 1; word = strtok(NULL, " "))
        words[count++] = word;
    words[count] = NULL;
    return count;
}

static void run(char *line) {
    char *name = line, *variables = strchr(name, '|'), *command = variables ? strchr(variables + 1, '|') : NULL;
    if (command == NULL)
        return;
    *variables++ = 0;
    *command++ = 0;
    command[strcspn(command, "\n")] = 0;
    char *environment[MOST], *words[MOST];
    words_of(variables, environment);
    if (words_of(command, words) == 0)
        return;
    pid_t child = fork();
    if (child == 0) {
        alarm(PATIENCE);
        execve(words[0], words, environment);
        perror(words[0]);
        _exit(127);
    }
    int status = -1;
    while (child > 0 && waitpid(child, &status, 0) != child) {
    }
    printf("row %d %s\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), name);
    fflush(stdout);
}

int main(void) {
    mkdir("/proc", 0755);
    mkdir("/sys", 0755);
    mkdir("/dev", 0755);
    mount("none", "/proc", "proc", 0, NULL);
    mount("none", "/sys", "sysfs", 0, NULL);
    mount("none", "/dev", "devtmpfs", 0, NULL);
    int console = open("/dev/console", O_RDWR);
    for (int file = 0; console >= 0 && file < 3; file++)
        dup2(console, file);
    FILE *rows = fopen("/rows", "r");
    char line[1024];
    while (rows != NULL && fgets(line, sizeof line, rows) != NULL)
        run(line);
    puts("rows end");
    fflush(stdout);
    sync();
    reboot(RB_POWER_OFF);
    return 0;
}
