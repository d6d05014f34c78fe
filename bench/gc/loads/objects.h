// A small runtime as Ruby has one: strings, arrays, hashes and objects with fields, on a
// collected heap of heapwright's. For the loads that compare layouts, not collectors.
//
//   0      kind, outside, spare
//   4      count      bytes of a string, words of the others; a hash counts its pairs
//   8      capacity   bytes that the body has
//   12     hash       of a string, 0: not yet known
//   16     the body, or a pointer to it (outside)
//
// A body that fits the layout's widest slot stands in the object; any other is in malloc, is
// told to the collector, and goes back in the callback `free`. In the layout `single` each
// object is one slot of 40 bytes, as before #18045: 24 bytes of body.
//
// Every object is HW_GC_FREED, as in Ruby, where obj_free looks at each.
//
// A body in malloc lives as long as its object, and a local pointer to the body does not
// keep the object: whoever allocates while holding one says keep(object) after it.

#ifndef OBJECTS_H
#define OBJECTS_H

#include "door_heapwright.h"

enum kind { STRING = 1, ARRAY, HASH, OBJECT };
enum { HEAD = 16, SINGLE_SLOT = 40, MOST_EMBEDDED = 4096 };

struct object {
    uint8_t kind, outside;
    uint16_t spare;
    uint32_t count, capacity, hash;
    union {
        void *body;
        struct object *words[1];
        char bytes[8];
    } at;
};

_Static_assert(offsetof(struct object, at) == HEAD, "the head has 16 bytes");

// The one mutator of these loads, and the widest object with its body inside.
static hw_gc_mutator *mutator;
static size_t embedded_most;
// Bytes of body in the slot that an object of (8 * i) bytes gets.
static uint16_t body_room[MOST_EMBEDDED / 8 + 1];
static uint64_t freed_objects, freed_bodies;

#define keep(object) __asm__ volatile("" : : "r"(object) : "memory")

static inline char *bytes_of(struct object *object) { return object->outside ? object->at.body : object->at.bytes; }

static inline struct object **words_of(struct object *object) {
    return object->outside ? object->at.body : object->at.words;
}

// The words in which there may be references.
static inline size_t words_used(const struct object *object) {
    return object->kind == HASH ? object->capacity / sizeof(void *) : object->count;
}

static inline void load_trace(door_tracer *tracer, void *traced) {
    struct object *object = traced;
    if (object->kind == STRING)
        return;
    size_t count = words_used(object);
    struct object **words = words_of(object);
    // (Not hw_gc_mark_range: it comes back later to what is still an object's slots, and these
    // move out when the body grows.)
    for (size_t i = 0; i < count; i++)
        hw_gc_mark(tracer, words[i]);
}

static void object_died(void *dead, size_t size, void *data) {
    (void)size;
    (void)data;
    struct object *object = dead;
    freed_objects++;
    if (object->outside) {
        freed_bodies++;
        free(object->at.body);
        hw_gc_external(mutator, -(ptrdiff_t)object->capacity);
    }
}

static inline const char *object_type(const void *object, void *data) {
    (void)data;
    static const char *const names[] = { "", "string", "array", "hash", "object" };
    return names[((const struct object *)object)->kind];
}

// The heap, with the settings of the command line; the rest of the program is `body`, and what
// it keeps on its stack lives.
static __attribute__((noinline)) uint64_t with_heap(const hw_gc_options *options, uint64_t (*body)(void)) {
    hw_gc_runtime runtime = {
        .size = sizeof runtime, .trace = door_trace, .free = object_died, .type_name = object_type
    };
    door_heap_new(options, &runtime);
    mutator = hw_gc_attach(door_heap);
    if (mutator == NULL)
        die(3, "out of memory");
    hw_gc_scan_stack(mutator, __builtin_frame_address(0));
    size_t largest = hw_gc_largest_slot(door_heap);
    embedded_most = largest < MOST_EMBEDDED ? largest : MOST_EMBEDDED;
    for (size_t size = HEAD + sizeof(void *); size <= embedded_most; size += 8) {
        size_t slot = hw_gc_slot_size(door_heap, size);
        body_room[size / 8] = (uint16_t)((slot < embedded_most ? slot : embedded_most) / 8 * 8 - HEAD);
    }
    uint64_t sum = body();
    return sum;
}

static inline void *allocated(void *memory) {
    if (__builtin_expect(memory == NULL, 0))
        die(3, "out of memory");
    return memory;
}

static inline struct object *object_make(enum kind kind, size_t bytes) {
    // At least a pointer, so that the body can move out when it grows.
    size_t size = bytes <= sizeof(void *) ? HEAD + sizeof(void *) : (HEAD + bytes + 7) / 8 * 8;
    bool outside = size > MOST_EMBEDDED || size > embedded_most;
    uint32_t how = (kind == STRING ? HW_GC_LEAF : HW_GC_TRACED) | HW_GC_FREED;
    struct object *object = allocated(hw_gc_new(mutator, outside ? HEAD + sizeof(void *) : size, how));
    object->kind = (uint8_t)kind;
    object->outside = 0;
    object->count = object->hash = 0;
    if (outside) {
        // (calloc, since what is traced must not hold what was there before.)
        object->at.body = allocated(kind == STRING ? malloc(bytes) : calloc(1, bytes));
        object->capacity = (uint32_t)bytes;
        object->outside = 1;
        hw_gc_external(mutator, (ptrdiff_t)bytes);
    } else {
        object->capacity = body_room[size / 8];
    }
    return object;
}

