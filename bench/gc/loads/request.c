// request [requests=N] [warm=N] [classes=N] [entries=N] [records=N] [rare=N]
//         [layout=...] ...
//
// A server that answers requests, as the load of #18045's ticket did (railsbench): what a
// request costs when many objects of mixed width are made for it and die with it, while most of the
// heap stays.
//
//   boot      classes, each with fields, a name and a hash of methods: made once, then
//             never again, so their pools stay full
//   caches    entries of mixed width that live for thousands of requests; each request puts
//             some in the place of the oldest
//   request   headers and parameters are parsed into a hash of strings; records are loaded,
//             with fields and attributes of mixed width; a page is put together in
//             a string that grows; all of it dies with the request
//   burst     one request in RARE asks for a report: some hundred objects of the widest slots, of
//             which a part stays in the cache. A pool that seldom is allocated from then
//             has little to sweep and may not grow much: a heap that swept to the end would do
//             so here
//
// For each request: wall time, the thread's processor time, and how much of it the world stood
// still or a step swept (from the heap's statistics, read outside of the time). Lines `rss` say
// what was resident, a hundred times over the run.

#include "objects.h"
#include "percentiles.h"

enum {
    // Of a class.
    CLASS_FIELDS = 18,
    METHODS = 10,
    // Of a request.
    HEADERS = 16,
    ATTRIBUTES = 10,
    REPLACED = 12,
    REPORT = 400,
    REPORT_KEPT = 40,
    // Times that memory is looked at.
    SAMPLES = 100,
    NAMES = 64,
};

static const char filler[] =
    "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore magna "
    "aliqua. Ut enim ad minim veniam, quis nostrud exercitation ullamco laboris nisi ut aliquip ex ea commodo consequat. "
    "Duis aute irure dolor in reprehenderit in voluptate velit esse cillum dolore eu fugiat nulla pariatur. Excepteur "
    "sint occaecat cupidatat non proident, sunt in culpa qui officia deserunt mollit anim id est laborum. Sed ut "
    "perspiciatis unde omnis iste natus error sit voluptatem accusantium doloremque laudantium, totam rem aperiam, eaque "
    "ipsa quae ab illo inventore veritatis et quasi architecto beatae vitae dicta sunt explicabo. Nemo enim ipsam "
    "voluptatem quia voluptas sit aspernatur aut odit aut fugit.";

static size_t requests, warm, classes, entries, rows, rare;
static uint64_t randoms;

struct site {
    struct object *classes, *cache, *reports, *names;
    size_t oldest, oldest_report;
};

// Bytes of a body. As objects' widths were counted in Rails: most in the narrowest slot, each
// doubling a third of the one before, a few beyond every slot.
static size_t width(void) {
    uint64_t r = next_random(&randoms);
    size_t least = 8, more = (size_t)(r >> 32);
    unsigned part = (unsigned)(r & 1023);
    if (part < 620)
        return least + more % 17;
    if (part < 850)
        return 25 + more % 40;
    if (part < 950)
        return 65 + more % 80;
    if (part < 995)
        return 145 + more % 160;
    if (part < 1018)
        return 305 + more % 320;
    return 700 + more % 3000;
}

static struct object *text_new(size_t length) {
    struct object *string = object_make(STRING, length);
    char *bytes = bytes_of(string);
    for (size_t at = 0; at < length; at += sizeof filler - 1)
        memcpy(bytes + at, filler, length - at < sizeof filler - 1 ? length - at : sizeof filler - 1);
    // So that strings differ.
    memcpy(bytes, &randoms, length < 4 ? length : 4);
    string->count = (uint32_t)length;
    return string;
}

static struct object *name_new(size_t number) {
    char text[32];
    int length = snprintf(text, sizeof text, "name-%zu", number);
    return string_new(text, (size_t)length);
}

