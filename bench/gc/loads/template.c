// template [part=parse|render|both] [times=N] [layout=...] ...
//
// Page templates, as liquid's benchmark has them: a template's text is parsed into nodes, and nodes
// are rendered with values. The objects are small and die at once, but for the nodes while
// they are rendered. What is asked is that no layout costs time here.
//
//   text      words {{ name.field | filter }} words {% for %} ... {% end %} words
//   nodes     an array of: a string, or an object: kind, name, filter, body
//   values    a hash of names, whose values are strings or arrays of hashes
//
// part=parse parses TIMES times; render parses once and renders TIMES times; both does both.

#include "objects.h"

enum field { KIND, FIRST, SECOND, FILTER, BODY, FIELDS };
enum { ITEMS = 20, PIECES = 60, NAMES = 12, LONGEST = 65536 };

static size_t times, part;
// The template's text, and where the parser is.
static char source[LONGEST];
static size_t source_length, at;
// Kinds of nodes; each also stands for itself in a node, so that it can be compared.
static struct object *a_value, *a_loop;

static const char *const names[NAMES] = { "title", "product", "price",  "vendor",   "description", "url",
                                          "image", "handle",  "amount", "category", "available",   "id" };

static void write_source(void) {
    uint64_t random = stream(3);
    char *to = source;
    for (size_t i = 0; i < PIECES; i++) {
        uint64_t r = next_random(&random);
        to += sprintf(to, "<div class=\"piece-%zu\">some words that stand between the values ", i);
        to += sprintf(to, "{{ %s.%s | %s }}", names[r % NAMES], names[(r >> 8) % NAMES], (r >> 16) % 2 == 0 ? "upcase" : "strip");
        if (r % 5 == 0)
            to += sprintf(to, "<ul>{%% for items %%}<li>{{ item.%s | upcase }}</li> and {{ item.%s | strip }}{%% end %%}</ul>",
                          names[(r >> 24) % NAMES], names[(r >> 32) % NAMES]);
        to += sprintf(to, "</div>\n");
    }
    source_length = (size_t)(to - source);
}

static struct object *word(void) {
    while (source[at] == ' ')
        at++;
    size_t from = at;
    while ((source[at] >= 'a' && source[at] <= 'z') || source[at] == '_')
        at++;
    return string_new(source + from, at - from);
}

static struct object *node_new(struct object *kind, struct object *first) {
    struct object *node = fields_new(FIELDS);
    word_write(node, KIND, kind);
    word_write(node, FIRST, first);
    return node;
}

static bool is(struct object *string, const char *text) {
    return string->count == strlen(text) && memcmp(bytes_of(string), text, string->count) == 0;
}

// {{ name.field | filter }}
static struct object *parse_value(void) {
    struct object *node = node_new(a_value, word());
    at++;
    word_write(node, SECOND, word());
    at += 2;
    word_write(node, FILTER, word());
    at += 3;
    return node;
}

// Nodes up to the text's end, or that of the loop.
static struct object *parse_nodes(void) {
    struct object *nodes = array_new(0);
    while (at < source_length) {
        size_t from = at;
        while (at < source_length && !(source[at] == '{' && (source[at + 1] == '{' || source[at + 1] == '%')))
            at++;
        if (at > from)
            push(nodes, string_new(source + from, at - from));
        if (at == source_length)
            break;
        at += 2;
        if (source[at - 1] == '{') {
            push(nodes, parse_value());
            continue;
        }
        struct object *tag = word();
        if (is(tag, "end")) {
            at += 3;
            break;
        }
        struct object *node = node_new(a_loop, word());
        at += 3;
        word_write(node, BODY, parse_nodes());
        push(nodes, node);
    }
    return nodes;
}

static struct object *parse(void) {
    at = 0;
    return parse_nodes();
}

static struct object *filtered(struct object *value, struct object *filter) {
    struct object *copy = substring(value, 0, value->count);
    char *bytes = bytes_of(copy);
    if (is(filter, "upcase"))
        for (size_t i = 0; i < copy->count; i++)
            bytes[i] = bytes[i] >= 'a' && bytes[i] <= 'z' ? (char)(bytes[i] - 32) : bytes[i];
    keep(copy);
    return copy;
}

static void render(struct object *out, struct object *nodes, struct object *values, struct object *item) {
    for (size_t i = 0; i < nodes->count; i++) {
        struct object *node = words_of(nodes)[i];
        if (node->kind == STRING) {
            string_add(out, node);
            continue;
        }
        struct object **fields = words_of(node);
        struct object *found = is(fields[FIRST], "item") ? item : hash_get(values, fields[FIRST]);
        if (fields[KIND] == a_value) {
            struct object *value = hash_get(found, words_of(node)[SECOND]);
            string_add(out, filtered(value, words_of(node)[FILTER]));
        } else {
            for (size_t n = 0; n < found->count; n++)
                render(out, words_of(node)[BODY], values, words_of(found)[n]);
        }
    }
}

static struct object *string_of(const char *text) { return string_new(text, strlen(text)); }

static struct object *product_new(size_t number) {
    struct object *product = hash_new(NAMES);
    for (size_t i = 0; i < NAMES; i++) {
        char text[64];
        int length = snprintf(text, sizeof text, "%s of number %zu%.*s", names[i], number, (int)(number * i % 30),
                              " and more of it, and more of it");
        hash_put(product, string_of(names[i]), string_new(text, (size_t)length));
    }
    return product;
}

static struct object *values_new(void) {
    struct object *values = hash_new(NAMES), *items = array_new(ITEMS);
    for (size_t i = 0; i < NAMES; i++)
        hash_put(values, string_of(names[i]), product_new(i));
    for (size_t i = 0; i < ITEMS; i++)
        push(items, product_new(100 + i));
    hash_put(values, string_of("items"), items);
    return values;
}

// Out of line, so that what it made is dead afterwards.
static __attribute__((noinline)) uint64_t once(struct object *nodes, struct object *values) {
    if (part != 1)
        nodes = parse();
    if (part == 0)
        return nodes->count;
    struct object *out = object_make(STRING, 100);
    render(out, nodes, values, NULL);
    uint64_t sum = string_hash(out);
    keep(out);
    return sum;
}

static uint64_t work(void) {
    a_value = string_of("value");
    a_loop = string_of("loop");
    // (Static variables are no roots; these handles are.)
    hw_gc_root_new(mutator, a_value);
    hw_gc_root_new(mutator, a_loop);
    struct object *values = values_new(), *nodes = parse();
    uint64_t sum = 0;
    for (size_t i = 0; i < times; i++)
        sum += once(nodes, values);
    return sum;
}

int main(int argc, char **argv) {
    program_name = "template";
    static const char *const parts[] = { "both", "render", "parse", NULL };
    static const size_t part_of[] = { 2, 1, 0 };
    settings_begin(argc, argv);
    hw_gc_options options = door_options();
    part = part_of[setting_choice("part", parts)];
    times = setting("times", 10000, 1, 100000000);
    write_source();
    begin();
    uint64_t sum = with_heap(&options, work);
    result_begin(sum);
    object_fields();
    result_end();
    return 0;
}
