/*
 * A toy Lisp on a collected heap: the program that docs/gc.md ports step by step.
 *
 *   text --read_value--> pairs --eval--> value --print--> text
 *
 *   a value is a word    ........ .......1   an integer, shifted left by one
 *                        00000000 00000000   nil: the empty list, and false
 *                        ........ .....000   the address of an object
 *
 *   an object is         | type, length | what its type has, as wide as it is long |
 *
 *   toy [fine|ruby|powers|single] [stress] [verify] [crumbs] [scan] [at-once] [generations]
 *       [moving] [wide] [stats] [dump] [small]
 */
#define _POSIX_C_SOURCE 200809L
#include <ctype.h>
#include <heapwright_gc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Values ----------------------------------------------------------------------- */

typedef void *value;

enum type { PAIR = 1, SYMBOL, STRING, VECTOR, CLOSURE, PRIMITIVE, BUFFER, PORT, TYPES };

static const char *const type_names[TYPES] = {
    "nothing yet", "pair", "symbol", "string", "vector", "closure", "primitive", "buffer", "port",
};

struct object { uint32_t type, length; };

struct thread;
typedef value primitive_function(struct thread *t, value *arguments);

struct pair { struct object head; value car, cdr; };
struct symbol { struct object head; value global; char name[]; };
struct string { struct object head; char bytes[]; };
struct vector { struct object head; value at[]; };
struct closure { struct object head; value parameters, body, env; };
struct primitive { struct object head; primitive_function *run; };
struct buffer { struct object head; char *bytes; };
struct port { struct object head; FILE *stream; };

/* A thread that runs the toy's code: its way into the heap, and its stack of values. */
struct thread {
    struct vm *vm;
    struct thread *next;
    hw_gc_mutator *mutator;
    unsigned long chances;
    size_t depth;
    value stack[16384];
};

struct vm {
    hw_gc_heap *heap;
    pthread_mutex_t lock;
    struct thread *threads;
    void **symbols; /* a handle: the list of all symbols */
    value quote, condition, lambda, define, set;
    unsigned long idle_steps, open_ports;
    int crumbs; /* collect in the smallest steps, wherever they may be: for tests */
    unsigned long moving; /* compact at every so many chances; 0: never: for tests */
    size_t least_size; /* of an object. Where few lie in a page, few stay by chance: for tests */
};

static void fail(const char *why) {
    fprintf(stderr, "toy: %s\n", why);
    exit(2);
}

static value integer(intptr_t n) { return (value)(((uintptr_t)n << 1) | 1); }
static int is_integer(value v) { return ((uintptr_t)v & 1) != 0; }
static int is(value v, enum type type) {
    return v != NULL && !is_integer(v) && ((struct object *)v)->type == (uint32_t)type;
}
static void *expect(value v, enum type type) {
    if (!is(v, type)) {
        fprintf(stderr, "toy: this should be a %s\n", type_names[type]);
        exit(2);
    }
    return v;
}
static intptr_t number(value v) {
    if (!is_integer(v)) fail("this should be an integer");
    return (intptr_t)v >> 1;
}
static value car(value v) { return ((struct pair *)expect(v, PAIR))->car; }
static value cdr(value v) { return ((struct pair *)expect(v, PAIR))->cdr; }

/* --- What the heap asks of the toy ------------------------------------------------ */

static void trace(hw_gc_tracer *tracer, void *object, void *data) {
    (void)data;
    switch (((struct object *)object)->type) {
    case PAIR:
        hw_gc_mark_slot(tracer, &((struct pair *)object)->car);
        hw_gc_mark_slot(tracer, &((struct pair *)object)->cdr);
        break;
    case SYMBOL:
        hw_gc_mark_slot(tracer, &((struct symbol *)object)->global);
        break;
    case VECTOR: {
        struct vector *vector = object;
        hw_gc_mark_range(tracer, vector->at, vector->head.length);
        break;
    }
    case CLOSURE:
        hw_gc_mark_slot(tracer, &((struct closure *)object)->parameters);
        hw_gc_mark_slot(tracer, &((struct closure *)object)->body);
        hw_gc_mark_slot(tracer, &((struct closure *)object)->env);
        break;
    }
}

