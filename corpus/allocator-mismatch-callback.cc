// finds: allocator-mismatch
// words: 48-byte
// stack: c_library_close
// A C interface takes a function that frees; free is the wrong one.
#include "corpus.h"

struct Session { char bytes[48]; };
static void drop(void *p) { delete static_cast<Session *>(p); }

extern "C" NOINLINE void c_library_close(void *user, void (*release)(void *))
{
    release(user);
    hide(&release);
}

int main()
{
    c_library_close(hide(new Session), BUG(free) FIX(drop));
    return 0;
}
