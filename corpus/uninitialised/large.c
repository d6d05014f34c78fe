// finds: end
// A byte far into a block of its own pages.
#include "../corpus.h"

int main(void)
{
    size_t size = 3 << 20;
    char *image = malloc(size);
    FIX(memset(image, 0, size);)
    image[0] = 0;
    int is_set = ((char *)hide(image))[2000000] != 0;
    free(image);
    return is_set ? 9 : 0;
}
