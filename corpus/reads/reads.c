// Programs in C whose only fault is a read: by a function of the C library, or by a loop of their own. A line before each
// gives its name, the heading of its finding, and who reads.
#include "reads.h"
#include <wchar.h>

// read: memcpy_freed use-after-free function
PROGRAM(memcpy_freed)
{
    char copy[48], *p = letters(48);
    BUG(free(p);)
    memcpy(copy, hide(p), 48);
    FIX(free(p);)
    SINK(copy[7]);
}

// read: strlen_freed use-after-free function
PROGRAM(strlen_freed)
{
    char *p = strdup("a name that is looked at too late");
    BUG(free(hide(p));)
    SINK(strlen((char *)hide(p)));
    FIX(free(p);)
}

// read: printf_freed use-after-free function
PROGRAM(printf_freed)
{
    char line[100], *p = strdup("a message");
    BUG(free(hide(p));)
    SINK(snprintf(line, sizeof line, "error: %.5s", (char *)hide(p)));
    FIX(free(p);)
}

// read: write_freed use-after-free function
PROGRAM(write_freed)
{
    int ends[2];
    char *p = letters(300);
    CHECK(pipe(ends) == 0);
    BUG(free(p);)
    SINK(write(ends[1], hide(p), 300));
    FIX(free(p);)
}

// read: memcmp_realloc_old use-after-free function
PROGRAM(memcmp_realloc_old)
{
    char *key = letters(64), *p = letters(64), *more = (char *)realloc(p, 200000);
    SINK(memcmp(key, hide(BUG(p) FIX(more)), 64));
    free(key);
    free(more);
}

// read: memcmp_beyond buffer-overflow function
PROGRAM(memcmp_beyond)
{
    char *a = letters(32), *b = letters(40);
    SINK(memcmp(hide(a), b, BUG(40) FIX(32)));
    free(a);
    free(b);
}

// read: strdup_no_end buffer-overflow function
PROGRAM(strdup_no_end)
{
    char *p = letters(24);
    FIX(p[23] = 0;)
    free(strdup(p));
    free(p);
}

// read: fwrite_beyond buffer-overflow function
PROGRAM(fwrite_beyond)
{
    FILE *out = fopen("/dev/null", "w");
    int *p = numbers(25);
    SINK(fwrite(hide(p), sizeof *p, 25 BUG(+1), out));
    fclose(out);
    free(p);
}

// read: wcslen_no_end buffer-overflow function
PROGRAM(wcslen_no_end)
{
    wchar_t *p = (wchar_t *)numbers(12);
    FIX(p[11] = 0;)
    SINK(wcslen(p));
    free(p);
}

// read: memchr_before buffer-underflow function
PROGRAM(memchr_before)
{
    char *p = letters(80);
    SINK(memchr(p BUG(-8), 'z', 80) != NULL);
    free(p);
}

struct node { struct node *next, *other; long key, value; };

static NOINLINE struct node *node(struct node *next, struct node *other, long key)
{
    struct node *made = (struct node *)malloc(sizeof *made);
    *made = (struct node){ next, other, key, -key };
    return (struct node *)hide(made);
}

static void free_list(struct node *list)
{
    for (struct node *next; list; list = next) {
        next = list->next;
        free(list);
    }
}

// read: list_freed use-after-free loop
PROGRAM(list_freed)
{
    struct node *list = NULL;
    for (int i = 0; i < 20; i++)
        list = node(list, NULL, i);
    for (struct node *n = list, *next; n; n = next) {
        FIX(next = n->next;)
        free(hide(n));
        BUG(next = n->next;)
    }
}

// read: array_freed use-after-free loop
PROGRAM(array_freed)
{
    int *p = numbers(50);
    BUG(free(p);)
    for (int i = 0; i < 50; i++)
        SINK(((int *)hide(p))[i]);
    FIX(free(p);)
}

// read: realloc_old_loop use-after-free loop
PROGRAM(realloc_old_loop)
{
    int *p = numbers(60), *old = (int *)hide(p);
    p = (int *)realloc(p, 70000);
    FIX(old = p;)
    for (int i = 0; i < 60; i++)
        SINK(old[i]);
    free(p);
}

static void free_tree(struct node *n)
{
    if (!n)
        return;
    free_tree(n->next);
    free_tree(n->other);
    free(n);
}

// read: tree_freed use-after-free loop
PROGRAM(tree_freed)
{
    struct node *root = node(node(node(NULL, NULL, 1), node(NULL, NULL, 3), 2), node(NULL, NULL, 5), 4);
    struct node *kept = root;
    BUG(free_tree(root);)
    for (struct node *n = (struct node *)hide(kept); n; n = n->key < 3 ? n->other : n->next)
        SINK(n->value);
    FIX(free_tree(root);)
}