static void roots(hw_gc_tracer *tracer, void *data) {
    struct vm *vm = data;
    for (struct thread *t = vm->threads; t != NULL; t = t->next)
        for (size_t n = 0; n < t->depth; n++) hw_gc_mark(tracer, t->stack[n]);
    hw_gc_mark_slot(tracer, &vm->quote);
    hw_gc_mark_slot(tracer, &vm->condition);
    hw_gc_mark_slot(tracer, &vm->lambda);
    hw_gc_mark_slot(tracer, &vm->define);
    hw_gc_mark_slot(tracer, &vm->set);
}

/* The mutator of the thread that is running: the heap frees on whichever thread sweeps. */
static pthread_key_t current;

static void free_object(void *object, size_t size, void *data) {
    struct buffer *buffer = object;
    (void)size, (void)data;
    hw_gc_free(pthread_getspecific(current), buffer->bytes, buffer->head.length);
}

static const char *type_name(const void *object, void *data) {
    (void)data;
    return type_names[((const struct object *)object)->type];
}

/* --- Roots and threads ------------------------------------------------------------ */

static void push(struct thread *t, value v) {
    if (t->depth == sizeof t->stack / sizeof *t->stack) fail("the stack is full");
    t->stack[t->depth++] = v;
}

static struct thread *thread_begin(struct vm *vm) {
    struct thread *t = calloc(1, sizeof *t);
    if (t == NULL || (t->mutator = hw_gc_attach(vm->heap)) == NULL) fail("no memory for a thread");
    t->vm = vm;
    pthread_setspecific(current, t->mutator);
    pthread_mutex_lock(&vm->lock);
    t->next = vm->threads;
    vm->threads = t;
    pthread_mutex_unlock(&vm->lock);
    return t;
}

static void thread_end(struct thread *t) {
    struct thread **link = &t->vm->threads;
    pthread_mutex_lock(&t->vm->lock);
    while (*link != t) link = &(*link)->next;
    *link = t->next;
    pthread_mutex_unlock(&t->vm->lock);
    hw_gc_detach(t->mutator);
    free(t);
}

/* --- Making objects --------------------------------------------------------------- */

static void may_move(struct thread *t) {
    if (++t->chances % t->vm->moving != 0) return;
    if (t->vm->crumbs) hw_gc_ask_compact(t->mutator);
    else hw_gc_compact(t->mutator);
}

static value new_object(struct thread *t, enum type type, size_t size, size_t length, uint32_t kind) {
    if (t->vm->moving != 0) may_move(t);
    if (size < t->vm->least_size) size = t->vm->least_size;
    struct object *object = hw_gc_new(t->mutator, size, kind);
    if (object == NULL) fail("out of memory");
    object->type = type;
    object->length = (uint32_t)length;
    return object;
}

/* Keeps a and d itself while it allocates. */
static value cons(struct thread *t, value a, value d) {
    push(t, a);
    push(t, d);
    struct pair *pair = new_object(t, PAIR, sizeof *pair, 0, HW_GC_TRACED);
    t->depth -= 2;
    pair->car = a;
    pair->cdr = d;
    return pair;
}

static struct string *new_string(struct thread *t, size_t length) {
    struct string *string = new_object(t, STRING, sizeof *string + length + 1, length, HW_GC_LEAF);
    string->bytes[length] = 0;
    return string;
}

static struct vector *new_vector(struct thread *t, size_t length) {
    return new_object(t, VECTOR, sizeof(struct vector) + length * sizeof(value), length, HW_GC_TRACED);
}

