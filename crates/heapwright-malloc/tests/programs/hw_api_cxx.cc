// heapwright.h in C++: the same declarations, with C linkage.
#include <heapwright.h>
#include "check.h"
#include <memory>

struct Destroy {
    void operator()(hw_heap *heap) const { hw_heap_destroy(heap); }
};

int main()
{
    std::unique_ptr<hw_heap, Destroy> heap(hw_heap_new());
    CHECK(heap != nullptr);
    int *numbers = static_cast<int *>(hw_heap_alloc_zeroed(heap.get(), 100, sizeof(int)));
    CHECK(numbers != nullptr && numbers[99] == 0);
    hw_description d = hw_describe(numbers + 1);
    CHECK(d.kind == HW_KIND_SMALL && d.block == numbers && d.offset == sizeof(int));
    size_t seen = 0;
    CHECK(hw_heap_walk(
        [](const hw_block *block, void *context) {
            *static_cast<size_t *>(context) += block->in_use;
            return true;
        },
        &seen));
    CHECK(seen > 0);
    hw_statistics stats;
    CHECK(hw_get_stats(&stats, sizeof stats) == sizeof stats && stats.heaps_live == 1);
    return 0;
}
