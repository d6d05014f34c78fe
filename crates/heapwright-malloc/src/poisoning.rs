//! AddressSanitizer's interface, in `libheapwright-check.so`. A program's annotations
//! (`sanitizer/asan_interface.h`, and those of containers in `sanitizer/common_interface_defs.h`)
//! mean the same under `heapwright check` as under AddressSanitizer.
//!
//! | function | under `mode=debug` |
//! |---|---|
//! | `__asan_poison_memory_region`, `__asan_unpoison_memory_region` | accesses by functions of the C library are findings |
//! | `__sanitizer_annotate_contiguous_container`, `.._double_ended_..` | the same for a container's bytes beyond its elements |
//! | `__sanitizer_verify_contiguous_container`, `.._find_bad_address`, both kinds | check these annotations |
//! | `__asan_address_is_poisoned`, `__asan_region_is_poisoned` | also freed blocks, and bytes between blocks |
//! | `__asan_locate_address`, `__asan_get_alloc_stack`, `__asan_get_free_stack` | facts about a block |
//! | `__asan_describe_address` | a line of these facts |
//!
//! Poison is exact to the byte; AddressSanitizer rounds to eight. Only live blocks have poison.
//! Stacks, static memory and mappings have none. In other modes nothing is poisoned, and the
//! queries answer from the mode's own records.

use crate::text::Text;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use heapwright::heap::{self, UNBOUNDED};
use heapwright::{BlockState, Description, Kind};
use libc::size_t;

#[unsafe(no_mangle)]
extern "C" fn __asan_poison_memory_region(from: *const c_void, bytes: size_t) {
    heap::poison(from.addr(), bytes, true);
}

#[unsafe(no_mangle)]
extern "C" fn __asan_unpoison_memory_region(from: *const c_void, bytes: size_t) {
    heap::poison(from.addr(), bytes, false);
}

#[unsafe(no_mangle)]
extern "C" fn __asan_address_is_poisoned(address: *const c_void) -> c_int {
    c_int::from(heap::room(address.addr()) == 0)
}

/// Returns the first byte of a region that may not be accessed, or null.
#[unsafe(no_mangle)]
extern "C" fn __asan_region_is_poisoned(from: *mut c_void, bytes: size_t) -> *mut c_void {
    match heap::room(from.addr()) {
        UNBOUNDED => ptr::null_mut(),
        room if room >= bytes => ptr::null_mut(),
        room => from.wrapping_byte_add(room),
    }
}

fn mark(from: usize, to: usize, poisons: bool) {
    if let Some(bytes @ 1..) = to.checked_sub(from) {
        heap::poison(from, bytes, poisons);
    }
}

/// Notes that a container's elements were `[begin, old_end)` of its storage `[begin, end)`, and are
/// `[begin, new_end)` now.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_annotate_contiguous_container(
    begin: *const c_void,
    end: *const c_void,
    old_end: *const c_void,
    new_end: *const c_void,
) {
    let [begin, end, old, new] = [begin, end, old_end, new_end].map(|at| at.addr());
    if begin <= old.min(new) && old.max(new) <= end {
        mark(old, new, false);
        mark(new, old, true);
    }
}

/// Notes that a container's elements were `[old_begin, old_end)` of its storage `[begin, end)`, and
/// are `[new_begin, new_end)` now.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_annotate_double_ended_contiguous_container(
    begin: *const c_void,
    end: *const c_void,
    old_begin: *const c_void,
    old_end: *const c_void,
    new_begin: *const c_void,
    new_end: *const c_void,
) {
    let [begin, end] = [begin, end].map(|at| at.addr());
    let [old_begin, old_end] = [old_begin, old_end].map(|at| at.addr().clamp(begin, end));
    let [new_begin, new_end] = [new_begin, new_end].map(|at| at.addr().clamp(begin, end));
    // Poisons the former elements in front of the new elements, and behind them.
    mark(old_begin, old_end.min(new_begin), true);
    mark(old_begin.max(new_end), old_end, true);
    mark(new_begin, new_end, false);
}

/// The first byte of `[from, to)` that is poisoned; if not `poisoned`, the first that is not.
fn first(from: usize, to: usize, poisoned: bool) -> Option<usize> {
    let bytes = to.checked_sub(from).filter(|&bytes| bytes > 0)?;
    // Only blocks can be poisoned: all other memory counts as right.
    let leading = heap::poisoned_bytes(from, bytes)?;
    let same = if poisoned { heap::room(from) } else { leading };
    (same < bytes).then_some(from + same)
}

/// The first byte of a container's storage `[begin, end)` that is wrongly poisoned, or wrongly not
/// poisoned, if its elements are `[begin, middle)`. Returns null if there is no such byte.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_contiguous_container_find_bad_address(
    begin: *const c_void,
    middle: *const c_void,
    end: *const c_void,
) -> *const c_void {
    __sanitizer_double_ended_contiguous_container_find_bad_address(begin, begin, middle, end)
}