static value intern(struct thread *t, const char *name, size_t length) {
    for (value rest = *t->vm->symbols; rest != NULL; rest = cdr(rest)) {
        struct symbol *known = car(rest);
        if (known->head.length == length && memcmp(known->name, name, length) == 0) return known;
    }
    size_t size = sizeof(struct symbol) + length + 1;
    struct symbol *symbol = new_object(t, SYMBOL, size, length, HW_GC_TRACED);
    memcpy(symbol->name, name, length);
    *t->vm->symbols = cons(t, symbol, *t->vm->symbols);
    return symbol;
}

static value new_buffer(struct thread *t, size_t length) {
    char *bytes = hw_gc_malloc(t->mutator, length);
    if (bytes == NULL) fail("out of memory");
    struct buffer *buffer =
        new_object(t, BUFFER, sizeof *buffer, length, HW_GC_LEAF | HW_GC_FREED);
    buffer->bytes = bytes;
    return buffer;
}

static void close_port(void *object, void *context) {
    struct port *port = object;
    struct vm *vm = context;
    fclose(port->stream);
    vm->open_ports--;
}

static value new_port(struct thread *t, const char *path) {
    struct port *port = new_object(t, PORT, sizeof *port, 0, HW_GC_LEAF);
    port->stream = fopen(path, "w");
    if (port->stream == NULL) fail("cannot open a file");
    if (!hw_gc_finalize(t->mutator, port, close_port, t->vm)) fail("out of memory");
    t->vm->open_ports++;
    return port;
}

/* --- Reading and printing --------------------------------------------------------- */

static value read_value(struct thread *t, const char **text);

static char skip_spaces(const char **text) {
    while (isspace((unsigned char)**text)) ++*text;
    return **text;
}

static value read_list(struct thread *t, const char **text) {
    if (skip_spaces(text) == 0) fail("a list does not end");
    if (**text == ')') return ++*text, NULL;
    value first = read_value(t, text);
    push(t, first);
    value list = cons(t, first, read_list(t, text));
    t->depth--;
    return list;
}

static value read_value(struct thread *t, const char **text) {
    char c = skip_spaces(text);
    const char *start = *text;
    if (c == '(') return ++*text, read_list(t, text);
    if (c == '"') {
        size_t length = strcspn(start + 1, "\"");
        *text += length + 2;
        struct string *string = new_string(t, length);
        return memcpy(string->bytes, start + 1, length), string;
    }
    size_t length = strcspn(start, " \n()");
    *text += length;
    if (isdigit((unsigned char)c)) return integer(strtol(start, NULL, 10));
    return intern(t, start, length);
}

static void print(value v) {
    if (v == NULL) printf("nil");
    else if (is_integer(v)) printf("%ld", (long)number(v));
    else if (is(v, STRING)) printf("%s", ((struct string *)v)->bytes);
    else if (is(v, SYMBOL)) printf("%s", ((struct symbol *)v)->name);
    else if (is(v, PAIR)) {
        printf("(");
        for (; is(v, PAIR); v = cdr(v)) {
            print(car(v));
            if (cdr(v) != NULL) printf(is(cdr(v), PAIR) ? " " : " . ");
        }
        if (v != NULL) print(v);
        printf(")");
    } else printf("<%s>", type_name(v, NULL));
}

/* --- Evaluating ------------------------------------------------------------------- */

/*
 * An env is a vector, one a call: | names | the env around | value | value | ...
 * Where a variable is: in a vector, or, if no env has it, in its symbol.
 */
static value *place_of(value name, value env, value *holder) {
    for (; env != NULL; env = ((struct vector *)env)->at[1]) {
        size_t n = 2;
        for (value names = ((struct vector *)env)->at[0]; names != NULL; names = cdr(names), n++)
            if (car(names) == name) return *holder = env, &((struct vector *)env)->at[n];
    }
    return *holder = name, &((struct symbol *)expect(name, SYMBOL))->global;
}

