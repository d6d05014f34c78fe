// finds: buffer-overflow
// sizes: 24 3000 400000
// words: by printf of
// needs: bounds
// A view is printed as if it had an end.
#include "../corpus.h"
#include <string_view>

int main(void)
{
    char *p = new char[SIZE];
    memset(p, 'a', SIZE);
    std::string_view view(p, SIZE);
    BUG(printf("%s\n", hide((char *)view.data()));)
    FIX(printf("%.*s\n", (int)view.size(), hide((char *)view.data()));)
    delete[] hide(p);
    return 0;
}
