/* A program in C that calls operator new by its symbol, and requests too much. */
#include "check.h"

void *_Znwm(size_t);
void *_ZnwmRKSt9nothrow_t(size_t, const void *);
void _ZdlPv(void *);

int main(void)
{
    void *p = _Znwm(100);
    CHECK(p != NULL);
    memset(p, 1, 100);
    _ZdlPv(p);
    p = _ZnwmRKSt9nothrow_t(100, "");
    CHECK(p != NULL);
    _ZdlPv(p);
    p = _Znwm(SIZE_MAX / 2);
    OPAQUE(p);
    return 0;
}
