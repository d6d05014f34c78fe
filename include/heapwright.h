/*
 * heapwright: the library's functions beyond malloc's interface.
 *
 * malloc, free, C++'s new and delete and their kin are declared in the usual
 * headers (stdlib.h, malloc.h, new). They only need the program to be linked
 * with heapwright, or heapwright to be preloaded. The same holds for free_sized
 * and free_aligned_sized of C23.
 *
 * Units: sizes are in bytes, of type size_t.
 * Errors: a function that gives memory returns NULL and sets errno. The others
 * cannot fail. Freeing a pointer that is no block ends the program with one
 * line on stderr that describes the pointer.
 * Threads: every function may be called from any thread at any time, unless it
 * says otherwise. None may be called from a signal handler that interrupted
 * one of them or malloc, as with any malloc.
 *
 * The library's duties: blocks are aligned to at least 16 bytes and do not
 * overlap; a question about a pointer (hw_owns, hw_describe) never faults,
 * whatever the pointer; nothing here needs an initialisation.
 * The program's duties: a block is freed once, by the address at which it was
 * allocated, and not used afterwards. Neither a heap nor a block of it is used
 * after hw_heap_destroy.
 */

#ifndef HEAPWRIGHT_H
#define HEAPWRIGHT_H

/* Made by ci/lint.sh header from crates/heapwright-malloc/src: do not edit. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * An object may hold references. Its memory is zeroed, unless the heap is uncleared.
 */
#define HW_GC_TRACED 0

/**
 * An object holds no references. Its memory is uninitialised.
 */
#define HW_GC_LEAF 1

/**
 * Flag for either kind: the runtime's free is called when the object has died.
 */
#define HW_GC_FREED 2

/**
 * Flag for any kind: a bit of the runtime's own, which trace_kind of hw_gc_runtime receives.
 * Objects with it lie in pages of their own.
 */
#define HW_GC_USER 4

/**
 * Pools that a heap can have, with the pool of large objects.
 */
#define HW_GC_POOLS 64

/**
 * Buckets of the histogram of pauses.
 */
#define HW_GC_PAUSE_BUCKETS 64

/**
 * Verify after each collection that all references lead to objects.
 */
#define HW_GC_VERIFY_HEAP 1

/**
 * Verify when marking ends that every store was reported.
 */
#define HW_GC_VERIFY_BARRIERS 2

/**
 * Collect at every allocation. With incremental marking and without HW_GC_VERIFY_HEAP, only make a
 * small step.
 */
#define HW_GC_STRESS 4

/**
 * The number of priorities of finalizers. 0 is the highest.
 */
#define HW_GC_PRIORITIES 4

/**
 * A span begins.
 */
#define HW_GC_EVENT_BEGINS 0

/**
 * A span ends.
 */
#define HW_GC_EVENT_ENDS 1

/**
 * Flag of an event: the collection is a minor one.
 */
#define HW_GC_EVENT_MINOR 1

/**
 * Flag of an event: the world is stopped during the call.
 */
#define HW_GC_EVENT_STOPPED 2

/**
 * Flag of an event: the collection moves objects.
 */
#define HW_GC_EVENT_COMPACTS 4

/**
 * For hw_count_begin: keep the stack of each call, for hw_count_sites.
 */
#define HW_COUNT_STACKS 1

/**
 * Regions of a mutator: pools times kinds.
 */
#define HW_GC_REGIONS 512

/**
 * Sizes in the table: multiples of 8 up to 32 KiB.
 */
#define HW_GC_PLACES 4097

/**
 * A mutator's barrier while objects are being moved.
 */
#define HW_GC_MOVING 4

/**
 * The number of buckets in the histogram of sizes.
 */
#define HW_SIZE_BUCKETS 48

/**
 * The kind of memory at an address.
 */
typedef enum hw_kind {
  /**
   * Memory that heapwright does not manage: a stack, a library's data,
   * another allocator's block, nothing at all.
   */
  HW_KIND_FOREIGN = 0,
  /**
   * heapwright's memory, and in no block now.
   */
  HW_KIND_FREE = 1,
  /**
   * A slot of a slab: a small or medium block, in use or free.
   */
  HW_KIND_SMALL = 2,
  /**
   * A large block.
   */
  HW_KIND_LARGE = 3,
  /**
   * heapwright's own tables and records.
   */
  HW_KIND_METADATA = 4,
  /**
   * An object of a pool, in use or free; owner is the pool's number.
   */
  HW_KIND_POOL = 5,
  /**
   * Memory of an arena.
   */
  HW_KIND_ARENA = 6,
  /**
   * A block of a debug heap; freed ones are known, too.
   */
  HW_KIND_DEBUG = 7,
  /**
   * A page of a collected heap; owner is the heap's number.
   */
  HW_KIND_COLLECTED = 8
} hw_kind;

/**
 * Whether a block is in use.
 */
typedef enum hw_state {
  /**
   * Not known without a search, or there is no block.
   */
  HW_STATE_UNKNOWN = 0,
  /**
   * The program holds the block.
   */
  HW_STATE_IN_USE = 1,
  /**
   * The block is free.
   */
  HW_STATE_FREE = 2
} hw_state;

/**
 * The slot sizes of a heap.
 */
