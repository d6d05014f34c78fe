// sites MIB
//
// A program whose live memory is known for each site: MIB mebibytes, from 48 call sites. Site i
// has a share of 1/i, and its own sizes, from 16 bytes to 6 KiB. For each block that stays two
// more come and go, in a pseudo-random order. The remaining blocks are live at the program's end.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>
constexpr int SITES = 48;
// One call of malloc for each number, so that each has its own stack.
template <int N> __attribute__((noinline)) void *block_of(size_t size) {
    void *block = malloc(size);
    asm volatile("" : : "r"(block), "i"(N) : "memory"); // no tail call, and no two alike
    return block;
}
template <int... N> constexpr std::array<void *(*)(size_t), SITES> all(std::integer_sequence<int, N...>) { return {block_of<N>...}; }
static constexpr auto SITE = all(std::make_integer_sequence<int, SITES>{});
static uint64_t state = 1;
static uint64_t random_number() {
    state ^= state << 13; state ^= state >> 7; state ^= state << 17;
    return state;
}
int main(int argc, char **argv) {
    double harmonic = 0, total = (argc > 1 ? atof(argv[1]) : 64) * (1 << 20);
    if (!(total > 0)) { fprintf(stderr, "usage: sites MIB\n"); return 2; }
    for (int i = 1; i <= SITES; i++) harmonic += 1.0 / i;
    double wanted[SITES], have[SITES] = {};
    for (int i = 0; i < SITES; i++) wanted[i] = total / harmonic / (i + 1);
    std::vector<int> open;
    for (int i = 0; i < SITES; i++) open.push_back(i);
    while (!open.empty()) {
        size_t at = random_number() % open.size();
        int site = open[at];
        size_t size = 16 + random_number() % (128u << site % 6 >> random_number() % 3) + site % 6 * 384;
        void *gone = SITE[site](size), *stays = SITE[site](size), *too = SITE[site](size);
        free(gone); free(too);
        if (!stays) { fprintf(stderr, "sites: no memory\n"); return 1; }
        have[site] += size;
        if (have[site] >= wanted[site]) { open[at] = open.back(); open.pop_back(); }
    }
}
