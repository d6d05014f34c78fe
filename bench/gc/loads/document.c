// document [chapters=N] [layout=...] ...
//
// A document is parsed and kept whole, as rdoc keeps the sources it reads: what a layout saves on
// strings and arrays of mixed width shows in the memory at the peak.
//
//   document --> chapters --> sections --> blocks --> spans
//                    each an object with fields: kind, title or text, parent, children
//
// The text is made line by line from words. A line is a string that dies; what the parser
// cuts out of it (words, spans, titles) mostly stays; a paragraph is the spans' text put
// together once more, as the search index wants it; names of sections go into a hash. At
// last each chapter is written out as one string that dies.

#include "objects.h"

enum field { NAME, TEXT, PARENT, CHILDREN, FIELDS };
enum { SECTIONS = 8, BLOCKS = 12, LINES = 4, LONGEST_LINE = 160 };

static size_t chapters;
static uint64_t randoms;

// Words from two to eleven letters, blanks between, some of them marked as spans.
static struct object *line_new(void) {
    char text[LONGEST_LINE + 16];
    size_t length = 0, wanted = 20 + next_random(&randoms) % (LONGEST_LINE - 20);
    while (length < wanted) {
        uint64_t r = next_random(&randoms);
        if (r % 11 == 0)
            text[length++] = '*';
        for (size_t letters = 2 + (r >> 8) % 10; letters > 0; letters--) {
            r = r * 6364136223846793005u + 1;
            text[length++] = (char)('a' + (r >> 60));
        }
        text[length++] = ' ';
    }
    return string_new(text, length - 1);
}

static struct object *node_new(struct object *parent, struct object *name) {
    struct object *node = fields_new(FIELDS);
    word_write(node, NAME, name);
    word_write(node, PARENT, parent);
    word_write(node, CHILDREN, array_new(0));
    if (parent != NULL)
        push(words_of(parent)[CHILDREN], node);
    return node;
}

// A span ends where a marked word begins.
static void parse_line(struct object *block, struct object *line) {
    struct object *children = words_of(block)[CHILDREN];
    size_t from = 0, length = line->count;
    for (size_t at = 1; at <= length; at++)
        if (at == length || bytes_of(line)[at] == '*') {
            push(children, substring(line, from, at - from));
            from = at;
        }
    keep(line);
}

static void parse_block(struct object *section) {
    struct object *block = node_new(section, NULL);
    size_t lines = 1 + next_random(&randoms) % LINES;
    for (size_t i = 0; i < lines; i++)
        parse_line(block, line_new());
    struct object *children = words_of(block)[CHILDREN];
    struct object *text = object_make(STRING, 0);
    for (size_t i = 0; i < children->count; i++)
        string_add(text, words_of(children)[i]);
    // As long as it is, not as long as it grew.
    word_write(block, TEXT, substring(text, 0, text->count));
}

static struct object *title_new(void) {
    struct object *line = line_new();
    return substring(line, 0, line->count < 24 ? line->count : 8 + randoms % 16);
}

static struct object *parse_chapter(struct object *document, struct object *index) {
    struct object *chapter = node_new(document, title_new());
    for (size_t s = 0; s < SECTIONS; s++) {
        struct object *section = node_new(chapter, title_new());
        hash_put(index, words_of(section)[NAME], section);
        for (size_t b = 0; b < BLOCKS; b++)
            parse_block(section);
    }
    return chapter;
}

static void write_out(struct object *out, struct object *node) {
    struct object *text = words_of(node)[TEXT];
    string_append(out, "<p>", 3);
    if (text != NULL)
        string_add(out, text);
    struct object *children = words_of(node)[CHILDREN];
    for (size_t i = 0; i < children->count; i++)
        if (words_of(children)[i]->kind == OBJECT)
            write_out(out, words_of(children)[i]);
    string_append(out, "</p>", 4);
}

static __attribute__((noinline)) uint64_t page(struct object *chapter) {
    struct object *out = object_make(STRING, 200);
    write_out(out, chapter);
    uint64_t sum = string_hash(out);
    keep(out);
    return sum;
}

static uint64_t work(void) {
    randoms = stream(2);
    struct object *document = node_new(NULL, NULL), *index = hash_new(8);
    uint64_t sum = 0;
    for (size_t i = 0; i < chapters; i++)
        sum += page(parse_chapter(document, index));
    struct object *all = words_of(document)[CHILDREN];
    for (size_t i = 0; i < all->count; i++)
        sum += page(words_of(all)[i]);
    return sum + index->count;
}

int main(int argc, char **argv) {
    program_name = "document";
    settings_begin(argc, argv);
    hw_gc_options options = door_options();
    chapters = setting("chapters", 1500, 1, 1000000);
    begin();
    uint64_t sum = with_heap(&options, work);
    result_begin(sum);
    object_fields();
    result_end();
    return 0;
}