/* Keeps its arguments itself, on the thread's stack; the caller keeps everything else. */
static value eval(struct thread *t, value expression, value env) {
    struct vm *vm = t->vm;
    size_t base = t->depth;
    value result = NULL, holder;
    push(t, expression);
    push(t, env);
    for (;;) {
        hw_gc_poll(t->mutator);
        if (vm->moving != 0) may_move(t);
        if (vm->crumbs) hw_gc_step(t->mutator, 1);
        if (is(expression, SYMBOL)) {
            result = *place_of(expression, env, &holder);
            break;
        }
        if (!is(expression, PAIR)) {
            result = expression;
            break;
        }
        value head = car(expression), rest = cdr(expression);
        if (head == vm->quote) {
            result = car(rest);
            break;
        }
        if (head == vm->condition) {
            value holds = eval(t, car(rest), env);
            rest = cdr(cdr(expression));
            t->stack[base] = expression = car(holds != NULL ? rest : cdr(rest));
            continue;
        }
        if (head == vm->lambda) {
            size_t count = 0;
            for (value names = car(rest); names != NULL; names = cdr(names)) count++;
            struct closure *closure = new_object(t, CLOSURE, sizeof *closure, count, HW_GC_TRACED);
            rest = cdr(expression);
            closure->parameters = car(rest);
            closure->body = car(cdr(rest));
            closure->env = env;
            result = closure;
            break;
        }
        if (head == vm->define || head == vm->set) {
            value around = head == vm->set ? env : NULL;
            result = eval(t, car(cdr(rest)), env);
            value *place = place_of(car(cdr(expression)), around, &holder);
            hw_gc_write(t->mutator, holder, place, result);
            break;
        }
        size_t first = t->depth + 1;
        push(t, expression);
        for (rest = expression; rest != NULL; t->stack[first - 1] = rest = cdr(rest))
            push(t, eval(t, car(rest), env));
        size_t count = t->depth - first - 1;
        value function = t->stack[first];
        if (!is(function, PRIMITIVE)) expect(function, CLOSURE);
        if (((struct object *)function)->length != count) fail("the wrong number of arguments");
        if (is(function, PRIMITIVE)) {
            result = ((struct primitive *)function)->run(t, &t->stack[first + 1]);
            break;
        }
        struct closure *closure = function;
        struct vector *frame = new_vector(t, count + 2);
        frame->at[0] = closure->parameters;
        frame->at[1] = closure->env;
        memcpy(&frame->at[2], &t->stack[first + 1], count * sizeof(value));
        t->stack[base] = expression = closure->body;
        t->stack[base + 1] = env = frame;
        t->depth = base + 2;
    }
    t->depth = base;
    return result;
}

static value call(struct thread *t, value function) { return eval(t, cons(t, function, NULL), NULL); }

/* --- Primitives ------------------------------------------------------------------- */

static value truth(int is_true) { return is_true ? integer(1) : NULL; }

static value do_add(struct thread *t, value *a) { return (void)t, integer(number(a[0]) + number(a[1])); }
static value do_subtract(struct thread *t, value *a) { return (void)t, integer(number(a[0]) - number(a[1])); }
static value do_less(struct thread *t, value *a) { return (void)t, truth(number(a[0]) < number(a[1])); }
static value do_equal(struct thread *t, value *a) { return (void)t, truth(a[0] == a[1]); }
static value do_cons(struct thread *t, value *a) { return cons(t, a[0], a[1]); }
static value do_car(struct thread *t, value *a) { return (void)t, car(a[0]); }
static value do_cdr(struct thread *t, value *a) { return (void)t, cdr(a[0]); }

static value do_append(struct thread *t, value *a) {
    struct string *left = expect(a[0], STRING), *right = expect(a[1], STRING);
    struct string *both = new_string(t, (size_t)left->head.length + right->head.length);
    memcpy(both->bytes, left->bytes, left->head.length);
    memcpy(both->bytes + left->head.length, right->bytes, right->head.length);
    return both;
}

static value do_to_string(struct thread *t, value *a) {
    char digits[32];
    size_t length = (size_t)snprintf(digits, sizeof digits, "%ld", (long)number(a[0]));
    struct string *string = new_string(t, length);
    return memcpy(string->bytes, digits, length), string;
}

