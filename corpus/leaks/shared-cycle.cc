// leaks: definite 1 ? at A in main with 1 ?
// lsan: differs It calls both of a cycle indirectly lost, and nothing directly.
// Two objects share each other; the fixed one uses a weak_ptr for the way back.
#include "corpus.h"
#include <memory>

struct node {
    std::shared_ptr<node> next;
    BUG(std::shared_ptr<node>) FIX(std::weak_ptr<node>) back;
};

int main()
{
    for (int i = 0; i < 1; i++) {
        std::shared_ptr<node> ends[2];
        for (auto &end : ends)
            end = std::make_shared<node>(); // LEAK A
        ends[0]->next = ends[1];
        ends[1]->back = ends[0];
    }
    wipe();
    return 0;
}