#[unsafe(no_mangle)]
extern "C" fn __sanitizer_verify_contiguous_container(
    begin: *const c_void,
    middle: *const c_void,
    end: *const c_void,
) -> c_int {
    c_int::from(__sanitizer_contiguous_container_find_bad_address(begin, middle, end).is_null())
}

/// As [`__sanitizer_contiguous_container_find_bad_address`], if the elements are `[first, last)`.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_double_ended_contiguous_container_find_bad_address(
    begin: *const c_void,
    first_element: *const c_void,
    last_element: *const c_void,
    end: *const c_void,
) -> *const c_void {
    let bad = first(begin.addr(), first_element.addr(), false)
        .or_else(|| first(first_element.addr(), last_element.addr(), true))
        .or_else(|| first(last_element.addr(), end.addr(), false));
    bad.map_or(ptr::null(), |at| begin.with_addr(at))
}

#[unsafe(no_mangle)]
extern "C" fn __sanitizer_verify_double_ended_contiguous_container(
    begin: *const c_void,
    first_element: *const c_void,
    last_element: *const c_void,
    end: *const c_void,
) -> c_int {
    let bad = __sanitizer_double_ended_contiguous_container_find_bad_address(
        begin,
        first_element,
        last_element,
        end,
    );
    c_int::from(bad.is_null())
}

/// The kind of an address in AddressSanitizer's words: `heap` (`*region` and `*size` get the
/// block), `heap-invalid`, or `unknown` (here also for stacks and static memory).
///
/// # Safety
///
/// `name`, if it is not null, has `name_size` bytes; `region` and `size` are null or can be
/// written.
#[unsafe(no_mangle)]
unsafe extern "C" fn __asan_locate_address(
    address: *mut c_void,
    name: *mut c_char,
    name_size: size_t,
    region: *mut *mut c_void,
    size: *mut size_t,
) -> *const c_char {
    let Description { kind, block, size: bytes, .. } = heapwright::describe(address.cast());
    if !name.is_null() && name_size > 0 {
        // SAFETY: `name` has room for a byte, as the caller promises.
        unsafe { name.write(0) };
    }
    if block != 0 && !region.is_null() {
        // SAFETY: the word can be written, as the caller promises.
        unsafe { region.write(address.with_addr(block)) };
    }
    if block != 0 && !size.is_null() {
        // SAFETY: the word can be written, as the caller promises.
        unsafe { size.write(bytes) };
    }
    let words: &CStr = match kind {
        Kind::Foreign => c"unknown",
        _ if block != 0 => c"heap",
        _ => c"heap-invalid",
    };
    words.as_ptr()
}

/// Writes the return addresses of the call that made the block at an address, innermost first, and
/// the thread's number. Returns the number of return addresses, at most `most`.
///
/// # Safety
///
/// `trace` has room for `most` addresses; `thread` is null or can be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn __asan_get_alloc_stack(
    address: *mut c_void,
    trace: *mut *mut c_void,
    most: size_t,
    thread: *mut c_int,
) -> size_t {
    // SAFETY: as the caller promises.
    unsafe { history(address.addr(), false, trace, most, thread) }
}

/// # Safety
///
/// As [`__asan_get_alloc_stack`].
#[unsafe(no_mangle)]
unsafe extern "C" fn __asan_get_free_stack(
    address: *mut c_void,
    trace: *mut *mut c_void,
    most: size_t,
    thread: *mut c_int,
) -> size_t {
    // SAFETY: as the caller promises.
    unsafe { history(address.addr(), true, trace, most, thread) }
}

/// # Safety
///
/// As [`__asan_get_alloc_stack`].
unsafe fn history(
    address: usize,
    was_freed: bool,
    trace: *mut *mut c_void,
    most: usize,
    thread: *mut c_int,
) -> usize {
    let Some((number, frames)) = heap::block_history(address, was_freed) else { return 0 };
    if !thread.is_null() {
        // SAFETY: the word can be written, as the caller promises.
        unsafe { thread.write(c_int::try_from(number).unwrap_or(c_int::MAX)) };
    }
    for (at, &frame) in frames.iter().take(most).enumerate() {
        // SAFETY: `trace` has room for `most` words, as the caller promises.
        unsafe { trace.wrapping_add(at).write(ptr::without_provenance_mut(frame)) };
    }
    frames.len().min(most)
}

#[unsafe(no_mangle)]
extern "C" fn __asan_describe_address(address: *mut c_void) {
    let found = heapwright::describe(address.cast());
    let mut line = Text::<256>::new();
    line.str("heapwright: ").address(address.addr()).str(" is ");
    if found.block == 0 {
        line.str(match found.kind {
            Kind::Foreign => "outside of heapwright's heaps",
            _ => "heapwright's, and in no block",
        });
    } else {
        line.number(found.offset as u64).str(if found.offset == 1 { " byte" } else { " bytes" });
        line.str(" into the ").number(found.size as u64);
        line.str("-byte block at ").address(found.block);
        if found.state != BlockState::InUse {
            line.str(", which is free");
        } else if found.is_poisoned {
            line.str(", which the program has poisoned there");
        }
    }
    line.byte(b'\n');
    _ = heapwright::process::write_all(libc::STDERR_FILENO, line.bytes());
}