enum hw_gc_layout
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif /* defined(__cplusplus) || __STDC_VERSION__ >= 202311L */
 {
  /**
   * Steps of 16 bytes to 256, then eight for each doubling to 1 KiB, then four to 32 KiB.
   */
  HW_GC_LAYOUT_FINE = 0,
  /**
   * 40, 80, 160, 320 and 640 bytes.
   */
  HW_GC_LAYOUT_RUBY = 1,
  /**
   * Powers of two from 32 bytes to 32 KiB, and 40.
   */
  HW_GC_LAYOUT_POWERS = 2,
  /**
   * 40 bytes alone.
   */
  HW_GC_LAYOUT_SINGLE = 3
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum hw_gc_layout hw_gc_layout;
#else
typedef uint32_t hw_gc_layout;
#endif /* __STDC_VERSION__ >= 202311L */
#endif /* __cplusplus */

/**
 * A span, which begins and ends: see hw_gc_event.
 */
enum hw_gc_span
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif /* defined(__cplusplus) || __STDC_VERSION__ >= 202311L */
 {
  /**
   * A collection. Its first event has the bytes allocated since the last collection, its last event the live bytes. The world is stopped only for the first event.
   */
  HW_GC_SPAN_COLLECTION = 1,
  /**
   * All marking of a collection. During it the runtime reports what objects and roots lead to.
   * When it ends, all reachable objects were reported, so a runtime may sweep its own tables.
   * Ends with the bytes marked.
   */
  HW_GC_SPAN_TRACE = 2,
  /**
   * A pause. Begins when all mutators are stopped, with the nanoseconds until then; ends when
   * they go on, with the nanoseconds that it lasted.
   */
  HW_GC_SPAN_PAUSE = 3,
  /**
   * A step of marking.
   */
  HW_GC_SPAN_MARK = 4,
  /**
   * Roots are reported: handles, the runtime's, stacks.
   */
  HW_GC_SPAN_ROOTS = 5,
  /**
   * Values of ephemerons are marked, weak references to dead objects are cleared, finalizers
   * become due.
   */
  HW_GC_SPAN_WEAK = 6,
  /**
   * A step of moving objects. Ends with the bytes moved.
   */
  HW_GC_SPAN_MOVE = 7,
  /**
   * Sweeping: by steps, and by mutators that take pages.
   */
  HW_GC_SPAN_SWEEP = 8,
  /**
   * The life of a large object, of at least large_bytes of hw_gc_runtime: from its allocation to the sweep that finds it dead. Both events have its address and bytes. If the object moves, one span ends, and another begins at the new address.
   */
  HW_GC_SPAN_LARGE = 9
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum hw_gc_span hw_gc_span;
#else
typedef uint32_t hw_gc_span;
#endif /* __STDC_VERSION__ >= 202311L */
#endif /* __cplusplus */

/**
 * The state of a mutator's thread, for its heap.
 */
enum hw_gc_thread_state
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif /* defined(__cplusplus) || __STDC_VERSION__ >= 202311L */
 {
  /**
   * It has left, or has not entered: it touches no object.
   */
  HW_GC_THREAD_STATE_AWAY = 0,
  /**
   * It may touch objects, so collectors wait for it.
   */
  HW_GC_THREAD_STATE_AT_WORK = 1,
  /**
   * It waits until the world goes on.
   */
  HW_GC_THREAD_STATE_STOPPED = 2
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum hw_gc_thread_state hw_gc_thread_state;
#else
typedef uint32_t hw_gc_thread_state;
#endif /* __STDC_VERSION__ >= 202311L */
#endif /* __cplusplus */

/**
 * Memory that is given back all at once. Make one with hw_arena_create.
 */
typedef struct hw_arena hw_arena;

/**
 * A collected heap. Make one with hw_gc_create.
 */
typedef struct hw_gc_heap hw_gc_heap;

/**
 * A first-class heap: its blocks can be freed all at once. Make one with hw_heap_new.
 */
typedef struct hw_heap hw_heap;

/**
 * Objects of one size. Make one with hw_pool_create.
 */
typedef struct hw_pool hw_pool;

/**
 * The answer of hw_describe.
 */
typedef struct hw_description {
  /**
   * The kind of memory.
   */
  enum hw_kind kind;
  /**
   * Whether the memory is in use.
   */
  enum hw_state state;
  /**
   * The block's address; NULL if the address is in no block.
   */
  const void *block;
  /**
   * The block's usable bytes, at least the requested size. 0 if the address is in no block.
   */
  size_t size;
  /**
   * The address's offset in its block, in bytes.
   */
  size_t offset;
  /**
   * The number of the cache, heap or pool that owns the block; 0 if none does.
   */
  uint32_t owner;
  /**
   * The number of the block's size class, for small blocks.
   */
  uint32_t size_class;
  /**
   * The kind in words, for messages. A constant: neither change nor free it.
   */
  const char *words;
} hw_description;

/**
 * A process's memory at one moment. All sizes are in bytes. The nine parts
 * rss_live to rss_not_ours add up to rss.
 *
 * Later versions add fields at the end: give hw_get_stats the size of the
 * struct you were compiled with.
 */
typedef struct hw_statistics {
  /**
   * The process that was measured.
   */
  uint64_t pid;
  /**
   * Nanoseconds from the heap's first allocation to the snapshot.
   */
  uint64_t elapsed_ns;
  /**
   * 1 if every allocation was counted (option stats=exit). Sizes, rounding and totals are known
   * only then. 0 if only the heap's own records were read.
   */
  uint64_t detailed;
  /**
   * Resident bytes of the whole process now.
   */
  uint64_t rss;
  /**
   * The highest rss the kernel saw in this process image.
   */
  uint64_t peak_rss;
  /**
   * Part of rss: bytes that the program requested and holds.
   */
  uint64_t rss_live;
  /**
   * Part of rss: slot sizes less requested sizes.
   */
  uint64_t rss_rounding;
  /**
   * Part of rss: free or never used slots in slabs that hold live blocks.
   */
  uint64_t rss_partial;
  /**
   * Part of rss: free blocks waiting in thread caches.
   */
  uint64_t rss_caches;
  /**
   * Part of rss: blocks freed by another thread, not yet taken back.
   */
  uint64_t rss_remote;
  /**
   * Part of rss: free pages that will be given back after the purge delay.
   */
  uint64_t rss_lazy;
  /**
   * Part of rss: the heap's tables, records and caches.
   */
  uint64_t rss_metadata;
  /**
   * Part of rss: pools and arenas, with the free memory in them.
   */
  uint64_t rss_pools;
  /**
   * Part of rss: code, stacks, files, other allocators.
   */
  uint64_t rss_not_ours;
  /**
   * Bytes in blocks the program holds, counted as the slots that carry them.
   */
  uint64_t live_bytes;
  /**
   * Blocks the program holds.
   */
  uint64_t live_blocks;
  /**
   * Part of live_bytes: blocks of more than 32 KiB.
   */
  uint64_t large_bytes;
  /**
   * Part of live_blocks: blocks of more than 32 KiB.
   */
  uint64_t large_blocks;
  /**
   * Highest live_bytes, if detailed.
   */
  uint64_t peak_live_bytes;
  /**
   * Blocks allocated since the start, if detailed.
   */
  uint64_t allocations;
  /**
   * Blocks freed since the start, if detailed.
   */
  uint64_t frees;
  /**
   * Bytes requested since the start, if detailed.
   */
  uint64_t requested_bytes;
  /**
   * Frees of blocks that belong to another allocator, passed on to it.
   */
  uint64_t foreign_frees;
  /**
   * Address space the heap may use.
   */
  uint64_t window_bytes;
  /**
   * Part of window_bytes made writable so far.
   */
  uint64_t committed_bytes;
  /**
   * Bytes given back to the kernel since the start.
   */
  uint64_t purged_bytes;
  /**
   * Thread caches in use.
   */
  uint64_t caches_live;
  /**
   * Thread caches whose thread has ended, with blocks that are still held.
   */
  uint64_t caches_orphaned;
  /**
   * Thread caches ever made.
   */
  uint64_t caches_made;
  /**
   * First-class heaps in use.
   */
  uint64_t heaps_live;
  /**
   * Pages that back memory, in bytes (4096, 16384 or 65536).
   */
  uint64_t page_size;
  /**
   * Caches shared by threads, or per-CPU caches; 0 if each thread has its own.
   */
  uint64_t caches_shared;
  /**
   * Part of caches_shared: those used so far.
   */
  uint64_t caches_touched;
  /**
   * Free bytes in shared caches, in CPUs' arrays and in central lists.
   */
  uint64_t caches_bytes;
  /**
   * Free bytes in the largest shared cache.
   */
  uint64_t caches_largest;
  /**
   * Tries of a shared cache that failed, because another thread held it.
   */
  uint64_t cache_failed_tries;
  /**
   * Times a thread had to wait for a shared cache.
   */
  uint64_t cache_waits;
  /**
   * Completed restartable sequences, if detailed.
   */
  uint64_t rseq_commits;
  /**
   * Restartable sequences that were interrupted, and had no effect.
   */
  uint64_t rseq_aborts;
  /**
   * Operations that a CPU's lock served because a sequence was interrupted.
   */
  uint64_t rseq_fallbacks;
  /**
   * The process's name as the kernel knows it, a string of at most 15 bytes.
   */
  char name[16];
  /**
   * Allocations by requested size: bucket 0 counts sizes 0 and 1, bucket i sizes above 2^(i-1)
   * and up to 2^i; the last bucket takes all sizes above. Zero unless detailed.
   */
  uint64_t sizes[HW_SIZE_BUCKETS];
} hw_statistics;

/**
 * Blocks and their requested bytes.
 */
typedef struct hw_amount {
  /**
   * Blocks.
   */
  uint64_t blocks;
  /**
   * Bytes.
   */
  uint64_t bytes;
} hw_amount;

/**
 * The result of a leak check.
 */
typedef struct hw_leak_check {
  /**
   * Definitely lost: nothing leads to these blocks.
   */
  struct hw_amount definite;
  /**
   * Only definitely lost blocks lead to these blocks.
   */
  struct hw_amount indirect;
  /**
   * Possibly lost: only words that are perhaps no pointers lead to these blocks.
   */
  struct hw_amount possible;
  /**
   * The program still has a way to these blocks.
   */
  struct hw_amount reachable;
} hw_leak_check;

/**
 * One block, as hw_heap_walk visits it.
 */
typedef struct hw_block {
  /**
   * The block's address.
   */
  const void *address;
  /**
   * The block's size in bytes.
   */
  size_t size;
  /**
   * The number of the cache or heap that owns the block.
   */
  uint32_t owner;
  /**
   * Whether the program holds the block. Approximate for blocks of other threads: a free block
   * that waits in a thread's cache may be shown as in use.
   */
  bool in_use;
} hw_block;

/**
 * The function that hw_heap_walk calls for each block. Return false to stop the walk.
 */
typedef bool (*hw_visitor)(const struct hw_block *block, void *context);

/**
 * A position in an arena. hw_arena_mark makes it, and hw_arena_rewind uses it.
 */
typedef struct hw_arena_mark_t {
  /**
   * The next free byte.
   */
  void *position;
  /**
   * The chunk of this byte.
   */
  size_t chunk;
} hw_arena_mark_t;

/**
 * The size of an arena, in bytes. Later versions add fields at the end: pass hw_arena_stats the
 * size of the struct you were compiled with.
 */
typedef struct hw_arena_statistics {
  /**
   * Bytes handed out, padding included.
   */
  uint64_t used_bytes;
  /**
   * Bytes of all chunks.
   */
  uint64_t reserved_bytes;
} hw_arena_statistics;

/**
 * A thread's calls for memory, in blocks and bytes. Bytes are requested bytes, not the sizes of
 * the blocks.
 *
 * Later versions add fields at the end: pass hw_count_end the size of the struct you were compiled
 * with.
 */
typedef struct hw_counts {
  /**
   * Allocated blocks: by malloc, calloc, aligned_alloc, new and their kin, and by realloc of
   * NULL.
   */
  uint64_t allocations;
  /**
   * Blocks whose size was changed.
   */
  uint64_t reallocations;
  /**
   * Freed blocks, also by realloc to 0 bytes.
   */
  uint64_t frees;
  /**
   * Requested bytes: of all allocations, and the growth of reallocations.
   */
  uint64_t bytes;
  /**
   * The most bytes live at once, of blocks allocated since the beginning.
   */
  uint64_t peak_bytes;
  /**
   * Live bytes at the end minus those at the beginning. Negative if the thread freed more.
   */
  int64_t kept_bytes;
} hw_counts;

/**
 * The allocations of one stack, for hw_count_sites.
 */
typedef struct hw_count_site {
  /**
   * Return addresses, the innermost first; for backtrace_symbols_fd of execinfo.h, say. They
   * stay valid.
   */
  void *const *frames;
  /**
   * The number of frames. A static program's stacks end at code without frame pointers.
   */
  int depth;
  /**
   * Allocated blocks.
   */
  uint64_t allocations;
  /**
   * Requested bytes.
   */
  uint64_t bytes;
} hw_count_site;

/**
 * The function that hw_count_sites calls for each stack. Return false to stop.
 */
typedef bool (*hw_count_visitor)(const struct hw_count_site *site, void *context);

/**
 * The options of a heap. Zero is a good choice for each.
 */
typedef struct hw_gc_options {
  /**
   * sizeof(hw_gc_options).
   */
  size_t size;
  /**
   * A hw_gc_layout: the pools' slot sizes.
   */
  uint32_t layout;
  /**
   * The memory target in percent of the live bytes: more than 100, or 0 for 200.
   */
  uint32_t factor_percent;
  /**
   * HW_GC_VERIFY_HEAP, HW_GC_VERIFY_BARRIERS, HW_GC_STRESS.
   */
  uint32_t verify;
  /**
   * Bytes that each mutator may at least allocate between two collections. 0 means 4 MiB.
   */
  size_t least;
  /**
   * Bytes of pages and external memory beyond which no page is taken. 0 means no limit.
   */
  size_t most;
  /**
   * The longest step of an allocation in an incremental heap, in nanoseconds. 0 means 500000.
   */
  uint64_t step_ns;
  /**
   * Whether all stores of references are reported (hw_gc_write), so that marking proceeds in
   * steps.
   */
  bool incremental;
  /**
   * Whether all stores of references are reported (hw_gc_write), so that most collections are
   * minor: they skip objects that survived two collections.
   */
  bool generations;
  /**
   * The most threads that mark, stopped mutators included, but never more than processors. If
   * there is much to mark, marker threads start, up to this number, as far as processors are
   * idle. They end after a second without marking. 0 means one per processor, up to 4. With 1
   * there are no marker threads.
   */
  uint32_t markers;
  /**
   * Whether a heap with far more pages than its target moves objects close together. It moves
   * objects to which only handles and slots (hw_gc_mark_slot) lead. hw_gc_compact moves them at
   * once.
   */
  bool compact;
  /**
   * Whether objects of a runtime without trace are scanned word for word. Each word that may be
   * an address within an object then keeps that object, in its place. If not, objects of such a
   * runtime hold no references.
   */
  bool conservative;
  /**
   * Whether memory for traced objects keeps the bytes of dead objects, as memory for HW_GC_LEAF
   * always does. The runtime then writes, before the next safepoint, all that its trace function
   * reads.
   */
  bool uncleared;
} hw_gc_options;

/**
 * Receives references in a callback, and is valid during its call. Undeclared fields are
 * heapwright's own.
 */
typedef struct hw_gc_tracer {
  /**
   * The place of the next reference.
   */
  void **next;
  /**
   * The end of the room for references.
   */
  void **end;
  /**
   * Not 0 if objects are to be moved, and slots are reported to hw_gc_mark_slot_moving.
   */
  size_t by_slot;
} hw_gc_tracer;

/**
 * Stretches of free slots: allocation advances next. For heapwright_gc.h.
 */
typedef struct hw_gc_region {
  /**
   * The next slot.
   */
  char *next;
  /**
   * The end of the stretch's last slot.
   */
  char *end;
  /**
   * The next stretch, or NULL. Its first two words are its end and its next stretch.
   */
  void **hole;
  /**
   * Bytes of a slot.
   */
  uint32_t slot;
  /**
   * heapwright's own.
   */
  uint32_t page;
} hw_gc_region;

/**
 * A thread's access to a heap, from hw_gc_attach. Undeclared fields are heapwright's own.
 */
typedef struct hw_gc_mutator {
  /**
   * Not 0 if a collection requests a call of hw_gc_safepoint.
   */
  uint32_t poll;
  /**
   * Not 0 if stores of references must be reported. HW_GC_MOVING if all stores must be.
   */
  uint32_t barrier;
  /**
   * The heap.
   */
  struct hw_gc_heap *heap;
  /**
   * A region for each pool and kind: pool * 8 + kind.
   */
  struct hw_gc_region regions[HW_GC_REGIONS];
  /**
   * The region for a traced object of up to 32 KiB, by (size + 7) / 8, as bytes from the first
   * region.
   */
  uint16_t places[HW_GC_PLACES];
  /**
   * An object's mark: a bit for 16 bytes of its address.
   */
  const uint8_t *marks;
  /**
   * The runtime's word: see hw_gc_data.
   */
  void *data;
  /**
   * The entry of each 64 KiB of the heaps' addresses, by address >> 16. Other addresses have
   * none.
   */
  const uint32_t *units;
  /**
   * The entry of a page of the first region. For each later region, add one.
   */
  uint32_t first_list;
} hw_gc_mutator;

/**
 * One end of a span of a heap's collections. Later versions add fields at the end.
 */
typedef struct hw_gc_event {
  /**
   * Bytes of this struct.
   */
  size_t size;
  /**
   * The span: a hw_gc_span.
   */
  uint32_t span;
  /**
   * HW_GC_EVENT_BEGINS or HW_GC_EVENT_ENDS.
   */
  uint32_t edge;
  /**
   * HW_GC_EVENT_MINOR, HW_GC_EVENT_STOPPED, HW_GC_EVENT_COMPACTS.
   */
  uint32_t flags;
  /**
   * The calling thread's number in the system.
   */
  uint32_t thread;
  /**
   * The time, in nanoseconds of the system's monotonic clock.
   */
  uint64_t time_ns;
  /**
   * The number of the collection that began last, from 1.
   */
  uint64_t collection;
  /**
   * Bytes, as the span defines them.
   */
  uint64_t bytes;
  /**
   * Nanoseconds, as the span defines them.
   */
  uint64_t ns;
  /**
   * The heap.
   */
  struct hw_gc_heap *heap;
  /**
   * The calling thread's mutator, or NULL if unknown (a sweep's end, a large object's death).
   */
  struct hw_gc_mutator *mutator;
  /**
   * The large object. When it has died this is only an address.
   */
  void *object;
} hw_gc_event;

/**
 * A language runtime's callbacks. Leave unused callbacks zero; only trace or trace_kind is
 * required, if objects are traced. Each callback gets data. No callback but out_of_memory may
 * allocate, collect, throw or jump out.
 */
typedef struct hw_gc_runtime {
  /**
   * sizeof(hw_gc_runtime).
   */
  size_t size;
  /**
   * Handed to each callback.
   */
  void *data;
  /**
   * Reports every reference that object holds: hw_gc_mark for each.
   */
  void (*trace)(struct hw_gc_tracer *tracer, void *object, void *data);
  /**
   * Reports the roots that are neither handles nor on a stack that is scanned.
   */
  void (*roots)(struct hw_gc_tracer *tracer, void *data);
  /**
   * An object of kind HW_GC_FREED has died; size is the size of its slot. The callback must look
   * at no other object.
   */
  void (*free)(void *object, size_t size, void *data);
  /**
   * The name of an object's type, for dumps and verifiers: a string that stays.
   */
  const char *(*type_name)(const void *object, void *data);
  /**
   * The size, in bytes, that an object is to have after a move: the object goes to the pool that
   * fits. 0 stands for its present size.
   */
  size_t (*wanted)(const void *object, void *data);
  /**
   * An object has moved to a slot of size bytes. from, its old place, is only an address. The
   * callback may change the object, but may not store a reference into it.
   */
  void (*moved)(void *object, const void *from, size_t size, void *data);
  /**
   * Called at each event of a collection. The thread that collects, sweeps or allocates calls
   * it, and holds no lock of the heap. The callback may read objects, call hw_gc_stats and
   * hw_gc_attached, call malloc, and write files. It must not allocate in this heap, store
   * references, or start a collection. It must not attach, detach, enter or leave a mutator.
   * While the world is stopped (HW_GC_EVENT_STOPPED) it must take no lock that a thread may hold
   * at a safepoint. Its time is part of the pause. The events of a collection come in order,
   * except that the end of a pause is reported when the world runs again.
   */
  void (*event)(const struct hw_gc_event *event, void *data);
  /**
   * As trace, but also gets the object's kind. If both are set, trace is used.
   */
  void (*trace_kind)(struct hw_gc_tracer *tracer,
                     void *object,
                     uint32_t kind,
                     void *data);
  /**
   * Marking met a reference outside the heap: to static data, to memory of malloc, to another
   * heap. The runtime may mark its own data there, and report references from it, as trace does.
   * Any thread may run the callback, as with trace, but only between the ends of
   * HW_GC_SPAN_TRACE. It is called once for each such reference, and not for each target. NULL,
   * and values that are no multiple of 8, are left out. A minor collection reports references
   * from young objects and roots.
   */
  void (*outside)(struct hw_gc_tracer *tracer, void *reference, void *data);
  /**
   * There is no memory for an object, or none under the limit after a collection. The callback
   * returns true if it has freed memory or raised the limit. Then the allocation tries again.
   * Otherwise the allocation returns NULL. The callback may collect, run finalizers, and longjmp
   * out. Its own allocations in this heap may call it again.
   */
  bool (*out_of_memory)(struct hw_gc_mutator *mutator,
                        size_t size,
                        uint32_t kind,
                        void *data);
  /**
   * The size from which a large object is an event (HW_GC_SPAN_LARGE). With 0, no object is.
   */
  size_t large_bytes;
  /**
   * Objects have moved. For each reference of object that trace reports by hw_gc_mark_movable,
   * the callback stores the result of hw_gc_moved, if that is not NULL. Called while the world
   * is stopped, in one pause with the moves, for each object of the heap at its new address.
   * That includes dead objects that await their free: their references may lead to freed objects
   * and must not be followed. The callback must not allocate in this heap. If it reads other
   * objects, their references may still be unchanged. A heap with this callback makes all moves
   * in one pause, not in steps.
   */
  void (*update)(void *object, void *data);
  /**
   * As update, for the runtime's roots, after all objects. Set both callbacks or neither.
   */
  void (*update_roots)(void *data);
} hw_gc_runtime;

/**
 * The function that hw_gc_attached calls for each mutator: state is a hw_gc_thread_state.
 */
typedef void (*hw_gc_mutator_visitor)(struct hw_gc_mutator *mutator,
                                      uint32_t state,
                                      void *context);

/**
 * The function that hw_gc_run_finalizers calls.
 */
typedef void (*hw_gc_finalizer)(void *object, void *context);

/**
 * The function that hw_gc_tell_when_due calls.
 */
typedef void (*hw_gc_some_are_due)(void *context);

/**
 * The function that reads a table of the runtime: see hw_gc_add_weak_pass.
 */
typedef void (*hw_gc_weak_pass)(struct hw_gc_tracer *tracer, void *context);

/**
 * The outcome of a collection. Sizes in bytes, times in nanoseconds.
 */
typedef struct hw_gc_outcome {
  /**
   * Bytes of this struct, as the library knows it.
   */
  size_t size;
  /**
   * Live bytes: of slots, and of the runtime's blocks in malloc that it has reported for them.
   */
  size_t live_bytes;
  /**
   * Bytes allocated since the collection before.
   */
  size_t allocated_bytes;
  /**
   * Bytes marked.
   */
  size_t marked_bytes;
  /**
   * Bytes that may be live or garbage when the next collection ends, by the heap's own rule.
   */
  size_t goal_bytes;
  /**
   * Time of the collector: CPU time of the marking thread, and sweeping since the collection
   * before.
   */
  uint64_t collector_ns;
  /**
   * Time of the program since the collection before, by the clock.
   */
  uint64_t mutator_ns;
  /**
   * Collections so far, this one included.
   */
  uint64_t cycles;
  /**
   * Whether the collection was a minor one.
   */
  bool minor;
} hw_gc_outcome;

/**
 * The function of hw_gc_set_policy: returns how many bytes may be live and garbage when the next
 * collection ends.
 */
typedef size_t (*hw_gc_policy)(const struct hw_gc_outcome *outcome, void *context);

/**
 * The statistics of a pool.
 */
typedef struct hw_gc_pool_statistics {
  /**
   * Bytes of a slot; 0 if there is no such pool. The last pool is that of large objects.
   */
  uint64_t slot_size;
  /**
   * Pages in use.
   */
  uint64_t pages;
  /**
   * Slots in these pages.
   */
  uint64_t slots;
  /**
   * Objects that the last collection found live.
   */
  uint64_t live;
  /**
   * Free slots, without those of pages that mutators took since the last collection.
   */
  uint64_t free_slots;
  /**
   * Pages with free slots that no mutator has.
   */
  uint64_t available_pages;
  /**
   * Pages that mutators took since the last collection.
   */
  uint64_t taken_pages;
  /**
   * Pages that were granted beyond the goal, ever.
   */
  uint64_t grown_pages;
  /**
   * Pages that were borrowed while the pool's sweep was under way, ever.
   */
  uint64_t borrowed_pages;
  /**
   * The decision when the pool's last sweep ended: 0 none yet, 1 enough is free, 2 stable, 3 the
   * pool grows, 4 the pool gave pages back.
   */
  uint32_t decision;
  /**
   * Not used.
   */
  uint32_t spare;
} hw_gc_pool_statistics;

/**
 * The statistics of a heap. Times are in nanoseconds. Later versions add fields at the end: give
 * hw_gc_stats the size of the struct you were compiled with.
 */
typedef struct hw_gc_statistics {
  /**
   * Collections whose marking has ended.
   */
  uint64_t cycles;
  /**
   * Times the world was stopped.
   */
  uint64_t pauses;
  /**
   * Bytes that the last collection found live, external ones included.
   */
  uint64_t live_bytes;
  /**
   * Bytes that the runtime has in malloc and reported.
   */
  uint64_t external_bytes;
  /**
   * Bytes that may be live or garbage when the next collection ends.
   */
  uint64_t goal_bytes;
  /**
   * Bytes of pages in use, without large objects.
   */
  uint64_t in_use_bytes;
  /**
   * Bytes of pages that are wholly free.
   */
  uint64_t empty_bytes;
  /**
   * Bytes of the pages of large objects.
   */
  uint64_t large_bytes;
  /**
   * The most bytes the heap ever had, external ones included.
   */
  uint64_t peak_bytes;
  /**
   * Bytes allocated so far, counted when a mutator takes a page.
   */
  uint64_t allocated_bytes;
  /**
   * Nanoseconds that the world was stopped, by the clock.
   */
  uint64_t pause_ns;
  /**
   * Nanoseconds that all threads spent sweeping, by the clock: in steps, and when mutators take
   * pages.
   */
  uint64_t sweep_ns;
  /**
   * The longest pause, in nanoseconds of the collecting thread's CPU time. A user waits for
   * pause_wall_max_ns.
   */
  uint64_t pause_max_ns;
  /**
   * Pauses by their CPU time: bucket b has those of 2^b up to 2^(b+1) nanoseconds.
   */
  uint64_t pause_histogram[HW_GC_PAUSE_BUCKETS];
  /**
   * 0: idle, 1: marking, 2: sweeping, 3: moving.
   */
  uint32_t phase;
  /**
   * Pools, without that of large objects.
   */
  uint32_t pools;
  /**
   * Mutators attached.
   */
  uint32_t mutators;
  /**
   * Finalizers that wait to be run.
   */
  uint32_t finalizers_pending;
  /**
   * Handles in use.
   */
  uint64_t handles;
  /**
   * The pools, smallest first; at the end that of large objects.
   */
  struct hw_gc_pool_statistics pool[HW_GC_POOLS];
  /**
   * Minor collections.
   */
  uint64_t minor_cycles;
  /**
   * Bytes of old objects, which a minor collection does not trace.
   */
  uint64_t old_bytes;
  /**
   * Weak references, and ephemerons, that became NULL.
   */
  uint64_t cleared;
  /**
   * Collections that moved objects.
   */
  uint64_t compactions;
  /**
   * Objects that were moved.
   */
  uint64_t moved_objects;
  /**
   * Bytes of the objects that were moved.
   */
  uint64_t moved_bytes;
  /**
   * Pages whose objects were moved elsewhere.
   */
  uint64_t evacuated_pages;
  /**
   * Evacuation candidates that were not evacuated. An object in such a page was pinned or reported by value, or more slots led to the page than a step can update.
   */
  uint64_t kept_pages;
  /**
   * The longest pause, in nanoseconds by the clock: from the moment that all mutators are
   * stopped until they go on.
   */
  uint64_t pause_wall_max_ns;
  /**
   * Pauses by the clock: bucket b has those of 2^b up to 2^(b+1) nanoseconds.
   */
  uint64_t pause_wall_histogram[HW_GC_PAUSE_BUCKETS];
  /**
   * The sum of all waits, in nanoseconds by the clock. A wait lasts from the collector's call
   * until all mutators are stopped. A pause does not include its wait. The first mutator to stop
   * waits that long.
   */
  uint64_t safepoint_ns;
  /**
   * The longest of these waits, in nanoseconds.
   */
  uint64_t safepoint_max_ns;
  /**
   * Bytes of the collector's own lists: items still to be marked, old objects that were stored
   * into, and, during marking, weak references and ephemerons. Bytes above 256 KiB count against
   * the limit most.
   */
  uint64_t lists_bytes;
  /**
   * The most bytes that these lists ever had.
   */
  uint64_t lists_peak_bytes;
  /**
   * Bytes that are free and may be in memory: those of empty_bytes, and free slots of pages with
   * objects.
   */
  uint64_t free_bytes;
} hw_gc_statistics;

/**
 * The function that hw_gc_walk calls for each object. Return false to stop the walk.
 */
typedef bool (*hw_gc_visitor)(void *object, size_t size, uint32_t kind, void *context);

/**
 * Settings of a pool for hw_pool_create_with. Later versions add fields at the end, whose zero is
 * the default. Set all fields to zero first, and pass the size of the struct you were compiled
 * with.
 */
typedef struct hw_pool_options {
  /**
   * The name of the objects in messages, copied up to 47 bytes; NULL is "raw".
   */
  const char *name;
  /**
   * The most objects in use at a time; 0 is no limit.
   */
  uint32_t limit;
  /**
   * Whether each object is checked when it is freed: a wrong or a second free ends the program
   * with a line. In mode=debug all pools are checked. A checked pool is slower: each object is a
   * block of the process's heap.
   */
  bool checked;
} hw_pool_options;

/**
 * The function that hw_pool_walk calls for each object. Return false to stop the walk.
 */
typedef bool (*hw_object_visitor)(void *object, void *context);

/**
 * The size of a pool, in bytes and objects. Later versions add fields at the end: pass
 * hw_pool_stats the size of the struct you were compiled with.
 */
typedef struct hw_pool_statistics {
  /**
   * Objects in use.
   */
  uint64_t live;
  /**
   * Objects that there is memory for.
   */
  uint64_t capacity;
  /**
   * Bytes from one object to the next.
   */
  uint64_t slot_size;
  /**
   * Runs of memory that hold the objects.
   */
  uint64_t segments;
  /**
   * Address space of these runs. Unused and trimmed memory is not resident.
   */
  uint64_t reserved_bytes;
} hw_pool_statistics;

#ifdef __cplusplus
extern "C" {
#endif /* __cplusplus */

/**
 * Makes a first-class heap. Any thread may use it, and several at once.
 *
 * Returns NULL with errno ENOMEM if there is no memory.
 */
struct hw_heap *hw_heap_new(void);

/**
 * Gives a block of at least size bytes from a heap, aligned to 16 bytes. Free
 * it with hw_heap_free, or with free, or all at once with hw_heap_destroy.
 *
 * Returns NULL with errno ENOMEM if there is no memory.
 *
 * The program's duties:
 *
 * heap is a heap of hw_heap_new that was not destroyed.
 */
void *hw_heap_alloc(struct hw_heap *heap, size_t size);

/**
 * Like hw_heap_alloc, with count * size bytes of zeros.
 *
 * Returns NULL with errno ENOMEM if there is no memory or the product overflows.
 *
 * The program's duties:
 *
 * heap is a heap of hw_heap_new that was not destroyed.
 */
void *hw_heap_alloc_zeroed(struct hw_heap *heap, size_t count, size_t size);

/**
 * Like hw_heap_alloc, at a multiple of alignment, which is a power of two.
 *
 * Returns NULL with errno EINVAL if alignment is no power of two, ENOMEM if there is no memory.
 *
 * The program's duties:
 *
 * heap is a heap of hw_heap_new that was not destroyed.
 */
void *hw_heap_alloc_aligned(struct hw_heap *heap,
                            size_t size,
                            size_t alignment);

/**
 * Gives a block back to its heap. NULL is ignored; errno is kept.
 *
 * A block of another heap ends the program with a line that names its owner. In mode=debug such a
 * block is a finding, as a second free is, and the program goes on.
 *
 * The program's duties:
 *
 * heap is a heap of hw_heap_new that was not destroyed; block is NULL or a
 * block of it that was not freed.
 */
void hw_heap_free(struct hw_heap *heap,
                  void *block);

/**
 * Gives back a heap and every block in it. NULL is ignored.
 *
 * The program's duties:
 *
 * heap is NULL or a heap of hw_heap_new that was not destroyed. No thread uses
 * the heap or a block of it any more.
 */
void hw_heap_destroy(struct hw_heap *heap);

/**
 * Raises the number of caches that threads share (HEAPWRIGHT="cache=shared:K") to count, at most
 * 1024. The number is never lowered. Running threads are not disturbed.
 *
 * Returns the number of caches now: count or more, or fewer if there is no memory. Returns 0 if
 * threads have caches of their own. A count of 0 changes nothing.
 */
size_t hw_raise_shared_caches(size_t count);

/**
 * Whether an address lies in a block of heapwright's, in use or free. Any address is allowed; the
 * memory at it is not touched.
 */
bool hw_owns(const void *address);

/**
 * Returns the number of bytes from an address to the end of its block, which the program may
 * write. Returns SIZE_MAX if the address is in no block of heapwright's, or in an arena, which
 * does not remember its blocks. Returns 0 if the block was freed or never handed out. Any address
 * is allowed; the memory at it is not touched. Takes constant time: a few nanoseconds.
 *
 * In mode=hardened and mode=debug the block ends with the last byte that the program requested. In
 * mode=fast it ends with its usable bytes (malloc_usable_size), and freed small blocks count as
 * blocks in use.
 */
size_t hw_object_size(const void *address);

/**
 * Describes the memory at an address. Any address is allowed; the memory at it is not touched; the
 * time does not depend on the size of the heap.
 *
 * Another thread may free the block meanwhile, so the answer may be old when it arrives.
 */
struct hw_description hw_describe(const void *address);

/**
 * Writes the process's statistics to *out, which is size bytes: pass sizeof(hw_statistics). A
 * smaller struct of an older program gets the fields that it has. A larger struct gets zeros
 * behind the fields that this library knows.
 *
 * Returns how many bytes of the struct this library knows. Returns 0 with errno EINVAL for a size
 * of 0 or beyond 64 KiB. Returns 0, and all fields zero, if the heap stays locked because the
 * caller is a signal handler that interrupted it. Never allocates. Takes time in proportion to the
 * memory in use: this is for reports.
 *
 * The program's duties:
 *
 * out points to size bytes that can be written.
 */
size_t hw_get_stats(struct hw_statistics *out,
                    size_t size);

/**
 * As hw_get_stats, but without system calls, for programs that call it often. Handed out memory
 * counts as resident until it is given back. rss, peak_rss and rss_not_ours are 0. Other threads'
 * caches count as they last published their contents. Takes some 20 ns for each 64 KiB of the
 * heap.
 *
 * Returns how many bytes of the struct this library knows. Returns 0, and all fields zero, if the
 * heap is locked at this moment.
 *
 * The program's duties:
 *
 * out points to size bytes that can be written.
 */
size_t hw_estimate_stats(struct hw_statistics *out,
                         size_t size);

/**
 * Returns whether the program should move a block, so that memory becomes free sooner. The block
 * then lies in one of the sparsest slabs of its size class, and other slabs have room for the
 * blocks of those slabs. A program that can move its blocks calls this for each block in turn. It
 * moves the block if this returns true:
 *
 *     void *new = hw_malloc_uncached(size);
 *     memcpy(new, block, size);
 *     hw_free_uncached(block);
 *
 * Call it in the thread that allocates. Blocks move among the slabs of this thread or, if threads
 * share caches, among the common slabs. Returns false for blocks of other threads, first-class
 * heaps and other allocators, and for samples of a heap profile. Returns false for sizes of whole
 * pages, whose memory goes back by itself. Returns false in mode=debug, and while calls are traced
 * or counted. Any address is allowed.
 *
 * The answer is advice from a survey of the heap. The survey is up to 100 ms old, or older if
 * surveys take over 1 ms. A call that makes a survey takes some 20 ns for each 64 KiB of the heap;
 * other calls take constant time. At most four threads with caches of their own get answers at a
 * time.
 */
bool hw_should_move(const void *block);

/**
 * Allocates as malloc does, but in a free slot of a slab that need not be emptied: the new place
 * for a block that the program moves. The function does as malloc if there is no such slot, if
 * hw_should_move was not called lately, and for blocks over 32 KiB. Free the block with free or
 * hw_free_uncached. Takes longer than malloc.
 *
 * Returns null, with errno ENOMEM, if there is no memory.
 */
void *hw_malloc_uncached(size_t size);

/**
 * Frees a block as free does, but puts it into its slab at once, not into a list of the thread.
 *
 * The program's duties:
 *
 * block is null, or a block of this heap in use that the program no longer needs.
 */
void hw_free_uncached(void *block);

/**
 * Looks for leaks now, in mode=debug, among the blocks of malloc and its kin. Writes the result to
 * *out, which is size bytes (pass sizeof(hw_leak_check)). The record (option record) gets the
 * leaks with their stacks, and standard error gets them if findings go there.
 *
 * The program stops for a moment, while each thread reports its registers and the process is
 * copied. The copy does the remaining work, and the caller waits for it.
 *
 * Returns how many bytes of the struct this library knows. Returns 0 with errno EINVAL for a size
 * of 0 or beyond 64 KiB. Returns 0, and all fields zero, if malloc is not the debug heap's, or if
 * another check is under way. Returns the same without /proc or memory, and in a sandbox.
 *
 * The program's duties:
 *
 * out points to size bytes that can be written.
 */
size_t hw_check_leaks(struct hw_leak_check *out,
                      size_t size);

/**
 * Gives free memory back to the kernel now, as malloc_trim(0) does: free blocks, empty pages of
 * slabs, and all free runs. Free blocks in the lists of other live threads stay. Call it at the
 * end of a phase that needed much memory. Later allocations fault their pages in again.
 *
 * Returns whether any memory went back.
 */
bool hw_purge(void);

/**
 * Sets a limit for this process's own resident memory, in bytes, at least 1 MiB. With 0 the memory
 * limit of its control groups counts again. Near the limit free memory goes back to the kernel
 * sooner, and at the limit one line is written to standard error. It is a soft limit: no
 * allocation fails because of it. Takes effect within moments, at the heap's next slow operation.
 */
void hw_set_soft_limit(size_t bytes);

/**
 * Begins a heap profile. Samples are a Poisson process over allocated bytes with a mean distance
 * of bytes: a block of n bytes is a sample with the probability 1 - exp(-n / bytes). The stack of
 * a sample is kept, and its free is seen. Values outside of 1 KiB to 1 GiB are clamped; 524288
 * costs a few per cent of a program's time at most. Blocks that were allocated before are not
 * seen. A thread follows at its next slow path: in a program that allocates, within moments.
 *
 * Returns whether the profile has begun. It does not begin in mode=debug, if another copy of the
 * library serves malloc, or if there is no memory.
 */
bool hw_profile_begin(size_t bytes);

/**
 * Ends the profile's sampling. Live samples stay in the profile until they are freed.
 */
void hw_profile_end(void);

/**
 * Writes the present heap profile to an open file, pipe or socket: a complete record for the
 * command (heapwright report FILE). Never allocates. Takes time in proportion to the number of
 * samples.
 *
 * Returns whether the whole record was written.
 */
bool hw_profile_write(int file);

/**
 * Visits every block of the process's heaps in the order of addresses, except those of mode=debug.
 *
 * Calls visit with each block and with context, until visit returns false. The block is valid
 * during the call only. visit may not allocate, free or throw. The walk may miss blocks that other
 * threads allocate or free meanwhile.
 *
 * Returns whether the walk came to the end.
 *
 * The program's duties:
 *
 * visit is a function that obeys these rules.
 */
bool hw_heap_walk(hw_visitor visit,
                  void *context);

/**
 * The library's version as a string, "0.1.0" for example. Neither change nor free it.
 */
const char *hw_version(void);

/**
 * Makes an arena that takes at most limit bytes of memory; 0 is no limit. Takes no
 * memory for blocks yet.
 *
 * Returns NULL with errno ENOMEM if there is no memory.
 */
struct hw_arena *hw_arena_create(size_t limit);

/**
 * Gives size bytes, aligned to 16, uninitialised. They live until the arena is
 * reset, rewound to before them, or destroyed.
 *
 * Returns NULL with errno ENOMEM if there is no memory or the limit is reached.
 *
 * The program's duties:
 *
 * arena is an arena of hw_arena_create that was not destroyed, and this thread's now.
 */
void *hw_arena_alloc(struct hw_arena *arena, size_t size);

/**
 * Like hw_arena_alloc, at a multiple of alignment, which is a power of two.
 *
 * Returns NULL with errno EINVAL if alignment is no power of two, ENOMEM if there is no memory or
 * the limit is reached.
 *
 * The program's duties:
 *
 * arena is an arena of hw_arena_create that was not destroyed, and this thread's now.
 */
void *hw_arena_alloc_aligned(struct hw_arena *arena,
                             size_t size,
                             size_t alignment);

/**
 * Changes the size of a block of at least hw_arena_alloc's alignment from old_size to size bytes.
 * The block stays in place if it is the last block made, or if it shrinks. Otherwise its bytes
 * move to a new block. A NULL block makes a new block.
 *
 * Returns NULL with errno ENOMEM if there is no memory; the block is as it was.
 *
 * The program's duties:
 *
 * arena is an arena of hw_arena_create that was not destroyed, and this thread's now; block is
 * NULL or a block of this arena of old_size bytes. Afterwards only the returned block is used.
 */
void *hw_arena_resize(struct hw_arena *arena,
                      void *block,
                      size_t old_size,
                      size_t size);

/**
 * Gives a block of size bytes back. Its memory is used again if it was the last block made. NULL
 * is ignored.
 *
 * The program's duties:
 *
 * arena is an arena of hw_arena_create that was not destroyed, and this thread's now; block is
 * NULL or a block of this arena of size bytes, and not used any more.
 */
void hw_arena_free(struct hw_arena *arena,
                   void *block,
                   size_t size);

/**
 * Returns an arena's position, for hw_arena_rewind.
 *
 * The program's duties:
 *
 * arena is an arena of hw_arena_create that was not destroyed, and this thread's now.
 */
struct hw_arena_mark_t hw_arena_mark(struct hw_arena *arena);

/**
 * Frees exactly the blocks made since a mark.
 *
 * The program's duties:
 *
 * arena is an arena of hw_arena_create that was not destroyed, and this thread's now. mark is a
 * mark of this arena. Since the mark the arena was neither reset, nor trimmed, nor rewound to an
 * earlier position. Blocks made since then are not used any more.
 */
void hw_arena_rewind(struct hw_arena *arena,
                     struct hw_arena_mark_t mark);

/**
 * Frees all blocks and keeps the memory for later blocks.
 *
 * The program's duties:
 *
 * arena is an arena of hw_arena_create that was not destroyed, and this thread's
 * now. Blocks of it are not used any more.
 */
void hw_arena_reset(struct hw_arena *arena);

/**
 * Gives the memory behind the blocks in use to the kernel, now. Returns its bytes.
 *
 * The program's duties:
 *
 * arena is an arena of hw_arena_create that was not destroyed, and this thread's now.
 */
size_t hw_arena_trim(struct hw_arena *arena);

/**
 * Writes an arena's size to *out, which is size bytes: pass sizeof(hw_arena_statistics). A smaller
 * struct gets the fields that it has. A larger struct gets zeros behind the fields that this
 * library knows.
 *
 * Returns how many bytes of the struct this library knows. Returns 0 with errno EINVAL for a size
 * of 0 or beyond 64 KiB.
 *
 * The program's duties:
 *
 * arena is an arena of hw_arena_create that was not destroyed, and this thread's
 * now; out points to size bytes that can be written.
 */
size_t hw_arena_stats(struct hw_arena *arena,
                      struct hw_arena_statistics *out,
                      size_t size);

/**
 * Gives back an arena and every block in it. NULL is ignored.
 *
 * The program's duties:
 *
 * arena is NULL or an arena of hw_arena_create that was not destroyed. It and
 * its blocks are not used any more.
 */
void hw_arena_destroy(struct hw_arena *arena);

/**
 * Begins an exact count of the calling thread's calls of malloc and its kin, until hw_count_end.
 * Works in any mode. Other threads are not counted, so tests may run side by side. First-class
 * heaps, pools, arenas, collected heaps, and signal handlers that interrupt the counting are not
 * counted, either. flags is 0 or HW_COUNT_STACKS.
 *
 * Counts may be nested, sixteen deep; an outer count includes its inner ones. A block may be made
 * before the outermost count, or by another thread. Such a block counts with its requested size in
 * mode=debug and mode=hardened, and with the size of malloc_usable_size in mode=fast.
 *
 * Counting costs a thread some 100 ns a call, or some microseconds with stacks.
 *
 * Returns false, and begins nothing, with errno EINVAL for other flags, ENOMEM if there is no
 * memory, and EAGAIN if sixteen counts are open. Returns false with errno ENOTSUP if another
 * allocator, or another copy of this library, serves malloc.
 */
bool hw_count_begin(uint32_t flags);

/**
 * Ends the calling thread's innermost count and writes the result to *out, which is size bytes:
 * pass sizeof(hw_counts). A smaller struct of an older program gets the fields that it has. A
 * larger struct gets zeros behind the fields that this library knows. out may be NULL.
 *
 * Returns false with errno EINVAL, and all fields zero, if the thread counts nothing. Returns
 * false with errno EINVAL for a size of 0 or beyond 64 KiB. Returns false with errno ENOMEM if
 * there was no memory to remember each block; peak_bytes and kept_bytes may then be wrong.
 *
 * The program's duties:
 *
 * out is NULL or points to size bytes that can be written.
 */
bool hw_count_end(struct hw_counts *out,
                  size_t size);

/**
 * Shows the allocations of each stack in the calling thread's innermost open count, if that count
 * began with HW_COUNT_STACKS. Calls visit with each stack, most bytes first, and with context,
 * until visit returns false. visit may allocate and print; these calls are not counted. It may
 * neither begin nor end a count.
 *
 * Returns the number of stacks; 0 if no stacks are kept.
 *
 * The program's duties:
 *
 * visit is NULL or a function that obeys these rules.
 */
size_t hw_count_sites(hw_count_visitor visit,
                      void *context);

/**
 * Makes a heap. options and runtime may be NULL. Both structs are copied. Each begins with its
 * size: sizeof, as the program knows it.
 *
 * Returns NULL with errno EINVAL for options that do not exist, and for a nonzero field that this
 * version does not know. The same holds for a size that no version of the struct has (0, or more
 * than 64 KiB). Returns NULL with errno ENOMEM if there is no memory.
 *
 * The program's duties:
 *
 * The structs are as long as they say; the runtime keeps the duties listed in heapwright_gc.h.
 */
struct hw_gc_heap *hw_gc_create(const struct hw_gc_options *options,
                                const struct hw_gc_runtime *runtime);

/**
 * Ends a heap: objects of kind HW_GC_FREED are freed, and all its memory goes back. NULL is
 * ignored. A verified heap ends the program if a mutator is attached to it.
 *
 * The program's duties:
 *
 * heap is NULL or of hw_gc_create and was not destroyed; no mutator is attached to it, and no
 * thread uses an object of it any more.
 */
void hw_gc_destroy(struct hw_gc_heap *heap);

/**
 * Attaches the calling thread to a heap: a thread has one mutator in each heap. Waits while the
 * world is stopped. A thread that ends attached is detached.
 *
 * Returns NULL with errno ENOMEM if there is no memory, EBUSY if the thread has a mutator of
 * this heap.
 *
 * The program's duties:
 *
 * heap is of hw_gc_create and was not destroyed.
 */
struct hw_gc_mutator *hw_gc_attach(struct hw_gc_heap *heap);

/**
 * Makes a mutator without a thread, as after hw_gc_leave. The thread that calls hw_gc_enter gets
 * the mutator. This is for a runtime whose threads take turns, or that prepares a thread before it
 * starts. Does not wait while the world is stopped: the calling thread may have a mutator.
 *
 * Returns NULL with errno ENOMEM if there is no memory.
 *
 * The program's duties:
 *
 * heap is of hw_gc_create and was not destroyed.
 */
struct hw_gc_mutator *hw_gc_attach_away(struct hw_gc_heap *heap);

/**
 * Detaches the calling thread from its heap.
 *
 * The program's duties:
 *
 * mutator is this thread's, of hw_gc_attach, and is not used any more.
 */
void hw_gc_detach(struct hw_gc_mutator *mutator);

/**
 * Gives memory for an object of size bytes, aligned to 8 bytes (to 16 in the fine layout). kind is
 * HW_GC_TRACED or HW_GC_LEAF, with or without HW_GC_FREED and HW_GC_USER. The inline hw_gc_new
 * does the same, faster. May collect.
 *
 * Returns NULL with errno ENOMEM if there is no memory. The same happens if a collection leaves no
 * memory under the limit, and the runtime's out_of_memory (if it has one) has given up. Returns
 * NULL with errno EINVAL for a kind that does not exist (a verified heap ends the program then).
 *
 * The program's duties:
 *
 * mutator is this thread's; the duties listed in heapwright_gc.h.
 */
void *hw_gc_alloc(struct hw_gc_mutator *mutator,
                  size_t size,
                  uint32_t kind);

/**
 * Reports that a reference to child was stored into parent. hw_gc_write calls this while the heap
 * marks, and for old parents. While the heap marks, parent may be NULL: this keeps child, and does
 * not change the remembered set.
 *
 * The program's duties:
 *
 * mutator is this thread's; parent and child are objects of its heap, or no addresses in it.
 */
void hw_gc_shade(struct hw_gc_mutator *mutator,
                 void *parent,
                 void *child);

/**
 * As hw_gc_shade, and names the slot of parent that was stored to: cheaper while objects are
 * moved. hw_gc_write calls this.
 *
 * The program's duties:
 *
 * As hw_gc_shade; slot lies in parent.
 */
void hw_gc_wrote(struct hw_gc_mutator *mutator,
                 void *parent,
                 void **slot,
                 void *child);

/**
 * The slow path of hw_gc_touch in heapwright_gc.h: reports that parent was stored into, or will be
 * before the next safepoint.
 *
 * The program's duties:
 *
 * mutator is this thread's; parent is an object of its heap.
 */
void hw_gc_touched(struct hw_gc_mutator *mutator,
                   void *parent);

/**
 * The slow path of hw_gc_touch_slot in heapwright_gc.h: as hw_gc_touched, for one slot of parent.
 *
 * The program's duties:
 *
 * As hw_gc_touched; slot lies in parent.
 */
void hw_gc_touched_slot(struct hw_gc_mutator *mutator,
                        void *parent,
                        void **slot);

/**
 * Exempts the object from the reports of stores for as long as it lives. Every collection, also a
 * minor one, reads the object, and the objects that it leads to do not move. This is for objects
 * that foreign code writes into.
 *
 * Returns false with errno ENOMEM if there is no memory.
 *
 * The program's duties:
 *
 * mutator is this thread's; object is an object of its heap.
 */
bool hw_gc_unprotect(struct hw_gc_mutator *mutator,
                     void *object);

/**
 * Reports a reference. hw_gc_mark calls it when the tracer has no room.
 *
 * The program's duties:
 *
 * tracer is the argument of the running callback.
 */
void hw_gc_mark_full(struct hw_gc_tracer *tracer, void *object);

/**
 * hw_gc_mark_slot, while objects are to be moved.
 *
 * The program's duties:
 *
 * As hw_gc_mark_slot.
 */
void hw_gc_mark_slot_moving(struct hw_gc_tracer *tracer, void **slot);

/**
 * hw_gc_mark_movable, while objects are to be moved.
 *
 * The program's duties:
 *
 * As hw_gc_mark_movable.
 */
void hw_gc_mark_movable_moving(struct hw_gc_tracer *tracer, void *object);

/**
 * Reports the references in count words at slots, which lie within the traced object. They are
 * read later, some at a time, so an object may have millions.
 *
 * The program's duties:
 *
 * tracer is the argument of the running callback; the slots can be read for as long as
 * the object lives.
 */
void hw_gc_mark_range(struct hw_gc_tracer *tracer,
                      void **slots,
                      size_t count);

/**
 * Returns the start of the part of the object that trace is to report now: 0 at first, then the
 * number that hw_gc_trace_rest got.
 *
 * The program's duties:
 *
 * tracer is the argument of the running callback.
 */
size_t hw_gc_traced_to(const struct hw_gc_tracer *tracer);

/**
 * Reports that object, for which trace was called, has more references than were reported now.
 * trace is called again, maybe in a later step. Then hw_gc_traced_to returns the number `from`,
 * which the caller chooses: 1 to 2^60, such as the number of references reported so far. Use this
 * if one call for all references would take too long, and hw_gc_mark_range does not suit. Call it
 * last.
 *
 * Between the calls a reference may move from the unreported part of the object to a reported
 * part. That store must be reported, as any other (hw_gc_write, hw_gc_touch).
 *
 * The program's duties:
 *
 * tracer and object are the arguments of trace.
 */
void hw_gc_trace_rest(struct hw_gc_tracer *tracer,
                      void *object,
                      size_t from);

/**
 * Reports that the reference in slot is weak: the object that it leads to may die, and slot
 * becomes NULL then, before the object's finalizers run.
 *
 * The program's duties:
 *
 * tracer is the argument of the running callback; slot lies in the object that is being traced.
 */
void hw_gc_mark_weak(struct hw_gc_tracer *tracer,
                     void **slot);

/**
 * Reports an ephemeron: the reference in key is weak, and value keeps its object as long as the
 * key's object lives. When the key's object has died, key and value become NULL. A key that is no
 * object of the heap lives for ever. A NULL key counts as alive, so the program may store the
 * value before the key.
 *
 * The program's duties:
 *
 * tracer is the argument of the running callback; key lies in the object that is being traced.
 * value lies there, too, or in static data. A value in static data lives as long as the traced
 * object.
 */
void hw_gc_mark_ephemeron(struct hw_gc_tracer *tracer,
                          void **key,
                          void **value);

/**
 * Reports a word that may be an address within an object, or any other value.
 *
 * The program's duties:
 *
 * tracer is the argument of the running callback.
 */
void hw_gc_mark_maybe(struct hw_gc_tracer *tracer, void *word);

/**
 * Reports each word of the range between the two addresses, as hw_gc_mark_maybe does.
 *
 * The program's duties:
 *
 * tracer is the argument of the running callback; the range can be read.
 */
void hw_gc_scan(struct hw_gc_tracer *tracer, const void *from, const void *to);

/**
 * Makes a handle: a cell that keeps its object alive, and may be read and written freely.
 *
 * Returns NULL with errno ENOMEM if there is no memory.
 *
 * The program's duties:
 *
 * mutator is this thread's; object is NULL or an object of its heap.
 */
void **hw_gc_root_new(struct hw_gc_mutator *mutator,
                      void *object);

/**
 * Frees a handle, of any mutator of the heap. NULL is ignored.
 *
 * The program's duties:
 *
 * mutator is this thread's; cell is NULL or of hw_gc_root_new and was not freed.
 */
void hw_gc_root_free(struct hw_gc_mutator *mutator, void **cell);

/**
 * Makes a weak handle: a cell that may be read freely, and does not keep its object alive. It
 * becomes NULL when the object has died, before the object's finalizers run.
 *
 * The program may store NULL into the cell. It may store an object directly over a NULL of this
 * call, of hw_gc_weak_set or of the heap. Over an object or its own NULL it must call
 * hw_gc_weak_set, because collections skip weak handles of old objects. HW_GC_VERIFY_BARRIERS
 * finds other stores.
 *
 * Returns NULL with errno ENOMEM if there is no memory.
 *
 * The program's duties:
 *
 * mutator is this thread's; object is NULL or an object of its heap.
 */
void **hw_gc_weak_new(struct hw_gc_mutator *mutator,
                      void *object);

/**
 * Stores an object, or NULL, into a weak handle, whatever the handle holds.
 *
 * The program's duties:
 *
 * mutator is this thread's; cell is of hw_gc_weak_new and was not freed; object is NULL or an
 * object of the mutator's heap.
 */
void hw_gc_weak_set(struct hw_gc_mutator *mutator,
                    void **cell,
                    void *object);

/**
 * Frees a weak handle, of any mutator of the heap. NULL is ignored.
 *
 * The program's duties:
 *
 * mutator is this thread's; cell is NULL or of hw_gc_weak_new and was not freed.
 */
void hw_gc_weak_free(struct hw_gc_mutator *mutator, void **cell);

/**
 * From now on collections scan the calling thread's registers and its stack below base: every word
 * that is an address within an object keeps that object. A base of NULL ends the scans.
 *
 * A thread that changes to another stack (makecontext, sigaltstack) calls this after each change,
 * also after the change back. The runtime's roots report other stacks with objects (hw_gc_scan).
 * A collection on a stack that was not named ends the program with one line.
 *
 * The program's duties:
 *
 * mutator is this thread's; base is in this thread's stack, above every frame that holds objects,
 * until the next call.
 */
void hw_gc_scan_stack(struct hw_gc_mutator *mutator,
                      const void *base);

/**
 * Stops if a collection requests it. hw_gc_poll calls it in this case.
 *
 * The program's duties:
 *
 * mutator is this thread's; the duties listed in heapwright_gc.h.
 */
void hw_gc_safepoint(struct hw_gc_mutator *mutator);

/**
 * The thread calls this before it blocks: collections go on without the thread. Until hw_gc_enter
 * the thread must touch no object and call nothing here. The frame that called this must not
 * return before hw_gc_enter.
 *
 * The program's duties:
 *
 * mutator is this thread's; the duties listed in heapwright_gc.h.
 */
void hw_gc_leave(struct hw_gc_mutator *mutator);

/**
 * The thread returns, or another thread takes over its mutator. Waits while the world is stopped.
 *
 * The program's duties:
 *
 * The call follows hw_gc_leave; the thread has no other mutator of the heap.
 */
void hw_gc_enter(struct hw_gc_mutator *mutator);

/**
 * As hw_gc_enter, but does not wait. This is for a thread that has other work meanwhile.
 *
 * Returns whether the thread is back. It is not back if the world is stopped.
 *
 * The program's duties:
 *
 * As hw_gc_enter.
 */
bool hw_gc_try_enter(struct hw_gc_mutator *mutator);

/**
 * Visits all mutators of a heap, each with the hw_gc_thread_state that it had a moment ago. A
 * runtime that keeps a word in each mutator (hw_gc_data) thus needs no list of its threads. The
 * callbacks roots and event may call this, too. visit runs under no lock, and may call any
 * function of the heap. The visited mutator does not detach before visit returns, so visit must
 * not wait for that. A mutator that attaches meanwhile is not visited.
 *
 * Returns the number of mutators.
 *
 * The program's duties:
 *
 * heap is of hw_gc_create and was not destroyed.
 */
size_t hw_gc_attached(struct hw_gc_heap *heap,
                      hw_gc_mutator_visitor visit,
                      void *context);

/**
 * Collects for about budget_ns nanoseconds: sweeps, marks, and begins a collection if one is due.
 * If stores are not reported, marking is one step, however long.
 *
 * Returns whether nothing is left to do.
 *
 * The program's duties:
 *
 * mutator is this thread's; the duties listed in heapwright_gc.h.
 */
bool hw_gc_step(struct hw_gc_mutator *mutator,
                uint64_t budget_ns);

/**
 * Makes a whole collection. Unreachable objects are freed when it returns.
 *
 * The program's duties:
 *
 * mutator is this thread's; the duties listed in heapwright_gc.h.
 */
void hw_gc_collect(struct hw_gc_mutator *mutator);

/**
 * Makes a whole minor collection. Makes a major collection instead if one is due, or if the heap
 * cannot tell old objects: it has no generations, or has not collected yet. Returns whether the
 * collection was a minor one.
 *
 * The program's duties:
 *
 * mutator is this thread's; the duties listed in heapwright_gc.h.
 */
bool hw_gc_collect_minor(struct hw_gc_mutator *mutator);

/**
 * Collects, moves objects close together, and gives empty pages back. A page stays as it is if an
 * object in it is pinned, was reported by hw_gc_mark, or may be reached from a scanned stack.
 * While major collections are deferred, nothing moves before the next major collection.
 *
 * The program's duties:
 *
 * The duties of heapwright_gc.h, also those for objects that move.
 */
void hw_gc_compact(struct hw_gc_mutator *mutator);

/**
 * As hw_gc_compact, but moves every object that may move, also from full pages. Tests of a runtime
 * call this to find addresses that the runtime does not report.
 *
 * The program's duties:
 *
 * As hw_gc_compact.
 */
void hw_gc_compact_all(struct hw_gc_mutator *mutator);

/**
 * As hw_gc_compact, but in steps of hw_gc_step, which returns true when the compaction is
 * complete. Then hw_gc_trim gives pages back.
 *
 * The program's duties:
 *
 * As hw_gc_compact.
 */
void hw_gc_ask_compact(struct hw_gc_mutator *mutator);

/**
 * Pins the object at its address, until hw_gc_unpin was called as often as hw_gc_pin. A pin does
 * not keep the object alive. Returns false if object is on no page of the heap.
 *
 * The program's duties:
 *
 * The duties of heapwright_gc.h.
 */
bool hw_gc_pin(struct hw_gc_mutator *mutator,
               void *object);

/**
 * Ends a hw_gc_pin. Call it before the object dies.
 *
 * The program's duties:
 *
 * The object was pinned more often than unpinned.
 */
void hw_gc_unpin(struct hw_gc_mutator *mutator, void *object);

/**
 * Gives the object size bytes. Returns whether its slot has them. If not, or if a smaller slot
 * would do, the next compaction moves the object to a fitting slot, if it may be moved. The
 * runtime's wanted then returns the size again.
 *
 * The program's duties:
 *
 * object is an object of the heap, and only the caller changes it now.
 */
bool hw_gc_resize(struct hw_gc_mutator *mutator,
                  void *object,
                  size_t size);

/**
 * Whether a collection is due or under way: a good moment for hw_gc_step.
 *
 * The program's duties:
 *
 * mutator is this thread's.
 */
bool hw_gc_owed(struct hw_gc_mutator *mutator);

/**
 * Makes a collection due, so that hw_gc_step begins one: for a program that has time.
 *
 * The program's duties:
 *
 * mutator is this thread's.
 */
void hw_gc_ask(struct hw_gc_mutator *mutator);

/**
 * Defers collections: until hw_gc_resume, no allocation collects. If the limit of the heap is
 * reached meanwhile, allocations fail. Calls nest.
 *
 * The program's duties:
 *
 * mutator is this thread's.
 */
void hw_gc_defer(struct hw_gc_mutator *mutator);

/**
 * Ends a hw_gc_defer.
 *
 * The program's duties:
 *
 * mutator is this thread's.
 */
void hw_gc_resume(struct hw_gc_mutator *mutator);

/**
 * Defers major collections: until hw_gc_resume_majors, collections are minor, if the heap has
 * generations and memory for it. This is for a server that collects between its requests. Calls
 * nest, also with calls of other mutators. The first such scope of a heap may see one major
 * collection that was chosen before.
 *
 * The program's duties:
 *
 * mutator is this thread's.
 */
void hw_gc_defer_majors(struct hw_gc_mutator *mutator);

/**
 * Ends a hw_gc_defer_majors.
 *
 * The program's duties:
 *
 * mutator is this thread's.
 */
void hw_gc_resume_majors(struct hw_gc_mutator *mutator);

/**
 * Whether hw_gc_defer_majors holds back a major collection that is due. hw_gc_ask and hw_gc_step
 * make this collection, a little at a time.
 *
 * The program's duties:
 *
 * mutator is this thread's.
 */
bool hw_gc_major_owed(struct hw_gc_mutator *mutator);

/**
 * Reports that objects of the heap keep more memory of malloc, by bytes. A negative number means
 * less memory. The bytes count in the heap's budget.
 *
 * The program's duties:
 *
 * mutator is this thread's.
 */
void hw_gc_external(struct hw_gc_mutator *mutator,
                    ptrdiff_t bytes);

/**
 * As hw_gc_external, for a thread without a mutator: no collection work is done for the bytes now.
 * Any thread may call this, also from the runtime's free.
 *
 * The program's duties:
 *
 * heap is of hw_gc_create and was not destroyed.
 */
void hw_gc_account(struct hw_gc_heap *heap,
                   ptrdiff_t bytes);

/**
 * Does the collection work for bytes reported to hw_gc_account, as an allocation of so many bytes
 * in the heap would. It sweeps a little, begins a collection if one is due, or marks.
 *
 * The program's duties:
 *
 * mutator is this thread's; the duties listed in heapwright_gc.h.
 */
void hw_gc_pay(struct hw_gc_mutator *mutator,
               size_t bytes);

/**
 * As malloc; the bytes count in the heap's budget.
 *
 * The program's duties:
 *
 * mutator is this thread's.
 */
void *hw_gc_malloc(struct hw_gc_mutator *mutator, size_t size);

/**
 * As realloc, of a block of hw_gc_malloc that has old_size bytes.
 *
 * The program's duties:
 *
 * mutator is this thread's; block is NULL (and old_size 0) or of hw_gc_malloc, and not freed.
 */
void *hw_gc_realloc(struct hw_gc_mutator *mutator,
                    void *block,
                    size_t old_size,
                    size_t size);

/**
 * As free, of a block of hw_gc_malloc that has size bytes. The runtime's free callback may call
 * it. mutator may be NULL while the heap is being destroyed: nothing is counted then.
 *
 * The program's duties:
 *
 * mutator is this thread's or NULL; block is NULL (and size 0) or of hw_gc_malloc, and not
 * freed.
 */
void hw_gc_free(struct hw_gc_mutator *mutator,
                void *block,
                size_t size);

/**
 * Registers run, to be called with object and context when the object has become unreachable. The
 * object and all it leads to are kept until hw_gc_run_finalizers has called run.
 *
 * Returns false with errno ENOMEM if there is no memory, EINVAL without a function.
 *
 * The program's duties:
 *
 * mutator is this thread's; object is an object of its heap.
 */
bool hw_gc_finalize(struct hw_gc_mutator *mutator,
                    void *object,
                    hw_gc_finalizer run,
                    void *context);

/**
 * As hw_gc_finalize, with a priority and a context. The context is an object of the heap, or NULL.
 * The heap keeps the context while the object lives or the finalizer is due. A context that leads
 * to the object does not keep the object. Finalizers of priority 0 come first. A finalizer is not
 * due while the object of another due finalizer, of a higher priority, leads to its object.
 *
 * Returns false with errno ENOMEM if there is no memory, EINVAL without a function or for a
 * priority that does not exist.
 *
 * The program's duties:
 *
 * mutator is this thread's; object and context are objects of its heap.
 */
bool hw_gc_finalize_with(struct hw_gc_mutator *mutator,
                         void *object,
                         hw_gc_finalizer run,
                         void *context,
                         uint32_t priority);

/**
 * Sets tell, which is called once a collection when finalizers have become due or guardians have
 * objects to retrieve. The thread that collected calls tell, after the other threads have resumed.
 * tell must call nothing of the heap: it sets a flag, or wakes a thread. NULL ends the calls. Any
 * thread may call this function.
 *
 * The program's duties:
 *
 * heap is of hw_gc_create and was not destroyed; tell may be called until the next call of this
 * function, or until the heap ends.
 */
void hw_gc_tell_when_due(struct hw_gc_heap *heap,
                         hw_gc_some_are_due tell,
                         void *context);

/**
 * Removes all finalizers of object, except those that are due already. Takes constant time for
 * each.
 *
 * Returns their number.
 *
 * The program's duties:
 *
 * mutator is this thread's; object is an object of its heap.
 */
size_t hw_gc_finalize_cancel(struct hw_gc_mutator *mutator,
                             void *object);

/**
 * Runs up to most due finalizers, by priority. Of one priority, those that became due together
 * run in the order of registration. The finalizers may allocate. Returns their number.
 *
 * The program's duties:
 *
 * mutator is this thread's; the duties listed in heapwright_gc.h.
 */
size_t hw_gc_run_finalizers(struct hw_gc_mutator *mutator,
                            size_t most);

/**
 * Makes an object a guardian (Dybvig, Bruggeman, Eby: "Guardians in a generation-based garbage
 * collector", 1993). Returns its number, which the runtime keeps in the object. An object
 * registered with the guardian can be retrieved from it when nothing else leads to that object, as
 * long as the guardian lives. The number is invalid after the guardian's death.
 *
 * Returns 0 with errno ENOMEM if there is no memory.
 *
 * The program's duties:
 *
 * mutator is this thread's; object is an object of its heap.
 */
uint32_t hw_gc_guardian_new(struct hw_gc_mutator *mutator,
                            void *object);

/**
 * Registers object with a guardian. When nothing leads to object any more, representative can be
 * retrieved. representative is object itself, or another object, which is kept until then. An
 * object may be registered several times, and is retrieved as often. Weak references to a
 * retrieved object stay.
 *
 * Returns false with errno ENOMEM if there is no memory, or if there is no such guardian.
 *
 * The program's duties:
 *
 * mutator is this thread's; object and representative are objects of its heap; guardian is of
 * hw_gc_guardian_new, and its object lives.
 */
bool hw_gc_guard(struct hw_gc_mutator *mutator,
                 uint32_t guardian,
                 void *object,
                 void *representative);

/**
 * Retrieves a guardian's next object, which the caller must keep alive, or NULL. Constant time.
 *
 * The program's duties:
 *
 * mutator is this thread's; guardian is of hw_gc_guardian_new, and its object lives.
 */
void *hw_gc_retrieve(struct hw_gc_mutator *mutator,
                     uint32_t guardian);

/**
 * Adds a pass over a table of the runtime to each collection. pass is called after marking, before
 * finalizers are due, and again when objects have moved, while all mutators are stopped. It calls
 * hw_gc_where for each object in the table, and drops the entry, or notes the new address. The
 * table does not keep its objects. pass calls no other function here. Any thread may call this.
 *
 * Returns false with errno ENOMEM if there is no memory, EINVAL without a function.
 *
 * The program's duties:
 *
 * heap is of hw_gc_create and was not destroyed; pass may be called until it is removed, or the
 * heap ends.
 */
bool hw_gc_add_weak_pass(struct hw_gc_heap *heap,
                         hw_gc_weak_pass pass,
                         void *context);

/**
 * Ends a hw_gc_add_weak_pass with the same function and context. Returns whether there was one.
 *
 * The program's duties:
 *
 * heap is of hw_gc_create and was not destroyed.
 */
bool hw_gc_remove_weak_pass(struct hw_gc_heap *heap,
                            hw_gc_weak_pass pass,
                            void *context);

/**
 * In a weak pass, returns an object's new address, or NULL if the object is dead. Returns an
 * address of no object of the heap unchanged.
 *
 * The program's duties:
 *
 * tracer is the argument of the running pass.
 */
void *hw_gc_where(struct hw_gc_tracer *tracer,
                  void *object);

/**
 * Changes a heap's memory target, as in hw_gc_options. The heap may be factor_percent of its live
 * bytes. least is the fewest bytes between two collections, and most is the most bytes of the
 * heap. 0 stands for the default of each. A heap that is already larger than most gets no page
 * until a collection has made room. Any thread may call this.
 *
 * The program's duties:
 *
 * heap is of hw_gc_create and was not destroyed.
 */
void hw_gc_set_target(struct hw_gc_heap *heap,
                      uint32_t factor_percent,
                      size_t least,
                      size_t most);

/**
 * From now on the heap grows by a square-root rule, in place of factor_percent (MemBalancer:
 * Kirisame, Shenoy, Panchekha, OOPSLA 2022). The rule uses the heap's live bytes, its allocation
 * rate and its slowness of marking. Of several heaps with the same bytes, a heap gets more memory
 * if that memory saves more time. A heap with bytes live bytes that allocates as fast as it is
 * marked may double. With 0, factor_percent counts again. Any thread may call this.
 *
 * The program's duties:
 *
 * heap is of hw_gc_create and was not destroyed.
 */
void hw_gc_balance(struct hw_gc_heap *heap,
                   size_t bytes);

/**
 * Sets policy, which is called after each collection. policy returns how many bytes may be live
 * and garbage when the next collection ends. 0 leaves the choice to the heap. All mutators are
 * stopped during the call, so policy must call nothing of the heap and take no lock that a mutator
 * may hold. The heap's least and most still hold. NULL removes policy. Any thread may call this.
 *
 * The program's duties:
 *
 * heap is of hw_gc_create and was not destroyed; policy may be called until the next call of this
 * function, or until the heap ends.
 */
void hw_gc_set_policy(struct hw_gc_heap *heap,
                      hw_gc_policy policy,
                      void *context);

/**
 * The object of a heap that an address lies in, or NULL. Any address is allowed. Constant time,
 * except for objects that were just allocated.
 *
 * The program's duties:
 *
 * heap is of hw_gc_create and was not destroyed.
 */
void *hw_gc_find(struct hw_gc_heap *heap,
                 const void *address);

/**
 * Bytes of an object's slot, or the requested bytes of a large object. 0 outside all collected
 * heaps.
 */
size_t hw_gc_object_size(const void *object);

/**
 * The kind of an object, as the allocation got it: HW_GC_LEAF, HW_GC_FREED, HW_GC_USER. UINT32_MAX
 * outside all collected heaps.
 */
uint32_t hw_gc_object_kind(const void *object);

/**
 * Whether an object is old: a minor collection keeps it, and reads it only if it was stored into.
 * Takes constant time for most objects. All mutators stop for an object that has survived one
 * collection, or was stored into.
 *
 * The program's duties:
 *
 * mutator is this thread's; the call is a safepoint, so the duties listed in heapwright_gc.h hold.
 */
bool hw_gc_is_old(struct hw_gc_mutator *mutator,
                  void *object);

/**
 * Whether an object stays because it, or another object in its page, is pinned.
 *
 * The program's duties:
 *
 * mutator is this thread's.
 */
bool hw_gc_is_pinned(struct hw_gc_mutator *mutator, void *object);

/**
 * The new address of the object that was at address. NULL if it has not moved, or if the
 * collection that moved it has been swept.
 *
 * The program's duties:
 *
 * mutator is this thread's.
 */
void *hw_gc_moved(struct hw_gc_mutator *mutator,
                  void *address);

/**
 * Bytes of the slot that an object of size bytes gets.
 *
 * The program's duties:
 *
 * heap is of hw_gc_create and was not destroyed.
 */
size_t hw_gc_slot_size(struct hw_gc_heap *heap, size_t size);

/**
 * The largest size that has a slot in one of the heap's pools; a larger object has pages of its
 * own.
 *
 * The program's duties:
 *
 * heap is of hw_gc_create and was not destroyed.
 */
size_t hw_gc_largest_slot(struct hw_gc_heap *heap);

/**
 * Writes a heap's statistics to *out, which is size bytes: pass sizeof(hw_gc_statistics). A
 * smaller struct gets the fields that it has. A larger struct gets zeros behind the fields that
 * this library knows.
 *
 * Returns how many bytes of the struct this library knows. Returns 0 with errno EINVAL for a size
 * of 0 or beyond 64 KiB.
 *
 * The program's duties:
 *
 * heap is of hw_gc_create and was not destroyed; out points to size bytes that can be written.
 */
size_t hw_gc_stats(struct hw_gc_heap *heap,
                   struct hw_gc_statistics *out,
                   size_t size);

/**
 * Gives all pages without objects to the system, and the process's other free memory too. Returns
 * the bytes of the heap's pages that have left the process.
 *
 * The program's duties:
 *
 * heap is of hw_gc_create and was not destroyed.
 */
size_t hw_gc_trim(struct hw_gc_heap *heap);

/**
 * Visits every object, while all mutators are stopped. visit must call nothing of the heap.
 *
 * Returns whether the walk came to the end.
 *
 * The program's duties:
 *
 * mutator is this thread's; the duties listed in heapwright_gc.h.
 */
bool hw_gc_walk(struct hw_gc_mutator *mutator,
                hw_gc_visitor visit,
                void *context);

/**
 * Writes a heap dump to a file descriptor, for `heapwright heap`. All mutators are stopped
 * meanwhile.
 *
 * Returns false, with errno of write, or ENOMEM, if the dump is incomplete.
 *
 * The program's duties:
 *
 * mutator is this thread's; the duties listed in heapwright_gc.h.
 */
bool hw_gc_dump(struct hw_gc_mutator *mutator,
                int32_t descriptor);

/**
 * Verifies everything reachable from the roots. Prints each error on stderr, with the path to it.
 * Returns the number of errors.
 *
 * The program's duties:
 *
 * mutator is this thread's; the duties listed in heapwright_gc.h.
 */
size_t hw_gc_verify(struct hw_gc_mutator *mutator);

/**
 * Makes a pool of objects of size bytes, at multiples of alignment, which is a power of two. At
 * most limit objects may be in use at a time; 0 is no limit. With a limit, address space for all
 * objects is reserved in one piece if possible. Messages about the objects use name, which is
 * copied, up to 47 bytes; NULL is "raw".
 *
 * Takes no memory for objects yet. Returns NULL with errno EINVAL for an alignment
 * that is no power of two, ENOMEM if there is no memory or no such size.
 *
 * The program's duties:
 *
 * name is NULL or a string.
 */
struct hw_pool *hw_pool_create(size_t size,
                               size_t alignment,
                               uint32_t limit,
                               const char *name);

/**
 * Like hw_pool_create, with options, which is options_size bytes: pass
 * sizeof(hw_pool_options). A smaller struct of an older program leaves the other fields zero.
 *
 * Takes no memory for objects yet. Returns NULL with errno EINVAL for an alignment that is no
 * power of two, or for a size of options that no version has. Returns NULL with errno ENOMEM if
 * there is no memory or no such size.
 *
 * The program's duties:
 *
 * options points to options_size bytes; their name is NULL or a string.
 */
struct hw_pool *hw_pool_create_with(size_t size,
                                    size_t alignment,
                                    const struct hw_pool_options *options,
                                    size_t options_size);

/**
 * Allocates an uninitialised object. Constant time, except for system calls when the pool grows.
 *
 * Returns NULL with errno ENOMEM if there is no memory or the limit is reached.
 *
 * The program's duties:
 *
 * pool is a pool of hw_pool_create that was not destroyed, and this thread's now.
 */
void *hw_pool_alloc(struct hw_pool *pool);

/**
 * Frees an object of a pool. NULL is ignored; errno is kept. Constant time.
 *
 * If the pool finds that the object is foreign or already free, the program ends with a line that
 * names the object's owner. A checked pool always finds such a mistake. In mode=debug the mistake
 * is a finding, and the program goes on.
 *
 * The program's duties:
 *
 * pool is a pool of hw_pool_create that was not destroyed, and this thread's now;
 * object is NULL or an object of it that was not given back.
 */
void hw_pool_free(struct hw_pool *pool,
                  void *object);

/**
 * Whether an address lies in the memory of a pool. Any address is allowed; constant time.
 *
 * The program's duties:
 *
 * pool is a pool of hw_pool_create that was not destroyed, and this thread's now.
 */
bool hw_pool_contains(struct hw_pool *pool,
                      const void *address);

/**
 * Makes room for count more objects, which then need no memory from the kernel. If touch is true,
 * faults their pages in now. Fresh objects come in address order.
 *
 * Returns false if there is no memory or the limit is reached.
 *
 * The program's duties:
 *
 * pool is a pool of hw_pool_create that was not destroyed, and this thread's now.
 */
bool hw_pool_preheat(struct hw_pool *pool,
                     size_t count,
                     bool touch);

/**
 * Visits every object in use, in address order. visit may neither use the pool nor throw.
 *
 * Returns whether the walk came to the end.
 *
 * The program's duties:
 *
 * pool is a pool of hw_pool_create that was not destroyed, and this thread's now;
 * visit is a function that obeys these rules.
 */
bool hw_pool_walk(struct hw_pool *pool,
                  hw_object_visitor visit,
                  void *context);

/**
 * Frees all objects, and keeps memory for keep objects. 0 gives all memory back; SIZE_MAX keeps
 * all.
 *
 * The program's duties:
 *
 * pool is a pool of hw_pool_create that was not destroyed, and this thread's now.
 * Objects of it are not used any more.
 */
void hw_pool_reset(struct hw_pool *pool,
                   size_t keep);

/**
 * Gives every page without an object in use to the kernel, now. Returns the bytes of these pages.
 *
 * The program's duties:
 *
 * pool is a pool of hw_pool_create that was not destroyed, and this thread's now.
 */
size_t hw_pool_trim(struct hw_pool *pool);

/**
 * Writes a pool's size to *out, which is size bytes: pass sizeof(hw_pool_statistics). A smaller
 * struct gets the fields that it has. A larger struct gets zeros behind the fields that this
 * library knows.
 *
 * Returns how many bytes of the struct this library knows. Returns 0 with errno EINVAL for a size
 * of 0 or beyond 64 KiB.
 *
 * The program's duties:
 *
 * pool is a pool of hw_pool_create that was not destroyed, and this thread's now;
 * out points to size bytes that can be written.
 */
size_t hw_pool_stats(struct hw_pool *pool,
                     struct hw_pool_statistics *out,
                     size_t size);

/**
 * Gives back a pool and every object in it. NULL is ignored.
 *
 * The program's duties:
 *
 * pool is NULL or a pool of hw_pool_create that was not destroyed. It and its
 * objects are not used any more.
 */
void hw_pool_destroy(struct hw_pool *pool);

#ifdef __cplusplus
} /* extern "C" */
#endif /* __cplusplus */

#endif  /* HEAPWRIGHT_H */