static value do_length(struct thread *t, value *a) {
    return (void)t, is_integer(a[0]) || a[0] == NULL ? NULL : integer(((struct object *)a[0])->length);
}

static value do_make_vector(struct thread *t, value *a) {
    struct vector *vector = new_vector(t, (size_t)number(a[0]));
    for (size_t n = 0; n < vector->head.length; n++) vector->at[n] = a[1];
    return vector;
}

static value *slot(value *a) {
    struct vector *vector = expect(a[0], VECTOR);
    if (number(a[1]) < 0 || number(a[1]) >= (intptr_t)vector->head.length) fail("no such place");
    return &vector->at[number(a[1])];
}
static value do_ref(struct thread *t, value *a) { return (void)t, *slot(a); }
static value do_put(struct thread *t, value *a) {
    hw_gc_write(t->mutator, a[0], slot(a), a[2]);
    return a[0];
}

static value do_buffer(struct thread *t, value *a) { return new_buffer(t, (size_t)number(a[0])); }
static value do_open(struct thread *t, value *a) { return new_port(t, ((struct string *)expect(a[0], STRING))->bytes); }
static value do_write(struct thread *t, value *a) {
    fputs(((struct string *)expect(a[1], STRING))->bytes, ((struct port *)expect(a[0], PORT))->stream);
    return (void)t, a[1];
}

/* (both f g): calls f on a thread of its own and g on this one. */
struct task { struct vm *vm; void **cell; };

static void *run_task(void *argument) {
    struct task *task = argument;
    struct thread *t = thread_begin(task->vm);
    *task->cell = call(t, *task->cell);
    thread_end(t);
    return NULL;
}

static value do_both(struct thread *t, value *a) {
    pthread_t other;
    struct task task = { t->vm, hw_gc_root_new(t->mutator, a[0]) };
    if (task.cell == NULL || pthread_create(&other, NULL, run_task, &task) != 0) fail("no thread");
    push(t, call(t, a[1]));
    hw_gc_leave(t->mutator);
    pthread_join(other, NULL);
    hw_gc_enter(t->mutator);
    value result = cons(t, *task.cell, t->stack[t->depth - 1]);
    hw_gc_root_free(t->mutator, task.cell);
    return t->depth--, result;
}

static const struct { const char *name; uint32_t count; primitive_function *run; } primitives[] = {
    { "+", 2, do_add }, { "-", 2, do_subtract }, { "<", 2, do_less }, { "=", 2, do_equal },
    { "cons", 2, do_cons }, { "car", 1, do_car }, { "cdr", 1, do_cdr },
    { "string-append", 2, do_append }, { "number->string", 1, do_to_string }, { "length", 1, do_length },
    { "make-vector", 2, do_make_vector }, { "vector-ref", 2, do_ref }, { "vector-set!", 3, do_put },
    { "make-buffer", 1, do_buffer }, { "open", 1, do_open }, { "write", 2, do_write },
    { "both", 2, do_both },
};

/* --- Programs --------------------------------------------------------------------- */

static const char prelude[] =
    "(define not (lambda (x) (if x nil 1)))"
    "(define down (lambda (n list) (if (= n 0) list (down (- n 1) (cons n list)))))"
    "(define turn (lambda (list done) (if list (turn (cdr list) (cons (car list) done)) done)))"
    "(define sum (lambda (list so-far) (if list (sum (cdr list) (+ (car list) so-far)) so-far)))"
    "(define safe (lambda (row away placed) (if (not placed) 1"
    "  (if (= (car placed) row) nil (if (= (car placed) (+ row away)) nil"
    "  (if (= (car placed) (- row away)) nil (safe row (+ away 1) (cdr placed))))))))"
    "(define try (lambda (row n left placed) (if (= row n) 0 (+ (try (+ row 1) n left placed)"
    "  (if (safe row 1 placed) (place n (- left 1) (cons row placed)) 0)))))"
    "(define place (lambda (n left placed) (if (= left 0) 1 (try 0 n left placed))))"
    "(define queens (lambda (n) (place n n nil)))"
    "(define spell (lambda (n text) (if (= n 0) text"
    "  (spell (- n 1) (string-append (number->string n) (string-append \" \" text))))))"
    "(define fill (lambda (vector n) (if (= n 0) vector"
    "  (fill (vector-set! vector (- n 1) (cons n vector)) (- n 1)))))"
    "(define buffers (lambda (n) (if (= n 0) 0 (+ (- (length (make-buffer 100000)) 99999) (buffers (- n 1))))))"
    "(define logs (lambda (n) (if (= n 0) nil ((lambda (port) (write port \"written\")) (open \"/dev/null\")))))";

