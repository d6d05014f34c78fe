/*
 * heapwright: what its library can do that malloc's interface has no name for.
 *
 * malloc, free, C++'s new and delete and their kin are declared where they
 * always were (stdlib.h, malloc.h, new); linking with heapwright, or preloading
 * it, is all that they need. free_sized and free_aligned_sized of C23 are there
 * as well.
 *
 * Units: sizes are in bytes, of type size_t.
 * Errors: a function that gives memory returns NULL and sets errno. The others
 * cannot fail. Freeing what is no block ends the program with one line on
 * stderr that says what the pointer is.
 * Threads: every function may be called from any thread at any time, unless it
 * says otherwise. None may be called from a signal handler that interrupted
 * one of them or malloc, as with any malloc.
 *
 * The library's duties: blocks are aligned to at least 16 bytes and do not
 * overlap; a question about a pointer (hw_owns, hw_describe) never faults,
 * whatever the pointer; nothing here needs an initialisation.
 * The program's duties: a block is freed once, by the address it was given at,
 * and not used afterwards; a heap is not used after hw_heap_destroy, nor is any
 * block of it.
 */

#ifndef HEAPWRIGHT_H
#define HEAPWRIGHT_H

/* Made by ci/header.sh from crates/heapwright-malloc/src: do not edit. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * How many buckets the histogram of sizes has.
 */
#define HW_SIZE_BUCKETS 48

/**
 * What lies at an address.
 */
typedef enum hw_kind {
  /**
   * Memory that heapwright does not manage: a stack, a library's data,
   * another allocator's block, nothing at all.
   */
  HW_KIND_FOREIGN = 0,
  /**
   * heapwright's, and in no block now.
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
} hw_kind;

/**
 * Whether a block is in use.
 */
typedef enum hw_state {
  /**
   * Not known without a search, or no block.
   */
  HW_STATE_UNKNOWN = 0,
  /**
   * The program holds it.
   */
  HW_STATE_IN_USE = 1,
  /**
   * It is free.
   */
  HW_STATE_FREE = 2,
} hw_state;

/**
 * A heap of its own: blocks that live and die together. Make one with
 * hw_heap_new.
 */
typedef struct hw_heap hw_heap;

/**
 * The answer of hw_describe.
 */
typedef struct hw_description {
  /**
   * What lies there.
   */
  enum hw_kind kind;
  /**
   * Whether it is in use.
   */
  enum hw_state state;
  /**
   * Where the block starts; NULL if the address is in no block.
   */
  const void *block;
  /**
   * The block's size in bytes: what may be used of it, at least what was
   * asked for. 0 if the address is in no block.
   */
  size_t size;
  /**
   * How far into its block the address is, in bytes.
   */
  size_t offset;
  /**
   * The number of the cache or heap that owns the block; 0 if none does.
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
 * A process's memory at one moment. All sizes are in bytes. The eight parts
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
   * 1 when every allocation was counted (option stats=exit), so that
   * sizes, rounding and totals are known; 0 when only the heap's own
   * bookkeeping was read.
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
   * Part of rss: bytes the program asked for and holds.
   */
  uint64_t rss_live;
  /**
   * Part of rss: the difference between sizes asked for and slots given.
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
   * Highest live_bytes, where detailed.
   */
  uint64_t peak_live_bytes;
  /**
   * Blocks allocated since the start, where detailed.
   */
  uint64_t allocations;
  /**
   * Blocks freed since the start, where detailed.
   */
  uint64_t frees;
  /**
   * Bytes requested since the start, where detailed.
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
   * Thread caches whose thread ended while blocks of theirs are still held.
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
   * The process's name as the kernel knows it, a string of at most 15 bytes.
   */
  char name[16];
  /**
   * Allocations by requested size: bucket 0 counts sizes 0 and 1, bucket i
   * sizes above 2^(i-1) and up to 2^i; the last takes all above. Zero unless
   * detailed.
   */
  uint64_t sizes[HW_SIZE_BUCKETS];
} hw_statistics;

/**
 * One block, as hw_heap_walk visits it.
 */
typedef struct hw_block {
  /**
   * Where the block starts.
   */
  const void *address;
  /**
   * The block's size in bytes.
   */
  size_t size;
  /**
   * The number of the cache or heap that owns it.
   */
  uint32_t owner;
  /**
   * Whether the program holds it. Approximate for blocks of other threads: a
   * free block that waits in a thread's cache may be shown as in use.
   */
  bool in_use;
} hw_block;

/**
 * What hw_heap_walk calls for each block. Return false to stop the walk.
 */
typedef bool (*hw_visitor)(const struct hw_block *block, void *context);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes a heap of its own. Any thread may use it, and several at once.
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
 * Returns NULL with errno ENOMEM if there is no memory or the product
 * overflows.
 *
 * The program's duties:
 *
 * heap is a heap of hw_heap_new that was not destroyed.
 */
void *hw_heap_alloc_zeroed(struct hw_heap *heap, size_t count, size_t size);

/**
 * Like hw_heap_alloc, at a multiple of alignment, which is a power of two.
 *
 * Returns NULL with errno EINVAL if it is not one, ENOMEM if there is no
 * memory.
 *
 * The program's duties:
 *
 * heap is a heap of hw_heap_new that was not destroyed.
 */
void *hw_heap_alloc_aligned(struct hw_heap *heap, size_t size, size_t alignment);

/**
 * Gives a block back to its heap. NULL is ignored; errno is kept.
 *
 * A block of another heap ends the program with a line that says whose it is.
 *
 * The program's duties:
 *
 * heap is a heap of hw_heap_new that was not destroyed; block is NULL or a
 * block of it that was not freed.
 */
void hw_heap_free(struct hw_heap *heap, void *block);

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
 * Whether an address lies in a block of heapwright's, in use or waiting to be
 * used again. Any address may be asked about; the memory at it is not touched.
 */
bool hw_owns(const void *address);

/**
 * Says what lies at an address. Any address may be asked about; the memory at
 * it is not touched; the time does not depend on the size of the heap.
 *
 * The answer is true of the moment it was made: for a block that another
 * thread may free meanwhile, it may be old when it arrives.
 */
struct hw_description hw_describe(const void *address);

/**
 * Writes the process's statistics to *out, which is size bytes: pass
 * sizeof(hw_statistics). A smaller struct of an older program gets the fields
 * it knows; of a larger one the rest is set to zero.
 *
 * Returns how many bytes of the struct this library knows; 0, and all fields
 * zero, where the heap is locked for long because the caller is a signal handler
 * that interrupted it. Never allocates. Takes time in proportion to the memory in
 * use: this is for reports.
 *
 * The program's duties:
 *
 * out points to size bytes that can be written.
 */
size_t hw_get_stats(struct hw_statistics *out, size_t size);

/**
 * Visits every block of the process's heaps in the order of addresses.
 *
 * visit is called with each block and with context; where it returns false,
 * the walk stops. The block is valid during the call only. visit may not
 * allocate, free or throw. Blocks that other threads allocate or free
 * meanwhile may or may not be seen.
 *
 * Returns whether the walk came to the end.
 *
 * The program's duties:
 *
 * visit is a function that keeps to the above.
 */
bool hw_heap_walk(hw_visitor visit, void *context);

/**
 * The library's version as a string, "0.1.0" for example. Neither change nor
 * free it.
 */
const char *hw_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HEAPWRIGHT_H */
