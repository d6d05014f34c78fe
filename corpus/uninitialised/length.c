// finds: end
// A length is not set; the block that it asks for cannot be had.
#include "../corpus.h"

struct text {
    size_t length;
    char *bytes;
};

int main(void)
{
    struct text *text = malloc(sizeof *text);
    FIX(text->length = 0;)
    text->bytes = malloc(((struct text *)hide(text))->length + 1);
    if (text->bytes == NULL)
        return 3;
    text->bytes[0] = 0;
    free(text->bytes);
    free(text);
    return 0;
}
