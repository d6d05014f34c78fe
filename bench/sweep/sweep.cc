// sweep: the time of an allocator's operation, in patterns, each over many sizes.
//
//   sweep list [CELLS]                   the cells, a line `THREADS GROUP BYTES` each
//   sweep THREADS GROUP MS [CELLS]       measures a group: a line `figure BYTES NS` for each cell
//
// A group is one pattern, and a cell is a group at one size. CELLS is a regular expression (POSIX,
// extended) for `GROUP BYTES`. A cell is repeated for about MS milliseconds, after a warm-up in
// which the allocator grows to the pattern's needs. NS is the wall time of a thread divided by its
// operations. An operation is
//
//   pairs (malloc, calloc, new ...)      one block allocated and then freed, by that entry point
//   in-order, reverse                    one of 64 blocks (8 from 300 KB on): all are allocated,
//                                        then freed in the same or in the reverse order
//   thousands                            the same with as many as 64 MB hold, at most 10,000
//   replace                              a random one of many live blocks is freed, and another of
//                                        half to one and a half of the size is allocated
//   replace-30000, replace-400000        the same among this many; 400000 lie in cold memory
//   phases                               a block of 30,000 of one size, or one of 60,000 that then
//                                        replace them; at the end all are freed
//   realloc-steps                        one step of BYTES of a block that grows to 200 steps
//   realloc-half                         one growth by half, of a block that reaches BYTES
//   realloc-fro                          a block becomes larger by an eighth, or small again
//   realloc-shrink                       a block shrinks by a quarter of its first size
//   handoff                              a block is allocated, and freed by the next thread of a
//                                        circle, in batches through a ring for each neighbour
//
// The first and the last byte of each block are written. Several threads do the same at the same
// time and exist before the clock starts. For a pattern of one thread the process has no other
// thread, because allocators and the C library may be faster then.

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <new>
#include <vector>

#include <pthread.h>
#include <regex.h>
#include <sched.h>

