// leaks: definite 1 SIZE at A in run
// sizes: 24 3000
// flags: -pthread
// std::thread: a task's result is given to nobody.
#include "corpus.h"
#include <thread>

NOINLINE void run()
{
    char *result = hide(new char[SIZE]); // LEAK A
    POKE(result, 1);
    FIX(delete[] result;)
}

int main()
{
    std::thread(run).join();
    return 0;
}
