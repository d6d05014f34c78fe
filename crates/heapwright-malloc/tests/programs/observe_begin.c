/* A library to preload: its program runs as in debug mode. */
#include "observe.h"

static int look(const struct seen *seen)
{
    (void)seen;
    return NOT_OURS;
}

__attribute__((constructor)) static void begin(void)
{
    if (hw_observe)
        hw_observe(look);
}
