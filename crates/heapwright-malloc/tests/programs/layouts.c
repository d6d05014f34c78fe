/* The size of each struct of heapwright.h and the offsets of its fields, as in compiled programs. A
 * struct may grow at its end, and then its size here; nothing else may change. */
#include <heapwright.h>
#include <heapwright_gc.h>

#define F(field, at) _Static_assert(offsetof(struct T, field) == (at), "a field is elsewhere");
#define SIZE(bytes) _Static_assert(sizeof(struct T) == (bytes), "a struct has another size");

#define T hw_description
F(kind, 0) F(state, 4) F(block, 8) F(size, 16) F(offset, 24) F(owner, 32) F(size_class, 36)
F(words, 40) SIZE(48)
#undef T

#define T hw_statistics
F(pid, 0) F(elapsed_ns, 8) F(detailed, 16) F(rss, 24) F(peak_rss, 32) F(rss_live, 40)
F(rss_rounding, 48) F(rss_partial, 56) F(rss_caches, 64) F(rss_remote, 72) F(rss_lazy, 80)
F(rss_metadata, 88) F(rss_pools, 96) F(rss_not_ours, 104) F(live_bytes, 112) F(live_blocks, 120)
F(large_bytes, 128) F(large_blocks, 136) F(peak_live_bytes, 144) F(allocations, 152) F(frees, 160)
F(requested_bytes, 168) F(foreign_frees, 176) F(window_bytes, 184) F(committed_bytes, 192)
F(purged_bytes, 200) F(caches_live, 208) F(caches_orphaned, 216) F(caches_made, 224)
F(heaps_live, 232) F(page_size, 240) F(caches_shared, 248) F(caches_touched, 256)
F(caches_bytes, 264) F(caches_largest, 272) F(cache_failed_tries, 280) F(cache_waits, 288)
F(rseq_commits, 296) F(rseq_aborts, 304) F(rseq_fallbacks, 312) F(name, 320) F(sizes, 336) SIZE(720)
#undef T

#define T hw_amount
F(blocks, 0) F(bytes, 8) SIZE(16)
#undef T

#define T hw_leak_check
F(definite, 0) F(indirect, 16) F(possible, 32) F(reachable, 48) SIZE(64)
#undef T

#define T hw_block
F(address, 0) F(size, 8) F(owner, 16) F(in_use, 20) SIZE(24)
#undef T

#define T hw_arena_mark_t
F(position, 0) F(chunk, 8) SIZE(16)
#undef T

#define T hw_arena_statistics
F(used_bytes, 0) F(reserved_bytes, 8) SIZE(16)
#undef T

#define T hw_counts
F(allocations, 0) F(reallocations, 8) F(frees, 16) F(bytes, 24) F(peak_bytes, 32) F(kept_bytes, 40)
SIZE(48)
#undef T

#define T hw_count_site
F(frames, 0) F(depth, 8) F(allocations, 16) F(bytes, 24) SIZE(32)
#undef T

#define T hw_gc_options
F(size, 0) F(layout, 8) F(factor_percent, 12) F(verify, 16) F(least, 24) F(most, 32) F(step_ns, 40)
F(incremental, 48) F(generations, 49) F(markers, 52) F(compact, 56) F(conservative, 57)
F(uncleared, 58) SIZE(64)
#undef T

#define T hw_gc_tracer
F(next, 0) F(end, 8) F(by_slot, 16) SIZE(24)
#undef T

#define T hw_gc_region
F(next, 0) F(end, 8) F(hole, 16) F(slot, 24) F(page, 28) SIZE(32)
#undef T

#define T hw_gc_mutator
F(poll, 0) F(barrier, 4) F(heap, 8) F(regions, 16) F(places, 16400) F(marks, 24600) F(data, 24608)
F(units, 24616) F(first_list, 24624) SIZE(24632)
#undef T

#define T hw_gc_event
F(size, 0) F(span, 8) F(edge, 12) F(flags, 16) F(thread, 20) F(time_ns, 24) F(collection, 32)
F(bytes, 40) F(ns, 48) F(heap, 56) F(mutator, 64) F(object, 72) SIZE(80)
#undef T

#define T hw_gc_runtime
F(size, 0) F(data, 8) F(trace, 16) F(roots, 24) F(free, 32) F(type_name, 40) F(wanted, 48)
F(moved, 56) F(event, 64) F(trace_kind, 72) F(outside, 80) F(out_of_memory, 88) F(large_bytes, 96)
F(update, 104) F(update_roots, 112) SIZE(120)
#undef T

#define T hw_gc_outcome
F(size, 0) F(live_bytes, 8) F(allocated_bytes, 16) F(marked_bytes, 24) F(goal_bytes, 32)
F(collector_ns, 40) F(mutator_ns, 48) F(cycles, 56) F(minor, 64) SIZE(72)
#undef T

#define T hw_gc_pool_statistics
F(slot_size, 0) F(pages, 8) F(slots, 16) F(live, 24) F(free_slots, 32) F(available_pages, 40)
F(taken_pages, 48) F(grown_pages, 56) F(borrowed_pages, 64) F(decision, 72) F(spare, 76) SIZE(80)
#undef T

#define T hw_gc_statistics
F(cycles, 0) F(pauses, 8) F(live_bytes, 16) F(external_bytes, 24) F(goal_bytes, 32)
F(in_use_bytes, 40) F(empty_bytes, 48) F(large_bytes, 56) F(peak_bytes, 64) F(allocated_bytes, 72)
F(pause_ns, 80) F(sweep_ns, 88) F(pause_max_ns, 96) F(pause_histogram, 104) F(phase, 616)
F(pools, 620) F(mutators, 624) F(finalizers_pending, 628) F(handles, 632) F(pool, 640)
F(minor_cycles, 5760) F(old_bytes, 5768) F(cleared, 5776) F(compactions, 5784)
F(moved_objects, 5792) F(moved_bytes, 5800) F(evacuated_pages, 5808) F(kept_pages, 5816)
F(pause_wall_max_ns, 5824) F(pause_wall_histogram, 5832) F(safepoint_ns, 6344)
F(safepoint_max_ns, 6352) F(lists_bytes, 6360) F(lists_peak_bytes, 6368) F(free_bytes, 6376)
SIZE(6384)
#undef T

#define T hw_pool_statistics
F(live, 0) F(capacity, 8) F(slot_size, 16) F(segments, 24) F(reserved_bytes, 32) SIZE(40)
#undef T

int main(void) { return 0; }
