/*
 * fork against other code that takes locks and allocates under them:
 *
 *   fork_against WHAT      stdio, dlopen, getaddrinfo, locale, popen, system or spawn
 *
 * Some threads call WHAT in a loop while another one forks. Each child allocates and frees. No
 * thread may stand still. HEAPWRIGHT_TEST_SECONDS: the duration, 2 by default.
 */
#include "check.h"
#include <dlfcn.h>
#include <locale.h>
#include <netdb.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

enum { WORKERS = 3, FORKERS = 1, THREADS = WORKERS + FORKERS, LINE = 50000, PATIENCE = 30 };
static atomic_int stop;
static atomic_ulong steps[THREADS];
extern char **environ;

/* Two threads read long lines, whose buffer grows while the stream is locked. A third thread
 * flushes all streams. */
static void stdio(int number)
{
    static FILE *files[WORKERS];
    if (number == 0) {
        fflush(NULL);
        return;
    }
    FILE *file = files[number];
    if (file == NULL) {
        file = files[number] = tmpfile();
        CHECK(file != NULL);
        for (int i = 0; i < LINE; i++)
            fputc('a', file);
        fputc('\n', file);
    }
    rewind(file);
    char *line = NULL;
    size_t size = 0;
    CHECK(getline(&line, &size, file) == LINE + 1);
    CHECK(line[LINE - 1] == 'a');
    free(line);
}

static void open_library(int number)
{
    static const char *const names[] = { "libm.so.6", "libresolv.so.2", "libutil.so.1" };
    void *library = dlopen(names[number % 3], RTLD_NOW);
    if (library != NULL)
        dlclose(library);
}

static void resolve(int number)
{
    struct addrinfo *found = NULL;
    struct addrinfo hints = { .ai_flags = number == 0 ? AI_NUMERICHOST : 0 };
    if (getaddrinfo(number == 0 ? "127.0.0.1" : "localhost", "80", &hints, &found) == 0)
        freeaddrinfo(found);
}

static void change_locale(int number)
{
    locale_t made = newlocale(LC_ALL_MASK, number == 0 ? "C" : "C.UTF-8", (locale_t)0);
    if (made != (locale_t)0)
        freelocale(made);
    if (number == 1)
        setlocale(LC_ALL, "C.UTF-8");
}

static void open_pipe(int number)
{
    (void)number;
    FILE *pipe = popen("exit 0", "r");
    CHECK(pipe != NULL);
    CHECK(fgetc(pipe) == EOF);
    CHECK(pclose(pipe) == 0);
}

static void call_shell(int number)
{
    (void)number;
    /* (system waits for its own child. It blocks signals of the whole process.) */
    CHECK(system("exit 0") == 0);
}

static void spawn(int number)
{
    (void)number;
    char *arguments[] = { (char *)"true", NULL };
    pid_t pid;
    CHECK(posix_spawnp(&pid, "true", NULL, NULL, arguments, environ) == 0);
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static const struct {
    const char *name;
    void (*step)(int);
} opponents[] = {
    { "stdio", stdio },         { "dlopen", open_library },   { "getaddrinfo", resolve },
    { "locale", change_locale }, { "popen", open_pipe },       { "system", call_shell },
    { "spawn", spawn },
};
static void (*step)(int);

static void *work(void *argument)
{
    int number = (int)(intptr_t)argument;
    while (!atomic_load(&stop)) {
        step(number);
        char *block = malloc((atomic_fetch_add(&steps[number], 1) % 300 + 1) * 100);
        CHECK(block != NULL);
        block[0] = 1;
        free(block);
    }
    return NULL;
}

static void *fork_and_wait(void *argument)
{
    size_t number = (size_t)(intptr_t)argument;
    while (!atomic_load(&stop)) {
        char *inherited = malloc(5000);
        CHECK(inherited != NULL);
        paint(inherited, 5000, number);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            /* A child that hangs dies of this alarm. */
            alarm(PATIENCE);
            CHECK(is_painted(inherited, 5000, number));
            free(inherited);
            for (size_t i = 1; i < 100; i++)
                free(malloc(i * 300));
            /* fflush(NULL) would move the files' positions, which the parent shares. */
            fflush(stdout);
            _exit(0);
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        free(inherited);
        atomic_fetch_add(&steps[number], 1);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "stdio";
    for (size_t i = 0; i < sizeof opponents / sizeof *opponents; i++)
        if (strcmp(opponents[i].name, what) == 0)
            step = opponents[i].step;
    CHECK(step != NULL);
    const char *given = getenv("HEAPWRIGHT_TEST_SECONDS");
    time_t until = time(NULL) + (given != NULL ? atoi(given) : 2);

    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, i < WORKERS ? work : fork_and_wait, (void *)i) == 0);
    unsigned long seen[THREADS] = { 0 };
    time_t moved[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        moved[i] = time(NULL);
    for (int ended = 0; !ended;) {
        nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
        ended = time(NULL) >= until;
        for (size_t i = 0; i < THREADS; i++) {
            unsigned long now = atomic_load(&steps[i]);
            if (now != seen[i]) {
                seen[i] = now;
                moved[i] = time(NULL);
            }
            ended = ended && now > 0;
            /* CHECK prints by write, because stdio may be stuck. */
            CHECK(time(NULL) - moved[i] < PATIENCE);
        }
    }
    atomic_store(&stop, 1);
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    return 0;
}