static struct object *class_new(size_t number) {
    struct object *class = fields_new(CLASS_FIELDS);
    word_write(class, 0, name_new(number));
    struct object *methods = hash_new(METHODS);
    word_write(class, 1, methods);
    for (size_t i = 0; i < METHODS; i++) {
        struct object *name = name_new(number * METHODS + i);
        hash_put(methods, name, fields_new(3));
    }
    return class;
}

// A record: its class, then attributes.
static struct object *record_new(struct site *site, size_t number) {
    struct object *record = fields_new(1 + ATTRIBUTES);
    word_write(record, 0, words_of(site->classes)[number % classes]);
    for (size_t i = 1; i <= ATTRIBUTES; i++)
        word_write(record, i, text_new(width()));
    return record;
}

// An entry of the cache: a record, an array, or a string.
static struct object *entry_new(struct site *site) {
    uint64_t r = next_random(&randoms);
    if (r % 8 == 0)
        return record_new(site, (size_t)(r >> 8));
    if (r % 8 < 3) {
        size_t count = width() / sizeof(void *);
        struct object *array = array_new(count);
        for (size_t i = 0; i < count && i < 6; i++)
            push(array, words_of(site->names)[(r + i) % NAMES]);
        return array;
    }
    return text_new(width());
}

static struct object *parse(struct site *site) {
    struct object *headers = hash_new(4);
    for (size_t i = 0; i < HEADERS; i++) {
        struct object *name = words_of(site->names)[next_random(&randoms) % NAMES];
        struct object *value = text_new(width());
        hash_put(headers, substring(name, 0, name->count), value);
    }
    return headers;
}

static struct object *load(struct site *site, struct object *headers) {
    struct object *records = array_new(0);
    for (size_t i = 0; i < rows; i++) {
        struct object *record = record_new(site, (size_t)next_random(&randoms));
        struct object *name = words_of(site->names)[i % NAMES];
        struct object *found = hash_get(headers, name);
        if (found != NULL)
            word_write(record, 1, found);
        push(records, record);
    }
    return records;
}

// The page, and a number that depends on all of it: what a server does beside allocating.
static uint64_t render(struct site *site, struct object *records) {
    struct object *page = text_new(100);
    for (size_t i = 0; i < records->count; i++) {
        struct object *record = words_of(records)[i], *cells = array_new(4);
        for (size_t n = 1; n <= ATTRIBUTES; n++) {
            struct object *value = words_of(record)[n];
            struct object *cell = string_new("<td>", 4);
            string_append(cell, bytes_of(value), value->count < 200 ? value->count : 200);
            string_append(cell, "</td>", 5);
            push(cells, cell);
        }
        struct object *row = string_new("<tr>", 4);
        for (size_t n = 0; n < cells->count; n++)
            string_add(row, words_of(cells)[n]);
        string_add(page, row);
        struct object *entry = words_of(site->cache)[next_random(&randoms) % entries];
        if (entry->kind == STRING)
            string_add(page, entry);
    }
    uint64_t sum = string_hash(page);
    keep(page);
    return sum;
}

// Objects of the widest slots, some of which stay.
static uint64_t report(struct site *site) {
    struct object *rows = array_new(REPORT);
    for (size_t i = 0; i < REPORT; i++)
        push(rows, text_new(320 + next_random(&randoms) % 300));
    for (size_t i = 0; i < REPORT_KEPT; i++) {
        word_write(site->reports, site->oldest_report, words_of(rows)[i * (REPORT / REPORT_KEPT)]);
        site->oldest_report = (site->oldest_report + 1) % site->reports->count;
    }
    return rows->count;
}

static __attribute__((noinline)) uint64_t answer(struct site *site, size_t number) {
    struct object *headers = parse(site);
    struct object *records = load(site, headers);
    uint64_t sum = render(site, records) + headers->count;
    for (size_t i = 0; i < REPLACED; i++) {
        word_write(site->cache, site->oldest, entry_new(site));
        site->oldest = (site->oldest + 1) % entries;
    }
    if (rare != 0 && number % rare == 0)
        sum += report(site);
    return sum;
}

