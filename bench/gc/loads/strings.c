// strings [threads=T] [texts=N] [kept=K] [lines=L] [limit=KIB]
//
// The work of an interpreter for a script that counts words. For each of N texts, lines are
// composed word by word, each step a new string, and go into a growing array. Then each line is
// split, and each word is looked up in a hash table from strings to arrays of the lines with the
// word. The tables of the last K texts are kept.
//
//   table --> storage --> key: string     array --> storage --> line, line, ...
//                    \--> value: array              (doubles when it is full)
//
// Strings hold no references (leaves of the heap); most of them die at once. Storage is
// of every width from two words to some pages. Each thread has its own texts.

#include "threads.h"

enum tag { STRING = 1, ARRAY, TABLE, STORAGE };
enum { WORDS_A_LINE = 12, FIRST_WORDS = 4, VOCABULARY = 2000 };

struct string {
    uint32_t length, hash;
    char bytes[];
};

struct storage {
    uint32_t tag, count;
    void *words[];
};

// An array or a table. In `storage` an array has its things, and a table has pairs of key and
// value, half of them empty.
struct list {
    uint32_t tag;
    uint32_t count;
    struct storage *storage;
};

static size_t texts, kept, lines;

static inline void load_trace(door_tracer *tracer, void *object) {
    struct storage *storage = object;
    if (storage->tag == STORAGE) {
        for (size_t i = 0; i < storage->count; i++)
            door_mark(tracer, storage->words[i]);
    } else {
        door_mark(tracer, ((struct list *)object)->storage);
    }
}

static struct string *string_new(struct door *door, size_t length) {
    struct string *string = door_new(door, sizeof *string + length, DOOR_LEAF);
    string->length = (uint32_t)length;
    string->hash = 0;
    return string;
}

static struct string *join(struct door *door, const struct string *left, const char *right, size_t length) {
    struct string *both = string_new(door, left->length + 1 + length);
    memcpy(both->bytes, left->bytes, left->length);
    both->bytes[left->length] = ' ';
    memcpy(both->bytes + left->length + 1, right, length);
    return both;
}

static uint32_t hash(struct string *string) {
    if (string->hash == 0) {
        uint32_t sum = 2166136261u;
        for (size_t i = 0; i < string->length; i++)
            sum = (sum ^ (unsigned char)string->bytes[i]) * 16777619u;
        string->hash = sum | 1;
    }
    return string->hash;
}

static struct storage *storage_new(struct door *door, size_t count) {
    struct storage *storage = door_new(door, sizeof *storage + count * sizeof(void *), DOOR_TRACED);
    storage->tag = STORAGE;
    storage->count = (uint32_t)count;
    return storage;
}

static struct list *list_new(struct door *door, enum tag tag) {
    struct list *list = door_new(door, sizeof *list, DOOR_TRACED);
    list->tag = tag;
    door_write(door, list, (void **)&list->storage, storage_new(door, FIRST_WORDS));
    return list;
}

static void append(struct door *door, struct list *array, void *thing) {
    struct storage *storage = array->storage;
    if (array->count == storage->count) {
        struct storage *larger = storage_new(door, 2 * (size_t)storage->count);
        for (size_t i = 0; i < storage->count; i++)
            door_write(door, larger, &larger->words[i], storage->words[i]);
        door_write(door, array, (void **)&array->storage, larger);
        storage = larger;
    }
    door_write(door, storage, &storage->words[array->count], thing);
    array->count++;
}

// The place of a key's pair, or the place where it would be.
static size_t place(const struct storage *storage, struct string *key) {
    size_t mask = storage->count / 2 - 1;
    for (size_t at = hash(key) * 0x9e3779b9u >> 7 & mask;; at = (at + 1) & mask) {
        struct string *there = storage->words[2 * at];
        if (there == NULL ||
            (there->hash == key->hash && there->length == key->length && memcmp(there->bytes, key->bytes, key->length) == 0))
            return 2 * at;
    }
}