static const char *const programs[] = {
    "(queens n)",
    "(turn (down 9 nil) nil)",
    "(sum (turn (down count nil) nil) 0)",
    "(spell 20 \"lift off\")",
    "(length (spell count \"lift off\"))",
    "(car (vector-ref (fill (make-vector count 0) count) 41))",
    "(define next ((lambda (k) (lambda () (set! k (+ k 1)))) 39))",
    "(cons (next) (cons (next) (next)))",
    "(both (lambda () (queens n)) (lambda () (sum (down count nil) 0)))",
    "(buffers 300)",
    "(logs 1)",
};

static void print_statistics(struct vm *vm) {
    hw_gc_statistics s;
    hw_gc_stats(vm->heap, &s, sizeof s);
    fprintf(stderr, "%llu collections, %llu pauses, the longest %.3f ms; %lu steps while idle\n",
            (unsigned long long)s.cycles, (unsigned long long)s.pauses, (double)s.pause_max_ns / 1e6,
            vm->idle_steps);
    fprintf(stderr, "live %llu, goal %llu, in use %llu, empty %llu, large %llu, external %llu bytes\n",
            (unsigned long long)s.live_bytes, (unsigned long long)s.goal_bytes,
            (unsigned long long)s.in_use_bytes, (unsigned long long)s.empty_bytes,
            (unsigned long long)s.large_bytes, (unsigned long long)s.external_bytes);
    fprintf(stderr, "%llu compactions, %llu objects moved\n", (unsigned long long)s.compactions,
            (unsigned long long)s.moved_objects);
    for (size_t n = 0; n < HW_GC_POOLS; n++)
        if (s.pool[n].pages != 0)
            fprintf(stderr, "  slots of %5llu: %4llu pages, %6llu live, %6llu free, decision %u\n",
                    (unsigned long long)s.pool[n].slot_size, (unsigned long long)s.pool[n].pages,
                    (unsigned long long)s.pool[n].live, (unsigned long long)s.pool[n].free_slots,
                    s.pool[n].decision);
}

struct census { size_t count[TYPES], bytes[TYPES]; };

static bool count_object(void *object, size_t size, uint32_t kind, void *context) {
    struct census *census = context;
    uint32_t type = ((struct object *)object)->type;
    (void)kind;
    census->count[type]++;
    census->bytes[type] += size;
    return true;
}

static void print_census(struct thread *t) {
    struct census census = { { 0 }, { 0 } };
    hw_gc_walk(t->mutator, count_object, &census);
    for (size_t n = 0; n < TYPES; n++)
        if (census.count[n] != 0)
            fprintf(stderr, "  %6zu %s of %zu bytes\n", census.count[n], type_names[n], census.bytes[n]);
}

static void dump(struct thread *t, const char *path) {
    FILE *file = fopen(path, "wb");
    hw_gc_collect(t->mutator);
    if (file == NULL || !hw_gc_dump(t->mutator, fileno(file)) || fclose(file) != 0) fail("no dump");
}

/* --- Beginning and ending --------------------------------------------------------- */

static void idle(struct thread *t) {
    while (hw_gc_owed(t->mutator) && !hw_gc_step(t->mutator, 200000)) t->vm->idle_steps++;
    hw_gc_run_finalizers(t->mutator, 10);
}