static void boot(struct site *site) {
    randoms = stream(1);
    site->names = array_new(NAMES);
    for (size_t i = 0; i < NAMES; i++)
        push(site->names, name_new(i));
    site->classes = array_new(classes);
    for (size_t i = 0; i < classes; i++)
        push(site->classes, class_new(i));
    site->cache = array_new(entries);
    for (size_t i = 0; i < entries; i++)
        push(site->cache, entry_new(site));
    site->reports = array_new(0);
    for (size_t i = 0; i < 50 * REPORT_KEPT; i++)
        push(site->reports, text_new(320 + next_random(&randoms) % 300));
}

// Each time the world stands still is a step.
struct collector {
    uint64_t work, steps;
};

// Only the head of the statistics: the pools are not asked for.
static struct collector collector_now(void) {
    hw_gc_statistics told;
    hw_gc_stats(door_heap, &told, offsetof(hw_gc_statistics, pool));
    return (struct collector){ told.pause_ns + told.sweep_ns, told.pauses };
}

static struct numbers walls, cpus, works, steps;
static uint64_t serving_ns;
static struct {
    uint64_t ns, bytes;
    size_t request;
} samples[SAMPLES + 1];
static size_t sampled;

static uint64_t serve(void) {
    struct site site = { 0 };
    boot(&site);
    uint64_t sum = 0, began = 0;
    for (size_t i = 0; i < warm + requests; i++) {
        if (i == warm)
            began = now_ns();
        struct collector before = collector_now();
        uint64_t wall = now_ns(), cpu = thread_ns();
        sum += answer(&site, i);
        uint64_t cpu_after = thread_ns(), wall_after = now_ns();
        struct collector after = collector_now();
        if (i < warm)
            continue;
        serving_ns += wall_after - wall;
        numbers_add(&walls, wall_after - wall);
        numbers_add(&cpus, cpu_after - cpu);
        numbers_add(&works, after.work - before.work);
        if (after.steps > before.steps)
            numbers_add(&steps, (after.work - before.work) / (after.steps - before.steps));
        size_t done = i - warm;
        if (done % ((requests + SAMPLES - 1) / SAMPLES) == 0) {
            samples[sampled].request = done;
            samples[sampled].ns = now_ns() - began;
            samples[sampled++].bytes = resident_now();
        }
    }
    // What must have stayed.
    for (size_t i = 0; i < classes; i++)
        sum += string_hash(words_of(words_of(site.classes)[i])[0]);
    for (size_t i = 0; i < entries; i++)
        sum += words_of(site.cache)[i]->kind;
    return sum;
}

int main(int argc, char **argv) {
    program_name = "request";
    settings_begin(argc, argv);
    hw_gc_options options = door_options();
    requests = setting("requests", 4000, 1, 10000000);
    warm = setting("warm", 400, 0, 10000000);
    classes = setting("classes", 4000, 1, 10000000);
    entries = setting("entries", 300000, 1, 100000000);
    rows = setting("records", 400, 1, 100000);
    rare = setting("rare", 40, 0, 10000000);
    walls = numbers_new(requests);
    cpus = numbers_new(requests);
    works = numbers_new(requests);
    steps = numbers_new(requests);
    begin();
    uint64_t sum = with_heap(&options, serve);
    for (size_t i = 0; i < sampled; i++)
        printf("rss request=%zu ns=%llu bytes=%llu\n", samples[i].request, (unsigned long long)samples[i].ns,
               (unsigned long long)samples[i].bytes);
    result_begin(sum);
    field("requests", requests);
    field("serving_ns", serving_ns);
    numbers_fields("wall", &walls);
    numbers_fields("cpu", &cpus);
    numbers_fields("work", &works);
    numbers_fields("step", &steps);
    object_fields();
    result_end();
    return 0;
}
