// A handler that throws: compiled with -fnon-call-exceptions, as runtimes of other
// languages do it. Only the kernel's frame is between the fault and the handler.
#include "observe.h"
#include <signal.h>
#include <stdexcept>
#include <sys/mman.h>

static int look(const seen *)
{
    return NOT_OURS;
}

static void handler(int)
{
    throw std::runtime_error("a fault");
}

__attribute__((noinline)) static char read(volatile char *at)
{
    return *at;
}

int main()
{
    if (hw_observe)
        hw_observe(look);
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = SA_NODEFER;
    CHECK(sigaction(SIGSEGV, &action, nullptr) == 0);
    char *bad = (char *)mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int caught = 0;
    for (int i = 0; i < 10; i++) {
        try {
            read(bad);
        } catch (const std::runtime_error &) {
            caught++;
        }
    }
    CHECK(caught == 10);
    return 0;
}
