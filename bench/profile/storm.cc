// storm SECONDS WHAT
//
// Eight threads that do all that a memory profiler must survive, at the same time:
//
//   allocate       malloc, calloc, aligned_alloc, realloc; mostly small, some of 400 KB
//   hand over      every fifth block lies in a box, and the next thread at that box frees it
//   pools, arenas  heapwright's, if it is preloaded: filled, checked, and destroyed, the last four
//                  of each thread kept
//   throw          exceptions through ten frames, whose unwinder takes the loader's locks
//   open, close    a library, and start threads that end
//   fork           if WHAT says "fork": the child allocates, frees old blocks, and must end well
//   take signals   if WHAT says "signals": a handler that allocates and frees, every two
//                  milliseconds, in a thread that sleeps; if WHAT says "interrupts": in the
//                  threads that allocate, which an allocator need not survive
//
// Each block is filled, and checked before it is freed: this finds a block that was handed out
// twice, or changed in a list. Prints the number of operations; aborts with a line after an error.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <csignal>
#include <dlfcn.h>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/time.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>
#include <malloc.h>
static std::atomic<bool> stop{false};
static std::atomic<long> ops{0};
struct Head { uint64_t size, seed; };
static std::atomic<Head *> box[256];
static void die(const char *what) { fprintf(stderr, "storm: %s\n", what); abort(); }
static Head *make(size_t size, uint64_t seed, int how) {
    size += sizeof(Head);
    void *p;
    switch (how % 4) {
    case 0: p = malloc(size); break;
    case 1: p = calloc(1, size); for (size_t i = 0; i < size; i += 61) if (((char *)p)[i]) die("not zero"); break;
    case 2: p = aligned_alloc(64, (size + 63) & ~63ul); if ((uintptr_t)p % 64) die("not aligned"); break;
    default: p = malloc(size / 2 + 16); p = realloc(p, size); break;
    }
    if (!p) die("no memory");
    if (malloc_usable_size(p) < size) die("too small");
    Head *h = (Head *)p;
    h->size = size; h->seed = seed;
    memset(h + 1, (int)(seed & 255), size - sizeof *h);
    return h;
}
static void check(Head *h) {
    unsigned char *b = (unsigned char *)(h + 1);
    size_t n = h->size - sizeof *h;
    for (size_t i = 0; i < n; i += n / 16 + 1) if (b[i] != (h->seed & 255)) die("changed");
    if (n && b[n - 1] != (h->seed & 255)) die("changed at its end");
}
static void end(Head *h) { check(h); h->seed = ~0ul; free(h); }
static void handler(int) { // what no handler may do, and some do
    int e = errno; void *p = malloc(100); if (p) { memset(p, 1, 100); free(p); }
    Head *h = box[255].exchange(nullptr); if (h) end(h);
    errno = e;
}
// heapwright's functions, or null under another allocator.
template <class F> static F *function(const char *name) { return (F *)dlsym(RTLD_DEFAULT, name); }
static auto *hw_pool_create = function<void *(size_t, size_t, uint32_t, const char *)>("hw_pool_create");
static auto *hw_pool_alloc = function<void *(void *)>("hw_pool_alloc");
static auto *hw_pool_destroy = function<void(void *)>("hw_pool_destroy");
static auto *hw_arena_create = function<void *(size_t)>("hw_arena_create");
static auto *hw_arena_alloc = function<void *(void *, size_t)>("hw_arena_alloc");
static auto *hw_arena_destroy = function<void(void *)>("hw_arena_destroy");
struct Both { void *pool, *arena; uint64_t *first, *second; };
static Both fill(uint64_t seed) {
    Both b = {hw_pool_create(64, 16, 0, "storm"), hw_arena_create(0), nullptr, nullptr};
    if (!b.pool || !b.arena) die("no pool or arena");
    for (int i = 0; i < 3000; i++) {
        uint64_t *p = (uint64_t *)hw_pool_alloc(b.pool), *a = (uint64_t *)hw_arena_alloc(b.arena, 100);
        if (!p || !a) die("no memory in a pool or an arena");
        *p = seed + i; *a = seed - i;
        if (i == 0) { b.first = p; b.second = a; }
    }
    return b;
}
static void end(Both b) {
    if (*b.first != *b.second) die("changed in a pool or an arena");
    hw_pool_destroy(b.pool); hw_arena_destroy(b.arena);
}
static void thrower(int depth) { std::string s(200, 'x'); if (depth == 0) throw std::runtime_error(s); thrower(depth - 1); }
// The child dies if it hangs, independent of signals in its parent.
static void end_soon() {
    signal(SIGALRM, SIG_DFL);
    sigset_t alarms; sigemptyset(&alarms); sigaddset(&alarms, SIGALRM); pthread_sigmask(SIG_UNBLOCK, &alarms, nullptr);
    alarm(20);
}
static void work(int id, bool forks) {
    uint64_t x = id * 7919 + 1;
    std::vector<Head *> mine(300);
    std::vector<Both> kept;
    while (!stop) {
        for (int i = 0; i < 2000; i++) {
            x ^= x << 13; x ^= x >> 7; x ^= x << 17;
            size_t size = x % 100 < 90 ? x % 600 : x % 1000 < 990 ? x % 20000 : x % 400000;
            Head *h = make(size, x, (int)(x >> 32));
            size_t at = (x >> 40) % mine.size();
            if (mine[at]) end(mine[at]);
            mine[at] = h;
            if (i % 5 == 0) { Head *o = box[(x >> 20) % 256].exchange(mine[at]); mine[at] = nullptr; if (o) end(o); }
        }
        ops += 2000;
        if (hw_pool_create) {
            kept.push_back(fill(x));
            if (kept.size() > 4) { end(kept.front()); kept.erase(kept.begin()); }
        }
        try { thrower(10); } catch (std::exception &) {}
        if (id == 1) { void *l = dlopen("libz.so.1", RTLD_NOW); if (l) dlclose(l); }
        if (id == 2) std::thread([] { std::vector<Head *> v; for (int i = 0; i < 500; i++) v.push_back(make(i, i, i)); for (auto h : v) end(h); }).join();
        if (forks && id == 3 && x % 8 == 0) {
            pid_t pid = fork();
            if (pid == 0) { end_soon(); for (int i = 0; i < 3000; i++) { Head *h = make(i % 700, i, i); end(h); } for (auto h : mine) if (h) end(h); for (auto b : kept) end(b); _exit(0); }
            int status; if (pid > 0 && (waitpid(pid, &status, 0), status != 0)) { fprintf(stderr, "status %x\n", status); die("a child failed"); }
        }
    }
    for (auto h : mine) if (h) end(h);
    for (auto b : kept) end(b);
}
int main(int argc, char **argv) {
    int seconds = argc > 1 ? atoi(argv[1]) : 10;
    const char *what = argc > 2 ? argv[2] : "";
    bool interrupts = strstr(what, "interrupts"), signals = interrupts || strstr(what, "signals"), forks = strstr(what, "fork");
    if (signals) {
        struct sigaction a = {}; a.sa_handler = handler; a.sa_flags = SA_RESTART; sigaction(SIGALRM, &a, nullptr);
        itimerval t = {{0, 2000}, {0, 2000}}; setitimer(ITIMER_REAL, &t, nullptr);
    }
    // New threads inherit the signals blocked here: signals go to other threads.
    sigset_t alarms; sigemptyset(&alarms); sigaddset(&alarms, SIGALRM);
    if (!interrupts) pthread_sigmask(SIG_BLOCK, &alarms, nullptr);
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; i++) threads.emplace_back(work, i, forks);
    pthread_sigmask(interrupts ? SIG_BLOCK : SIG_UNBLOCK, &alarms, nullptr);
    // Waits by the clock, because a signal ends a sleep.
    auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    while (std::chrono::steady_clock::now() < until) usleep(100000);
    stop = true;
    for (auto &t : threads) t.join();
    for (auto &b : box) if (Head *h = b.exchange(nullptr)) end(h);
    printf("%ld operations\n", ops.load());
}