namespace {

constexpr size_t KB = 1024, MB = 1024 * KB;
constexpr size_t MOST_HELD = 64 * MB;        // by a pattern of one thread
constexpr size_t MOST_HELD_EACH = 8 * MB;    // by one thread of several

double now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

[[noreturn]] void fail(const char *what, size_t size) {
    fprintf(stderr, "%s, %zu bytes\n", what, size);
    exit(1);
}

// Uses the block as a program would, so that the compiler cannot remove the call.
inline char *touched(void *block, size_t size) {
    char *bytes = static_cast<char *>(block);
    if (bytes == nullptr) fail("no memory", size);
    bytes[0] = bytes[size - 1] = 1;
    asm volatile("" : "+r"(bytes) : : "memory");
    return bytes;
}

// splitmix64: every allocator sees the same requests in the same order.
struct Random {
    uint64_t state = 42;
    uint64_t next() {
        uint64_t z = state += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    size_t below(size_t limit) { return (next() >> 32) * limit >> 32; }
    size_t around(size_t size) { return size / 2 + below(size); }
};

// The work of a thread: `run(n)` does n times `operations`.
struct Work {
    double operations;
    std::function<void(long)> run;
};
struct Place {
    size_t size;
    int thread, threads;
};

// ---- The entry points.

struct Malloc {
    static void *get(size_t n) { return malloc(n); }
    static void put(void *p, size_t) { free(p); }
};
struct Calloc : Malloc {
    static void *get(size_t n) { return calloc(1, n); }
};
template <size_t ALIGN> struct Aligned : Malloc {
    static void *get(size_t n) { return aligned_alloc(ALIGN, n); }
};
struct Memalign : Malloc {
    static void *get(size_t n) {
        void *p = nullptr;
        return posix_memalign(&p, 64, n) == 0 ? p : nullptr;
    }
};
struct New {
    static void *get(size_t n) { return operator new(n); }
    static void put(void *p, size_t) { operator delete(p); }
};
struct Sized : New {
    static void put(void *p, size_t n) { operator delete(p, n); }
};
struct Nothrow : New {
    static void *get(size_t n) { return operator new(n, std::nothrow); }
};
struct AlignedNew {
    static void *get(size_t n) { return operator new(n, std::align_val_t(64)); }
    static void put(void *p, size_t n) { operator delete(p, n, std::align_val_t(64)); }
};

// ---- The patterns.

template <class Entry> Work pairs(Place place) {
    return {1, [=](long n) {
                while (n-- > 0) Entry::put(touched(Entry::get(place.size), place.size), place.size);
            }};
}

enum Order { SAME, REVERSE };
template <Order ORDER> Work all_then_none(Place place, size_t count) {
    auto blocks = std::make_shared<std::vector<char *>>(count);
    return {double(count), [=](long n) {
                char **all = blocks->data();
                while (n-- > 0) {
                    for (size_t i = 0; i < count; i++) all[i] = touched(malloc(place.size), place.size);
                    for (size_t i = 0; i < count; i++) free(all[ORDER == SAME ? i : count - 1 - i]);
                }
            }};
}
template <Order ORDER> Work few(Place place) { return all_then_none<ORDER>(place, place.size < 300 * KB ? 64 : 8); }
Work thousands(Place place) {
    size_t fit = MOST_HELD / place.size;
    return all_then_none<SAME>(place, fit < 10000 ? fit : 10000);
}

struct Live {
    std::vector<char *> blocks;
    Random random;
    ~Live() {
        for (char *block : blocks) free(block);
    }
    void replace(size_t nominal, long n) {
        while (n-- > 0) {
            char *&block = blocks[random.below(blocks.size())];
            size_t size = random.around(nominal);
            free(block);
            block = touched(malloc(size), size);
        }
    }
};
// (The first replacements make nearly all blocks new. The allocator's time for these is not
// measured.)
Work replace_among(Place place, size_t count) {
    auto live = std::make_shared<Live>();
    live->random.state += place.thread;
    for (size_t i = 0; i < count; i++) live->blocks.push_back(touched(malloc(place.size), place.size));
    live->replace(place.size, 4 * count);
    return {1, [=](long n) { live->replace(place.size, n); }};
}
Work replace(Place place) {
    size_t fit = (place.threads == 1 ? MOST_HELD : MOST_HELD_EACH) / place.size;
    size_t most = place.threads == 1 ? 10000 : 1000;
    return replace_among(place, fit < most ? fit : most);
}
template <size_t COUNT> Work replace_many(Place place) { return replace_among(place, COUNT); }
Work phases(Place place) {
    constexpr size_t COUNT = 30000;
    return {3 * COUNT, [=](long n) {
                while (n-- > 0) {
                    Live live;
                    live.blocks.resize(COUNT);
                    for (char *&block : live.blocks) block = touched(malloc(place.size), place.size);
                    live.replace(place.size, 2 * COUNT);
                }
            }};
}

// A block that gets these sizes in turn.
Work realloc_through(std::vector<size_t> sizes) {
    return {double(sizes.size() - 1), [=](long n) {
                while (n-- > 0) {
                    char *block = touched(malloc(sizes[0]), sizes[0]);
                    for (size_t i = 1; i < sizes.size(); i++) block = touched(realloc(block, sizes[i]), sizes[i]);
                    free(block);
                }
            }};
}
Work realloc_steps(Place place) {
    std::vector<size_t> sizes;
    for (size_t i = 1; i <= 200; i++) sizes.push_back(i * place.size);
    return realloc_through(sizes);
}
Work realloc_half(Place place) {
    std::vector<size_t> sizes;
    for (size_t size = 64; size < place.size; size += size / 2) sizes.push_back(size);
    sizes.push_back(place.size);
    return realloc_through(sizes);
}
Work realloc_fro(Place place) {
    std::vector<size_t> sizes;
    for (int i = 0; i < 100; i++) sizes.push_back(place.size + (i % 2) * place.size / 8);
    return realloc_through(sizes);
}
Work realloc_shrink(Place place) {
    size_t quarter = place.size / 4;
    return realloc_through({place.size, 3 * quarter, 2 * quarter, quarter});
}

// A ring from each thread to the next. The first thread writes `sent`, the next thread `taken`.
struct Ring {
    static constexpr long SLOTS = 4, MOST = 64;
    alignas(64) std::atomic<long> sent{0};
    alignas(64) std::atomic<long> taken{0};
    alignas(64) char *slots[SLOTS][MOST];
};
Ring rings[8];
Work handoff(Place place) {
    size_t batch = place.size < 10 * KB ? 64 : 8;
    Ring &out = rings[place.thread], &in = rings[(place.thread + place.threads - 1) % place.threads];
    return {double(batch), [=, &out, &in](long n) {
                long sent = 0, taken = 0;
                while (sent < n || taken < n) {
                    bool idle = true;
                    long at = out.sent.load(std::memory_order_relaxed);
                    if (sent < n && at - out.taken.load(std::memory_order_acquire) < Ring::SLOTS) {
                        char **slot = out.slots[at % Ring::SLOTS];
                        for (size_t i = 0; i < batch; i++) slot[i] = touched(malloc(place.size), place.size);
                        out.sent.store(at + 1, std::memory_order_release);
                        sent++;
                        idle = false;
                    }
                    at = in.taken.load(std::memory_order_relaxed);
                    if (taken < n && in.sent.load(std::memory_order_acquire) > at) {
                        char **slot = in.slots[at % Ring::SLOTS];
                        for (size_t i = 0; i < batch; i++) free(slot[i]);
                        in.taken.store(at + 1, std::memory_order_release);
                        taken++;
                        idle = false;
                    }
                    if (idle) sched_yield();
                }
            }};
}

// ---- The groups.

struct Group {
    const char *name;
    Work (*make)(Place);
    std::vector<size_t> sizes, sizes_of_threads;
};
const std::vector<size_t> ALL = {16,      48,        300,   600,     800,     2000,     4000,     8000,  10 * KB,
                                 12000,   20 * KB,   24000, 40 * KB, 100 * KB, 300 * KB, 1 * MB, 3 * MB};
const std::vector<size_t> FEW = {64,    300,     800,   2000,    4000,     8000,     10 * KB, 12000,
                                 20 * KB, 24000, 40 * KB, 100 * KB, 300 * KB, 1 * MB};
const std::vector<size_t> MANY = {64, 300, 800, 2000, 4000, 8000, 10 * KB, 12000, 20 * KB, 24000, 40 * KB};
const std::vector<size_t> LIVE = {64, 300, 800, 2000, 4000, 8000, 10 * KB, 20 * KB, 40 * KB, 100 * KB, 300 * KB};
const std::vector<size_t> GROWN = {300, 4000, 24000, 40 * KB, 100 * KB, 300 * KB, 1 * MB, 3 * MB};
const Group groups[] = {
    {"malloc", pairs<Malloc>, ALL, {64, 10 * KB, 40 * KB}},
    {"calloc", pairs<Calloc>, ALL, {}},
    {"aligned_alloc-64", pairs<Aligned<64>>, ALL, {}},
    {"aligned_alloc-4096", pairs<Aligned<4096>>, ALL, {}},
    {"posix_memalign-64", pairs<Memalign>, ALL, {}},
    {"new", pairs<New>, ALL, {}},
    {"new-sized", pairs<Sized>, ALL, {}},
    {"new-nothrow", pairs<Nothrow>, ALL, {}},
    {"new-aligned-64", pairs<AlignedNew>, ALL, {}},
    {"in-order", few<SAME>, FEW, {3 * KB, 10 * KB, 40 * KB, 1 * MB}},
    {"reverse", few<REVERSE>, FEW, {}},
    {"thousands", thousands, MANY, {}},
    {"replace", replace, LIVE, {64, 40 * KB, 200 * KB}},
    {"replace-30000", replace_many<30000>, {2000}, {}},
    {"replace-400000", replace_many<400000>, {128}, {}},
    {"phases", phases, {100, 2000}, {}},
    {"realloc-steps", realloc_steps, {200, 500, 800, 10 * KB}, {}},
    {"realloc-half", realloc_half, {400 * KB, 1200 * KB}, {}},
    {"realloc-fro", realloc_fro, {1 * MB}, {}},
    {"realloc-shrink", realloc_shrink, GROWN, {}},
    {"handoff", handoff, {}, {64, 2 * KB, 40 * KB, 200 * KB}},
};

// ---- The clock.

// Runs n operations until one run takes the requested time, after an uncounted run. `time(n)`
// returns the time of n operations.
template <class Time> double measure(double operations, double least_ns, Time time) {
    double took = time(1);
    for (double n = 1;;) {
        n = std::fmin(std::fmax(std::ceil(n * 1.2 * least_ns / took), 1), 16 * n);
        took = time(long(n));
        if (took >= least_ns) return took / (n * operations);
    }
}

double measure_alone(const Group &group, size_t size, double least_ns) {
    Work work = group.make({size, 0, 1});
    return measure(work.operations, least_ns, [&](long n) {
        double start = now_ns();
        work.run(n);
        return now_ns() - start;
    });
}

// The shared data of a cell's threads; `n` is 0 when they must end.
struct Team {
    const Group &group;
    size_t size;
    int threads;
    long n = 1;
    double operations = 0;
    pthread_barrier_t barrier{};
    std::atomic<int> next{0};
};
void *member(void *argument) {
    Team &team = *static_cast<Team *>(argument);
    int index = team.next++;
    Work work = team.group.make({team.size, index, team.threads});
    if (index == 0) team.operations = work.operations;
    pthread_barrier_wait(&team.barrier);
    for (;;) {
        pthread_barrier_wait(&team.barrier);
        if (team.n == 0) return nullptr;
        work.run(team.n);
        pthread_barrier_wait(&team.barrier);
    }
}
double measure_together(const Group &group, size_t size, int threads, double least_ns) {
    Team team{group, size, threads};
    pthread_barrier_init(&team.barrier, nullptr, threads + 1);
    std::vector<pthread_t> all(threads);
    for (pthread_t &thread : all)
        if (pthread_create(&thread, nullptr, member, &team) != 0) fail("cannot start a thread", size);
    pthread_barrier_wait(&team.barrier);
    double ns = measure(team.operations, least_ns, [&](long n) {
        team.n = n;
        double start = now_ns();
        pthread_barrier_wait(&team.barrier);
        pthread_barrier_wait(&team.barrier);
        return now_ns() - start;
    });
    team.n = 0;
    pthread_barrier_wait(&team.barrier);
    for (pthread_t thread : all) pthread_join(thread, nullptr);
    pthread_barrier_destroy(&team.barrier);
    return ns;
}

// ---- The command line.

struct Cells {
    regex_t pattern;
    explicit Cells(const char *text) {
        if (regcomp(&pattern, text, REG_EXTENDED | REG_NOSUB) != 0) {
            fprintf(stderr, "'%s' is no regular expression\n", text);
            exit(2);
        }
    }
    bool have(const Group &group, size_t size) const {
        char name[64];
        snprintf(name, sizeof name, "%s %zu", group.name, size);
        return regexec(&pattern, name, 0, nullptr, 0) == 0;
    }
};

} // namespace

int main(int argc, char **argv) {
    if ((argc == 2 || argc == 3) && strcmp(argv[1], "list") == 0) {
        Cells cells(argc == 3 ? argv[2] : "");
        for (int threads : {1, 2, 8})
            for (const Group &group : groups)
                for (size_t size : threads == 1 ? group.sizes : group.sizes_of_threads)
                    if (cells.have(group, size)) printf("%d %s %zu\n", threads, group.name, size);
        return 0;
    }
    int threads = argc >= 4 ? atoi(argv[1]) : 0;
    double least_ns = argc >= 4 ? atof(argv[3]) * 1e6 : 0;
    if (argc > 5 || threads < 1 || threads > 8 || !(least_ns > 0)) {
        fprintf(stderr, "usage: sweep list [CELLS] | sweep THREADS GROUP MS [CELLS]\n");
        return 2;
    }
    Cells cells(argc == 5 ? argv[4] : "");
    for (const Group &group : groups)
        if (strcmp(group.name, argv[2]) == 0)
            for (size_t size : threads == 1 ? group.sizes : group.sizes_of_threads)
                if (cells.have(group, size)) {
                    double ns = threads == 1 ? measure_alone(group, size, least_ns)
                                             : measure_together(group, size, threads, least_ns);
                    printf("figure %zu %.2f\n", size, ns);
                }
    return 0;
}
