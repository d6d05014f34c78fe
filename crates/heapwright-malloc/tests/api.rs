//! The promises of each function of the malloc family, in C.
mod support;
use support::{EVERY_WAY, ON_HEAPWRIGHT, fine};

#[test]
fn malloc_gives_blocks() {
    fine("malloc_basic.c", &EVERY_WAY);
}

#[test]
fn sizes_that_cannot_be_had_are_refused() {
    fine("huge_sizes.c", &EVERY_WAY);
}

#[test]
fn calloc_gives_zeros() {
    fine("calloc_zero.c", &EVERY_WAY);
}

#[test]
fn realloc_keeps_contents() {
    fine("realloc_content.c", &EVERY_WAY);
}

#[test]
fn reallocarray_checks_its_product() {
    fine("reallocarray.c", &EVERY_WAY);
}

#[test]
fn posix_memalign_returns_its_error() {
    fine("posix_memalign.c", &EVERY_WAY);
}

#[test]
fn aligned_alloc_and_memalign_align() {
    fine("aligned_alloc.c", &EVERY_WAY);
}

#[test]
fn valloc_gives_pages() {
    fine("valloc.c", &EVERY_WAY);
}

#[test]
fn free_keeps_errno() {
    fine("free_errno.c", &EVERY_WAY);
}

#[test]
fn the_other_frees_free() {
    fine("more_free.c", &[support::How::Linked, support::How::Archive, support::How::Static]);
}

#[test]
fn programs_of_jemalloc_and_gperftools_are_served() {
    fine("other_doors.c", &[support::How::Linked, support::How::Archive, support::How::Static]);
}

/// The program is linked with the other allocators' libraries. The preload comes first.
#[test]
fn programs_linked_with_them_are_served() {
    use support::{How, command, compile, run, skip};
    let folder = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let libraries =
        ["libjemalloc.so.2", "libtcmalloc_minimal.so.4"].map(|name| format!("{folder}/{name}"));
    if !libraries.iter().all(|library| std::path::Path::new(library).exists()) {
        return skip("libjemalloc2 and libtcmalloc-minimal4 are not installed");
    }
    let program = compile("other_doors.c", How::Preload, &libraries.each_ref().map(String::as_str));
    run(&mut command(&program, How::Preload)).is_fine("linked with both");
}

#[test]
fn usable_size_may_be_used() {
    fine("usable_size.c", &EVERY_WAY);
}

#[test]
fn random_operations_keep_contents() {
    fine("alignment_sweep.c", &EVERY_WAY);
}

#[test]
fn introspection_answers() {
    fine("introspection.c", &EVERY_WAY);
}

#[test]
fn heapwrights_own_functions_answer() {
    fine("hw_api.c", &ON_HEAPWRIGHT[1..]);
}

/// In each way of linking, in every mode, with shared caches, and while each call is observed.
#[test]
fn a_thread_counts_what_it_asks_for() {
    use support::{How, command, compile, run};
    fine("counts.c", &EVERY_WAY);
    let program = compile("counts.c", How::Preload, &[]);
    for options in [
        "cache=shared:2",
        "cache=percpu",
        "stats=exit",
        "sample=1024",
        "guard=sample",
        "mode=debug",
        "mode=debug,guard=all",
        "mode=hardened",
        "mode=hardened:full",
    ] {
        let outcome = run(command(&program, How::Preload).env("HEAPWRIGHT", options));
        assert!(outcome.status.success(), "{options}: {outcome:?}");
    }
}

#[test]
fn the_header_has_the_layouts_that_programs_were_compiled_with() {
    fine("layouts.c", &ON_HEAPWRIGHT[1..]);
}

#[test]
fn collected_heaps_answer() {
    fine("hw_gc.c", &ON_HEAPWRIGHT[1..]);
}

#[test]
fn pools_and_arenas_answer() {
    fine("hw_pools.c", &ON_HEAPWRIGHT[1..]);
}

#[test]
fn pointers_of_pools_in_the_wrong_place_are_named() {
    use support::{How, command, compile, run};
    let program = compile("hw_pools.c", How::Linked, &[]);
    for (mistake, words) in [
        (
            "free",
            ["free(0x", "this 48-byte object belongs to pool `Node`; give it back to that pool"],
        ),
        ("interior", ["free(0x", "12 bytes into the 48-byte object at 0x"]),
        ("arena", ["free(0x", "in an arena, whose memory goes back with the arena"]),
        ("other-pool", ["given to pool `Edge`, but this 48-byte object", "belongs to pool `Node`"]),
        (
            "malloc",
            ["given to pool `Edge`, but this 112-byte block", "malloc's; free it with free"],
        ),
        ("twice", ["of pool `Edge` was given back before", "destroy each object once"]),
        ("stale-heap", ["given to pool `Edge`, but the pointer", "is not heapwright's"]),
    ] {
        let outcome = run(command(&program, How::Linked).arg(mistake));
        outcome.was_refused(mistake, &words);
    }
}

/// A pool that is checked in every mode (hw_pool_options).
#[test]
fn a_checked_pool_ends_the_program_at_the_first_wrong_free() {
    use support::{How, command, compile, run};
    let program = compile("checked_pool.c", How::Linked, &[]);
    assert!(run(&mut command(&program, How::Linked)).status.success());
    for mistake in ["twice", "stack", "other", "malloc"] {
        let outcome = run(command(&program, How::Linked).arg(mistake));
        outcome.was_refused(mistake, &["hw_pool_free: 0x", "is no object in use of \"node\""]);
    }
}

#[test]
fn a_block_of_another_heap_is_refused() {
    use support::{How, command, compile, run};
    let program = compile("heap_wrong_owner.c", How::Linked, &[]);
    let other_heap = run(&mut command(&program, How::Linked));
    other_heap.was_refused("another heap's", &["hw_heap_free(0x"]);
    let from_malloc = run(command(&program, How::Linked).arg("malloc"));
    from_malloc.was_refused("malloc's", &["hw_heap_free(0x"]);
}

#[test]
fn the_header_is_cxx_as_well() {
    fine("hw_api_cxx.cc", &ON_HEAPWRIGHT[1..]);
}

#[test]
fn a_runtime_hears_of_collections_and_is_asked_what_it_alone_knows() {
    fine("hw_gc_runtime.c", &ON_HEAPWRIGHT[1..]);
}
