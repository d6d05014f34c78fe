// finds: stdout
// A struct is written whole, with the three bytes between its members.
#include "../corpus.h"

struct record {
    char kind;
    int value;
};

int main(void)
{
    struct record *record = FIX(calloc(1, sizeof *record)) BUG(malloc(sizeof *record));
    record->kind = 'r';
    record->value = 7;
    CHECK(write(1, record, sizeof *record) == sizeof *record);
    free(record);
    return 0;
}
