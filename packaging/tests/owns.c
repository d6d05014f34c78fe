#include <heapwright.h>
#include <stdlib.h>
int main(void) { return !hw_owns(malloc(10)); }