// read: string_freed use-after-free loop
PROGRAM(string_freed)
{
    char *p = strdup("a path that somebody else has freed");
    BUG(free(hide(p));)
    for (char *s = (char *)hide(p); *s; s++)
        SINK(*s == '/');
    FIX(free(p);)
}

// read: table_freed use-after-free loop
PROGRAM(table_freed)
{
    /* A hash table loses an entry, and a cursor still stands there. */
    struct node *table[16] = { 0 }, *cursor;
    for (int i = 0; i < 160; i++)
        table[i % 16] = node(table[i % 16], NULL, i);
    cursor = table[5]->next;
    BUG(table[5]->next = cursor->next; free(hide(cursor));)
    for (; cursor; cursor = cursor->next)
        SINK(cursor->key);
    for (int i = 0; i < 16; i++)
        free_list(table[i]);
}

// read: after_many_freed use-after-free loop
PROGRAM(after_many_freed)
{
    /* The bug comes late, when the first blocks have had all there is. */
    churn(20000);
    int *p = numbers(30);
    BUG(free(p);)
    for (int i = 0; i < 30; i++)
        SINK(((int *)hide(p))[i]);
    FIX(free(p);)
}

// read: array_beyond buffer-overflow loop
PROGRAM(array_beyond)
{
    int *p = numbers(64);
    for (int i = 0; i < 64 BUG(+1); i++)
        SINK(p[i]);
    free(p);
}

// read: odd_beyond buffer-overflow loop
PROGRAM(odd_beyond)
{
    /* 20 bytes: between the block and the page's end lie 12 more, for alignment. */
    int *p = numbers(5);
    for (int i = 0; i < 5 BUG(+1); i++)
        SINK(p[i]);
    free(p);
}

// read: string_no_end buffer-overflow loop
PROGRAM(string_no_end)
{
    char *p = letters(48);
    FIX(p[47] = 0;)
    for (char *s = p; *s; s++)
        SINK(*s);
    free(p);
}

// read: matrix_beyond buffer-overflow loop
PROGRAM(matrix_beyond)
{
    int *p = numbers(8 * 6);
    for (int row = 0; row < 8; row++)
        for (int column = 0; column < 6; column++)
            SINK(p[row * BUG(8) FIX(6) + column]);
    free(p);
}

// read: characters_beyond buffer-overflow loop
PROGRAM(characters_beyond)
{
    /* The last byte says that three more follow. */
    char *p = letters(32);
    p[31] = BUG((char)0xf0) FIX('a');
    for (int i = 0; i < 32;) {
        int more = (p[i] & 0xf0) == 0xf0 ? 3 : 0;
        for (int k = 0; k <= more; k++)
            SINK(p[i + k]);
        i += more + 1;
    }
    free(p);
}

// read: search_beyond buffer-overflow loop
PROGRAM(search_beyond)
{
    long *p = (long *)calloc(40, sizeof(long));
    FIX(p[39] = 77;)
    long i = 0;
    while (((volatile long *)p)[i] != 77 && i < 100000)
        i++;
    SINK(i);
    free(p);
}

// read: late_beyond buffer-overflow loop
PROGRAM(late_beyond)
{
    churn(20000);
    long *p = (long *)calloc(100, sizeof(long));
    for (int i = 0; i < 100 BUG(+1); i++)
        SINK(p[i]);
    free(p);
}

// read: trim_before buffer-underflow loop
PROGRAM(trim_before)
{
    /* Lines lose the blanks at their ends; some have nothing else. */
    for (int i = 0; i < 6; i++) {
        char *line = letters(32);
        memset(line, ' ', 32);
        FIX(line[0] = '|';)
        char *end = line + 32;
        while (*(volatile char *)(end - 1) == ' ' && end > line - 32)
            end--;
        SINK(end - line);
        free(line);
    }
}

// read: down_before buffer-underflow loop
PROGRAM(down_before)
{
    int *rows[4];
    for (int i = 0; i < 4; i++)
        rows[i] = numbers(16);
    for (int i = 0; i < 4; i++) {
        for (int k = 15; k >= BUG(-1) FIX(0); k--)
            SINK(rows[i][k]);
        free(rows[i]);
    }
}

// read: one_before buffer-underflow loop
PROGRAM(one_before)
{
    /* A single block, which stands at the end of its page. */
    int *p = numbers(16);
    for (int k = 15; k >= BUG(-1) FIX(0); k--)
        SINK(p[k]);
    free(p);
}
