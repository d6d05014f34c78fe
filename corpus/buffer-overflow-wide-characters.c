// finds: buffer-overflow
// words: 44-byte
// asan: blind to this function of the C library
// Wide characters, with the byte's NUL at their end.
#include "corpus.h"
#include <wchar.h>

int main(void)
{
    const wchar_t *text = L"hello wide!";
    wchar_t *copy = malloc(wcslen(text) * sizeof *copy FIX(+ sizeof *copy));
    wcscpy(hide(copy), text);
    free(hide(copy));
    return 0;
}
