// finds: interior-free
// sizes: 40 3000
// words: %SIZE%-byte
// A view's data is freed, after its front was cut off.
#include "corpus.h"
#include <string_view>

int main()
{
    char *text = static_cast<char *>(memset(malloc(SIZE), ' ', SIZE));
    std::string_view view(text, SIZE);
    view.remove_prefix(3);
    BUG(free(hide(const_cast<char *>(view.data())));)
    free(hide(text));
    return 0;
}
