#include <stdlib.h>
int main(void) {
    char *volatile block = malloc(1234);
    block = NULL;
    return block != NULL;
}