static void put(struct door *door, struct storage *storage, struct string *key, void *value) {
    size_t at = place(storage, key);
    door_write(door, storage, &storage->words[at], key);
    door_write(door, storage, &storage->words[at + 1], value);
}

// The array of a word. A new word gets a new array.
static struct list *lookup(struct door *door, struct list *table, struct string *key) {
    size_t at = place(table->storage, key);
    if (table->storage->words[at] != NULL)
        return table->storage->words[at + 1];
    struct list *array = list_new(door, ARRAY);
    if (2 * (table->count + 1) > table->storage->count / 2) {
        struct storage *old = table->storage, *larger = storage_new(door, 2 * (size_t)old->count);
        for (size_t i = 0; i < old->count; i += 2)
            if (old->words[i] != NULL)
                put(door, larger, old->words[i], old->words[i + 1]);
        door_write(door, table, (void **)&table->storage, larger);
    }
    put(door, table->storage, key, array);
    table->count++;
    return array;
}

// The vocabulary is made before the measurement: inventing words is no work of an interpreter.
static struct word {
    size_t length;
    char text[16];
} vocabulary[VOCABULARY];

static void think_of_words(void) {
    for (size_t number = 0; number < VOCABULARY; number++) {
        struct word *word = &vocabulary[number];
        uint64_t letters = stream(number);
        word->length = 2 + letters % 9;
        for (size_t i = 0; i < word->length; i++)
            word->text[i] = (char)('a' + (letters >> (8 + 4 * i) & 15));
    }
}

// A word: some are frequent, most are rare.
static const struct word *next_word(uint64_t *random) {
    uint64_t r = next_random(random);
    return &vocabulary[(r % VOCABULARY) * (r >> 32 & 0xffff) >> 16];
}

static struct list *write_lines(struct door *door, uint64_t *random) {
    struct list *all = list_new(door, ARRAY);
    for (size_t i = 0; i < lines; i++) {
        struct string *line = string_new(door, 0);
        for (size_t n = 0; n < WORDS_A_LINE; n++) {
            const struct word *word = next_word(random);
            line = join(door, line, word->text, word->length);
        }
        append(door, all, line);
    }
    return all;
}

static struct list *count_words(struct door *door, const struct list *all) {
    struct list *table = list_new(door, TABLE);
    for (size_t i = 0; i < all->count; i++) {
        struct string *line = all->storage->words[i];
        for (size_t from = 1, to; from < line->length; from = to + 1) {
            for (to = from; to < line->length && line->bytes[to] != ' '; to++)
                ;
            struct string *key = string_new(door, to - from);
            memcpy(key->bytes, line->bytes + from, to - from);
            append(door, lookup(door, table, key), line);
        }
    }
    return table;
}

static uint64_t look(const struct list *table) {
    uint64_t sum = table->count;
    for (size_t i = 0; i < table->storage->count; i += 2) {
        const struct string *key = table->storage->words[i];
        const struct list *array = table->storage->words[i + 1];
        if (key == NULL)
            continue;
        const struct string *last = array->storage->words[array->count - 1];
        sum += (uint64_t)key->hash * array->count + last->length;
    }
    return sum;
}

static uint64_t work(struct door *door, size_t thread) {
    uint64_t random = stream(thread), sum = 0;
    struct storage *ring = storage_new(door, kept);
    for (size_t i = 0; i < texts; i++) {
        struct list *table = count_words(door, write_lines(door, &random));
        door_write(door, ring, &ring->words[i % kept], table);
        // Reads the oldest text, as proof that it still exists.
        const struct list *oldest = ring->words[(i + 1) % kept];
        sum += look(oldest != NULL ? oldest : table);
    }
    return sum * (thread + 1);
}

int main(int argc, char **argv) {
    settings_begin("strings", argc, argv);
    size_t threads = threads_setting();
    texts = setting("texts", 600, 1, 10000000);
    kept = setting("kept", 64, 1, 100000);
    lines = setting("lines", 500, 1, 1000000);
    think_of_words();
    load_run(threads, limit_setting(0), work);
    return door_end();
}
