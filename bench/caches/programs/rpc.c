// rpc CLOCK CLIENTS SERVERS REQUESTS
//
// Clients that send requests to servers, after the review's rpc benchmark. A message is a block
// with a list of fields, each a separate block, like the output of a protocol's parser. The other
// side frees every block.
//
//   client                      server                     a message
//   a message and its fields -->  looks at it, frees it     | next, sender | field 0 | field 1 ...
//                                 blocks for its own work                      |         |
//   looks at it, frees it   <--   a message and its fields                   block     block
//
// A client has up to WINDOW open requests, sends them to the servers in turn, and sends the next
// after an answer. REQUESTS is the sum of all clients. The contents of a request and its answer
// depend only on its number, so the work does not depend on the threads' order.
//
// A thread takes all waiting messages together, so the queues' locks and the switches of threads
// do not hide the allocator. A run with CLOCK prints its share of the processor's time, which
// should be above 20 %.

#include "result.h"

enum {
    WINDOW = 8,
    LEAST_FIELDS = 16,
    MORE_FIELDS = 17,
    // 16 bytes to 1 KiB; one field in 32 is up to 16 KiB.
    DOUBLINGS = 6,
    LARGE_DOUBLINGS = 10,
    // A server's own blocks for a request, and how many of them live at a time.
    WORK = 32,
    WORK_LIVE = 8,
    // Buckets of latencies: 32 for each doubling.
    STEPS = 32,
    BUCKETS = STEPS * 40,
};

struct message {
    struct message *next;
    // The message's own address: a message with an overwritten head is not followed.
    struct message *self;
    uint64_t number, sent_ns;
    uint32_t client, fields;
    struct block field[];
};

// Aligned, so that neighbours do not share its cache line.
struct inbox {
    pthread_mutex_t lock;
    pthread_cond_t some;
    struct message *first, **last;
    int waits;
} __attribute__((aligned(128)));

static size_t clients, servers, requests;
// The inboxes of servers, then of clients.
static struct inbox *inboxes;
static uint32_t *latencies;

static size_t size_of_field(uint64_t *random) {
    return mixed_size(random, (next_random(random) & 31) == 0 ? LARGE_DOUBLINGS : DOUBLINGS);
}

static struct message *message_make(uint32_t client, uint64_t number, uint64_t *random) {
    uint32_t fields = LEAST_FIELDS + (uint32_t)(next_random(random) % MORE_FIELDS);
    size_t size = sizeof(struct message) + fields * sizeof(struct block);
    struct message *m = timed_malloc(size);
    live_changes((long)size);
    *m = (struct message){ .self = m, .number = number, .client = client, .fields = fields };
    for (uint32_t i = 0; i < fields; i++)
        block_make(&m->field[i], size_of_field(random), random);
    return m;
}

static void message_drop(struct message *m) {
    for (uint32_t i = 0; i < m->fields; i++)
        block_drop(&m->field[i]);
    size_t size = sizeof(struct message) + m->fields * sizeof(struct block);
    if (m->self != m)
        block_is_wrong(&(struct block){ (char *)m, size, 0 }, "memory was handed out twice, or changed");
    m->self = NULL;
    live_changes(-(long)size);
    timed_free(m);
}

static void send_to(struct inbox *inbox, struct message *m) {
    m->next = NULL;
    pthread_mutex_lock(&inbox->lock);
    *inbox->last = m;
    inbox->last = &m->next;
    int wake = inbox->waits;
    inbox->waits = 0;
    pthread_mutex_unlock(&inbox->lock);
    if (wake)
        pthread_cond_signal(&inbox->some);
}

// Takes all messages; waits for the first.
static struct message *receive(struct inbox *inbox) {
    pthread_mutex_lock(&inbox->lock);
    while (inbox->first == NULL) {
        inbox->waits = 1;
        pthread_cond_wait(&inbox->some, &inbox->lock);
    }
    inbox->waits = 0;
    struct message *all = inbox->first;
    inbox->first = NULL;
    inbox->last = &inbox->first;
    pthread_mutex_unlock(&inbox->lock);
    for (struct message *m = all; m != NULL; m = m->next)
        if (m->self != m)
            block_is_wrong(&(struct block){ (char *)m, sizeof *m, 0 }, "memory was handed out twice, or changed");
    return all;
}

// Requests of client `c` have the numbers c, c + clients, c + 2 clients ...
static size_t requests_of(size_t client) { return (requests - client + clients - 1) / clients; }
// These requests go to the servers in turn: server s has those with number / clients + number = s.
static size_t server_of(uint64_t number) { return (number / clients + number) % servers; }