// Makes room for `bytes` of body; what was there stays.
static inline void body_grow(struct object *object, size_t bytes) {
    if (bytes <= object->capacity)
        return;
    size_t old = object->capacity, wanted = old + old / 2;
    wanted = ((wanted > bytes ? wanted : bytes) + 7) / 8 * 8;
    if (object->outside) {
        object->at.body = allocated(realloc(object->at.body, wanted));
    } else {
        void *body = allocated(malloc(wanted));
        memcpy(body, object->at.bytes, old);
        object->at.body = body;
        object->outside = 1;
        old = 0;
    }
    if (object->kind != STRING)
        memset((char *)object->at.body + object->capacity, 0, wanted - object->capacity);
    object->capacity = (uint32_t)wanted;
    hw_gc_external(mutator, (ptrdiff_t)(wanted - old));
}

static inline void word_write(struct object *object, size_t at, struct object *value) {
    hw_gc_write(mutator, object, (void **)&words_of(object)[at], value);
}

// Strings.

static inline struct object *string_new(const char *bytes, size_t length) {
    struct object *string = object_make(STRING, length);
    memcpy(bytes_of(string), bytes, length);
    string->count = (uint32_t)length;
    return string;
}

static inline void string_append(struct object *string, const char *bytes, size_t length) {
    body_grow(string, string->count + length);
    memcpy(bytes_of(string) + string->count, bytes, length);
    string->count += (uint32_t)length;
}

static inline void string_add(struct object *string, struct object *other) {
    string_append(string, bytes_of(other), other->count);
}

static inline struct object *substring(struct object *string, size_t from, size_t length) {
    struct object *part = object_make(STRING, length);
    memcpy(bytes_of(part), bytes_of(string) + from, length);
    part->count = (uint32_t)length;
    keep(string);
    return part;
}

static inline uint32_t hash_bytes(const char *bytes, size_t length) {
    uint32_t sum = 2166136261u;
    for (size_t i = 0; i < length; i++)
        sum = (sum ^ (unsigned char)bytes[i]) * 16777619u;
    return sum | 1;
}

static inline uint32_t string_hash(struct object *string) {
    if (string->hash == 0)
        string->hash = hash_bytes(bytes_of(string), string->count);
    return string->hash;
}

// Arrays, and objects with fields.

static inline struct object *array_new(size_t room) { return object_make(ARRAY, room * sizeof(void *)); }

static inline struct object *fields_new(size_t count) {
    struct object *object = object_make(OBJECT, count * sizeof(void *));
    object->count = (uint32_t)count;
    return object;
}

static inline void push(struct object *array, struct object *value) {
    body_grow(array, (array->count + 1) * sizeof(void *));
    // The word first: what is counted is looked at.
    word_write(array, array->count, value);
    array->count++;
}

// Hashes with strings as keys: pairs of words, each at the first free place from where its
// key's hash says.

static inline size_t pair_of(struct object **words, size_t pairs, struct object *key) {
    for (size_t at = (size_t)(string_hash(key) * 0x9e3779b9u >> 5) % pairs;; at = at + 1 == pairs ? 0 : at + 1) {
        struct object *there = words[2 * at];
        if (there == NULL || (there->hash == key->hash && there->count == key->count &&
                              memcmp(bytes_of(there), bytes_of(key), key->count) == 0))
            return 2 * at;
    }
}

static inline size_t hash_pairs(const struct object *hash) { return hash->capacity / (2 * sizeof(void *)); }

static inline struct object *hash_new(size_t pairs) { return object_make(HASH, (pairs + pairs / 2 + 1) * 2 * sizeof(void *)); }

static inline struct object *hash_get(struct object *hash, struct object *key) {
    struct object **words = words_of(hash);
    return words[pair_of(words, hash_pairs(hash), key) + 1];
}

static inline void hash_put(struct object *hash, struct object *key, struct object *value) {
    struct object **words = words_of(hash);
    size_t pairs = hash_pairs(hash), at = pair_of(words, pairs, key);
    if (words[at] == NULL) {
        // A quarter stays free.
        if (4 * ((size_t)hash->count + 1) > 3 * pairs) {
            size_t held = hash->count;
            struct object **old = allocated(malloc(held * 2 * sizeof *old)), **to = old;
            for (size_t i = 0; i < 2 * pairs; i += 2)
                if (words[i] != NULL) {
                    *to++ = words[i];
                    *to++ = words[i + 1];
                }
            body_grow(hash, 2 * hash->capacity);
            words = words_of(hash);
            memset(words, 0, hash->capacity);
            pairs = hash_pairs(hash);
            // Nothing is allocated from the heap while they are out of it; each is told again.
            for (size_t i = 0; i < 2 * held; i += 2) {
                size_t place = pair_of(words, pairs, old[i]);
                word_write(hash, place, old[i]);
                word_write(hash, place + 1, old[i + 1]);
            }
            free(old);
            at = pair_of(words, pairs, key);
        }
        hash->count++;
        word_write(hash, at, key);
    }
    word_write(hash, at + 1, value);
}

static inline void object_fields(void) {
    door_fields();
    field("freed_objects", freed_objects);
    field("freed_bodies", freed_bodies);
}

#endif