static void run(struct thread *t, const char *text, int aloud) {
    while (skip_spaces(&text) != 0) {
        value result = eval(t, read_value(t, &text), NULL);
        if (aloud) print(result), printf("\n");
    }
}

static void begin(struct thread *t) {
    struct vm *vm = t->vm;
    if ((vm->symbols = hw_gc_root_new(t->mutator, NULL)) == NULL) fail("no memory for a handle");
    vm->quote = intern(t, "quote", 5);
    vm->condition = intern(t, "if", 2);
    vm->lambda = intern(t, "lambda", 6);
    vm->define = intern(t, "define", 6);
    vm->set = intern(t, "set!", 4);
    for (size_t n = 0; n < sizeof primitives / sizeof *primitives; n++) {
        push(t, intern(t, primitives[n].name, strlen(primitives[n].name)));
        struct primitive *primitive =
            new_object(t, PRIMITIVE, sizeof *primitive, primitives[n].count, HW_GC_LEAF);
        primitive->run = primitives[n].run;
        struct symbol *symbol = t->stack[--t->depth];
        hw_gc_write(t->mutator, symbol, &symbol->global, primitive);
    }
    run(t, prelude, 0);
}

static void end(struct thread *t) {
    struct vm *vm = t->vm;
    hw_gc_root_free(t->mutator, vm->symbols);
    do hw_gc_collect(t->mutator);
    while (hw_gc_run_finalizers(t->mutator, SIZE_MAX) > 0);
    thread_end(t);
    hw_gc_destroy(vm->heap);
    printf("%lu files are open\n", vm->open_ports);
}

static int has(char **words, const char *word) {
    while (*words != NULL && strcmp(*words, word) != 0) words++;
    return *words != NULL;
}

int main(int count, char **words) {
    static struct vm vm = { .lock = PTHREAD_MUTEX_INITIALIZER };
    hw_gc_options options = { .size = sizeof options };
    hw_gc_runtime runtime = { .size = sizeof runtime };
    (void)count;

    runtime.data = &vm;
    runtime.trace = trace;
    runtime.roots = roots;
    runtime.free = free_object;
    runtime.type_name = type_name;

    options.incremental = !has(words, "at-once");
    options.generations = has(words, "generations");
    if (has(words, "ruby")) options.layout = HW_GC_LAYOUT_RUBY;
    if (has(words, "powers")) options.layout = HW_GC_LAYOUT_POWERS;
    if (has(words, "single")) options.layout = HW_GC_LAYOUT_SINGLE;
    if (has(words, "stress")) options.verify |= HW_GC_STRESS;
    if (has(words, "verify")) options.verify |= HW_GC_VERIFY_HEAP | HW_GC_VERIFY_BARRIERS;
    if (has(words, "moving")) {
        options.compact = true;
        vm.moving = has(words, "stress") ? 7 : 500;
    }
    if (has(words, "wide")) vm.least_size = 4096;
    options.least = 256 << 10;
    if (has(words, "crumbs")) {
        options.least = 64 << 10;
        options.step_ns = 1;
        vm.crumbs = 1;
    }

    if (pthread_key_create(&current, NULL) != 0) fail("no key");
    if ((vm.heap = hw_gc_create(&options, &runtime)) == NULL) fail("no heap");
    struct thread *t = thread_begin(&vm);
    if (has(words, "scan")) hw_gc_scan_stack(t->mutator, &words);
    begin(t);
    run(t, has(words, "small") ? "(define n 5) (define count 500)" : "(define n 8) (define count 3000)", 0);
    for (size_t n = 0; n < sizeof programs / sizeof *programs; n++) {
        run(t, programs[n], 1);
        idle(t);
    }
    if (has(words, "stats")) {
        hw_gc_collect(t->mutator);
        print_statistics(&vm);
        print_census(t);
    }
    if (has(words, "dump")) dump(t, "toy.heap");
    end(t);
    return 0;
}