static void own_work(uint64_t *random) {
    struct block mine[WORK_LIVE] = { 0 };
    for (int i = 0; i < WORK; i++) {
        struct block *one = &mine[i % WORK_LIVE];
        if (one->at != NULL)
            block_drop(one);
        block_make(one, size_of_field(random), random);
    }
    for (int i = 0; i < WORK_LIVE; i++)
        block_drop(&mine[i]);
}

static void serve(size_t slot, size_t index) {
    (void)slot;
    struct inbox *inbox = &inboxes[index];
    for (;;) {
        for (struct message *m = receive(inbox), *next; m != NULL; m = next) {
            next = m->next;
            uint64_t number = m->number, sent_ns = m->sent_ns;
            uint32_t client = m->client;
            message_drop(m);
            // The main thread's message to end.
            if (client == UINT32_MAX)
                return;
            uint64_t random = stream(~number);
            own_work(&random);
            struct message *answer = message_make(client, number, &random);
            answer->sent_ns = sent_ns;
            send_to(&inboxes[servers + client], answer);
        }
    }
}

static size_t bucket_of(uint64_t ns) {
    if (ns < STEPS)
        return ns;
    unsigned doubling = 63 - (unsigned)__builtin_clzll(ns);
    size_t at = (size_t)(doubling - 4) * STEPS + (ns >> (doubling - 5)) % STEPS;
    return at < BUCKETS ? at : BUCKETS - 1;
}

// The upper end of a bucket.
static double bucket_end(size_t at) {
    if (at < STEPS)
        return (double)at;
    return (double)(STEPS + at % STEPS + 1) * (double)((uint64_t)1 << (at / STEPS - 1));
}

static void request(uint32_t client, uint64_t number) {
    uint64_t random = stream(number);
    struct message *m = message_make(client, number, &random);
    m->sent_ns = now_ns();
    send_to(&inboxes[server_of(number)], m);
}

static void ask(size_t slot, size_t index) {
    (void)slot;
    uint32_t client = (uint32_t)(index - servers);
    struct inbox *inbox = &inboxes[index];
    uint32_t *mine = latencies + (size_t)client * BUCKETS;
    size_t all = requests_of(client), sent = 0, answered = 0;
    for (; sent < all && sent < WINDOW; sent++)
        request(client, client + sent * clients);
    while (answered < all) {
        for (struct message *m = receive(inbox), *next; m != NULL; m = next) {
            next = m->next;
            mine[bucket_of(now_ns() - m->sent_ns)]++;
            message_drop(m);
            answered++;
            if (sent < all)
                request(client, client + sent++ * clients);
        }
    }
}

static void print_latencies(void) {
    static const struct {
        const char *name;
        double share;
    } asked[] = { { "p50_ns", 0.5 }, { "p99_ns", 0.99 }, { "p999_ns", 0.999 } };
    for (size_t client = 1; client < clients; client++)
        for (size_t at = 0; at < BUCKETS; at++)
            latencies[at] += latencies[client * BUCKETS + at];
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        double until = asked[i].share * (double)requests, seen = 0;
        size_t at = 0;
        while (at < BUCKETS - 1 && (seen += latencies[at]) < until)
            at++;
        field(asked[i].name, bucket_end(at));
    }
}

int main(int argc, char **argv) {
    program_name = "rpc";
    if (argc != 5)
        die(2, "usage: rpc CLOCK CLIENTS SERVERS REQUESTS");
    clients = number(argv[2], "number of clients", 1, MOST_THREADS / 2);
    servers = number(argv[3], "number of servers", 1, MOST_THREADS / 2);
    requests = number(argv[4], "number of requests", clients, 1000000000);
    size_t threads = clients + servers;
    threads_prepare(threads);
    inboxes = table(threads * sizeof *inboxes);
    latencies = table(clients * BUCKETS * sizeof *latencies);
    for (size_t i = 0; i < threads; i++) {
        pthread_mutex_init(&inboxes[i].lock, NULL);
        pthread_cond_init(&inboxes[i].some, NULL);
        inboxes[i].last = &inboxes[i].first;
    }
    clock_prepare(argv[1]);
    begin();
    for (size_t i = 0; i < threads; i++)
        thread_start(i, i < servers ? serve : ask, i);
    // The clients end by themselves, the servers on request.
    for (size_t i = 0; i < clients; i++)
        thread_ended();
    for (size_t i = 0; i < servers; i++) {
        uint64_t random = stream(i);
        send_to(&inboxes[i], message_make(UINT32_MAX, 0, &random));
    }
    for (size_t i = 0; i < servers; i++)
        thread_ended();
    result_begin(threads);
    field("clients", (double)clients);
    field("servers", (double)servers);
    field("requests", (double)requests);
    print_latencies();
    result_end();
    return 0;
}
