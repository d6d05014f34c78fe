/* What the listeners' tests lose and give back (ci/integrations.sh listeners). */
#include <cstdlib>
#include <vector>
static char *volatile block;
__attribute__((noinline)) static void forget() { block = static_cast<char *>(malloc(1234)); block = nullptr; }
__attribute__((noinline)) static void give_back() { block = static_cast<char *>(malloc(1234)); free(block); block = nullptr; }
/* What is still led to is not lost. */
static std::vector<int> *const kept = new std::vector<int>;
struct Shop {
    std::vector<int> *goods = new std::vector<int>(100);
    ~Shop() { delete goods; }
};
