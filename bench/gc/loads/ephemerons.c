// ephemerons [threads=T] [keys=K] [rounds=N] [limit=KIB]
//
// A table leads from objects to data about them, and keeps neither alive. It has K keys at a time.
// Each round replaces one of them, whose entry then dies, and looks up another key. A walk through
// a bucket drops entries with dead keys, as in runtimes' tables.
//
// With heapwright an entry is an ephemeron. bdwgc has no ephemerons. There the key is hidden, its
// slot is a disappearing link, and the value is an ordinary reference. No value here leads to a
// key.

#include "threads.h"

struct object {
    uint64_t number, spare;
};

struct entry {
    uint64_t head;
    void *key;
    struct object *value;
    struct entry *next;
};

// Keys, or buckets.
struct array {
    uint64_t head;
    void *at[];
};

enum { ARRAY = 1, ENTRY = 2 };

static size_t keys, rounds;

static inline void load_trace(door_tracer *tracer, void *object) {
    struct entry *entry = object;
    if (entry->head == ENTRY) {
        door_ephemeron(tracer, &entry->key, (void **)&entry->value);
        door_mark(tracer, entry->next);
    } else if (entry->head == ARRAY) {
        struct array *array = object;
        for (size_t i = 0; i < keys; i++)
            door_mark(tracer, array->at[i]);
    }
}

static struct array *array_new(struct door *door) {
    struct array *array = door_new(door, sizeof *array + keys * sizeof(void *), DOOR_TRACED);
    array->head = ARRAY;
    return array;
}

static struct object *object_new(struct door *door, uint64_t number) {
    struct object *object = door_new(door, sizeof *object, DOOR_LEAF);
    object->number = number;
    return object;
}

static inline size_t bucket_of(uint64_t number) { return number * 0x9e3779b97f4a7c15u % keys; }

// Drops a bucket's dead first entries. Returns its first live entry, if any.
static struct entry *first_live(struct door *door, void *parent, void **slot) {
    struct entry *entry = *slot;
    if (entry == NULL || entry->key != NULL)
        return entry;
    while (entry != NULL && entry->key == NULL)
        entry = entry->next;
    door_write(door, parent, slot, entry);
    return entry;
}

static struct object *look_up(struct door *door, struct array *buckets, struct object *key) {
    void *parent = buckets, **slot = &buckets->at[bucket_of(key->number)];
    for (;;) {
        struct entry *entry = first_live(door, parent, slot);
        if (entry == NULL || door_is_key(entry->key, key))
            return entry == NULL ? NULL : entry->value;
        parent = entry;
        slot = (void **)&entry->next;
    }
}

static void add(struct door *door, struct array *buckets, struct object *key, struct object *value) {
    void **slot = &buckets->at[bucket_of(key->number)];
    struct entry *entry = door_new(door, sizeof *entry, DOOR_TRACED);
    entry->head = ENTRY;
    entry->value = value;
    entry->next = first_live(door, buckets, slot);
    door_set_key(entry, &entry->key, key);
    door_write(door, buckets, slot, entry);
}

static uint64_t work(struct door *door, size_t thread) {
    uint64_t random = thread + 1, sum = 0;
    struct array *kept = array_new(door), *buckets = array_new(door);
    for (uint64_t i = 0; i < keys + rounds; i++) {
        struct object *key = object_new(door, i), *value = object_new(door, i);
        door_write(door, kept, &kept->at[i % keys], key);
        add(door, buckets, key, value);
        random = random * 6364136223846793005u + 1442695040888963407u;
        struct object *other = kept->at[(random >> 32) % (i < keys ? i + 1 : keys)];
        struct object *found = look_up(door, buckets, other);
        if (found == NULL || found->number != other->number)
            die(1, "a key that lives has lost its value");
        sum += found->number;
    }
    return sum * (thread + 1);
}

int main(int argc, char **argv) {
    settings_begin("ephemerons", argc, argv);
    size_t threads = threads_setting();
    keys = setting("keys", 100000, 1, 1 << 24);
    rounds = setting("rounds", 1000000, 0, 1 << 28);
    load_run(threads, limit_setting(0), work);
    object_field(3 * (keys + rounds) * threads);
    return door_end();
}
