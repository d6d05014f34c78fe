/* Functions that lose blocks or give them back, for the listeners' tests (ci/integrations.sh
   listeners). */
#include <cstdlib>
#include <vector>
static char *volatile block;
__attribute__((noinline)) static void forget() { block = static_cast<char *>(malloc(1234)); block = nullptr; }
__attribute__((noinline)) static void give_back() { block = static_cast<char *>(malloc(1234)); free(block); block = nullptr; }
/* A block that a pointer leads to is not lost. */
static std::vector<int> *const kept = new std::vector<int>;
struct Shop {
    std::vector<int> *goods = new std::vector<int>(100);
    ~Shop() { delete goods; }
};
