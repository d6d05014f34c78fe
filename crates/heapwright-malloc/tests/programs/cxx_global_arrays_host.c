/* A program that is linked with cxx_global_arrays. */
#include "check.h"
int of_global_arrays(void);
int main(void) {
    CHECK(of_global_arrays() == 7);
    return 0;
}
