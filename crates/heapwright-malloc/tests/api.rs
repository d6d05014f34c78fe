//! What each function of the malloc family promises, in C.
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
