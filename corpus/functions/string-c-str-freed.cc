// finds: use-after-free
// sizes: 24 3000 400000
// words: by strlen of
// needs: bounds
// The characters of a string that has gone are measured.
#include "../corpus.h"
#include <string>

int main(void)
{
    std::string *text = new std::string(SIZE, 'a');
    const char *p = text->c_str();
    BUG(delete hide(text);)
    if (strlen(hide((char *)p)) == 7)
        return 1;
    FIX(delete hide(text);)
    return 0;
}
