// garbage [threads=T] [size=BYTES] [kind=traced|leaf] [total=MIB] [limit=KIB]
//
// Objects of one size that are dropped immediately: the cost of an object and its share of
// collections. One word of each is written: the program does not need the other words cleared.

#include "threads.h"

static size_t size, count;
static uint32_t kind;

static inline void load_trace(door_tracer *tracer, void *object) {
    (void)tracer;
    (void)object;
}

static uint64_t work(struct door *door, size_t thread) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t *volatile object = door_new(door, size, kind);
        object[0] = i + thread;
        sum += object[0];
    }
    return sum;
}

int main(int argc, char **argv) {
    static const char *const kinds[] = { "traced", "leaf", NULL };
    settings_begin("garbage", argc, argv);
    size_t threads = threads_setting();
    size = setting("size", 20000, 8, (size_t)1 << 30);
    kind = setting_choice("kind", kinds) == 0 ? DOOR_TRACED : DOOR_LEAF;
    count = (setting("total", 4096, 1, 1 << 20) << 20) / size;
    load_run(threads, limit_setting(131072), work);
    object_field(count * threads);
    return door_end();
}
