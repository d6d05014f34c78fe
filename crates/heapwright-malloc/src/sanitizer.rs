//! LeakSanitizer's interface, and AddressSanitizer's queries about blocks, in
//! `libheapwright-check.so`. A program's annotations (`sanitizer/lsan_interface.h`,
//! `sanitizer/allocator_interface.h`) mean the same under `heapwright check` as under the
//! sanitizers.
//!
//! | function | under `mode=debug` |
//! |---|---|
//! | `__lsan_ignore_object` | the block counts as reachable, with all blocks that it leads to |
//! | `__lsan_disable`, `__lsan_enable` | the same for all blocks that the thread allocates between the two calls |
//! | `__lsan_register_root_region` | the same for the block that has the region; all other memory is searched anyway |
//! | `__lsan_do_leak_check` | a leak check; if a block is lost, the process ends with 23, as with LeakSanitizer |
//! | `__lsan_do_recoverable_leak_check` | a leak check; returns whether a block is lost |
//! | `__sanitizer_get_ownership`, `.._allocated_size`, `.._heap_size`, `.._current_allocated_bytes` | questions |
//!
//! In other modes there are no leak checks, and the functions `__lsan_*` do nothing.

use crate::at_exit;
use crate::introspection::snapshot;
use core::ffi::c_void;
use heapwright::{BlockState, heap};
use libc::{c_int, size_t};

/// The exit status of LeakSanitizer.
const LOST: c_int = 23;

#[unsafe(no_mangle)]
extern "C" fn __lsan_ignore_object(block: *const c_void) {
    heap::keep(block.addr(), true);
}

#[unsafe(no_mangle)]
extern "C" fn __lsan_register_root_region(from: *const c_void, _bytes: size_t) {
    heap::keep(from.addr(), true);
}

#[unsafe(no_mangle)]
extern "C" fn __lsan_unregister_root_region(from: *const c_void, _bytes: size_t) {
    heap::keep(from.addr(), false);
}

#[unsafe(no_mangle)]
extern "C" fn __lsan_disable() {
    heap::keep_new(true);
}

#[unsafe(no_mangle)]
extern "C" fn __lsan_enable() {
    heap::keep_new(false);
}

#[unsafe(no_mangle)]
extern "C" fn __lsan_do_leak_check() {
    if __lsan_do_recoverable_leak_check() != 0 {
        at_exit::end_at_once(LOST);
    }
}

#[unsafe(no_mangle)]
extern "C" fn __lsan_do_recoverable_leak_check() -> c_int {
    let found = heapwright::debug::check_leaks();
    c_int::from(found.is_some_and(|found| found.definite.blocks > 0))
}

fn size_of_block(address: *const c_void) -> Option<usize> {
    let found = heapwright::describe(address.cast());
    let is_block = found.block == address.addr() && found.state == BlockState::InUse;
    (is_block && found.block != 0).then_some(found.size)
}

#[unsafe(no_mangle)]
extern "C" fn __sanitizer_get_ownership(block: *const c_void) -> c_int {
    c_int::from(size_of_block(block).is_some())
}

#[unsafe(no_mangle)]
extern "C" fn __sanitizer_get_allocated_size(block: *const c_void) -> size_t {
    size_of_block(block).unwrap_or(0)
}

#[unsafe(no_mangle)]
extern "C" fn __sanitizer_get_heap_size() -> size_t {
    snapshot().committed_bytes as size_t
}

#[unsafe(no_mangle)]
extern "C" fn __sanitizer_get_current_allocated_bytes() -> size_t {
    snapshot().live_bytes as size_t
}
