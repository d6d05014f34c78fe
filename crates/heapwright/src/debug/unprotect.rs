//! Removes guards for one access, so that the program continues after a report.
//!
//! ```text
//!   fault --> unprotect(page) --> the C layer lets the instruction run once --> put_back(page)
//!   finding --> unprotect_range --> the C layer calls the kernel --> put_range_back
//! ```
//!
//! A guarded page has no contents: the access reads zeros, and its writes are lost when the guard
//! returns. Meanwhile other threads may access the page unnoticed. If the bucket is reused, the
//! guard does not return. `unprotect` and `put_back` take the store's lock, and decide by the
//! page's span and bucket whether the page must be guarded.
//!
//! A guard stays if the heap itself was interrupted, because then the heap made the access. A guard
//! also stays for an instruction of a traced process, because a debugger sees the access as it
//! steps. Called by `fault`, and by the C layer in its fault handler and around system calls.

use crate::os;
use crate::size_class::UNIT;
use crate::sync;
use crate::sync::atomic::{AtomicU32, Ordering};

use super::heap::Heap;
use super::history::guarded_range;
use super::shape::PAGE;
use super::span::{BucketRef, Form, Memory, Span};
use super::store::Store;

/// The most single accesses of a process. So a loop over a large freed block ends in seconds.
const MOST: u32 = 100_032;

/// Removes the guard of an address's page. Returns false if the page has none, or it stays.
pub(super) fn unprotect(heap: &'static Heap, span: &'static Span, address: usize) -> bool {
    /// One call in this many checks for a tracer.
    const LOOK: u32 = 64;
    static LEFT: AtomicU32 = AtomicU32::new(MOST);
    let Some(left) = sync::take_one(&LEFT) else { return false };
    if sync::is_interrupted()
        || heap.is_entered_here()
        || os::kernel_page_size() != PAGE
        || left.is_multiple_of(LOOK) && is_traced()
    {
        return false;
    }
    let page = address & !(PAGE - 1);
    let Some(store) = heap.hold_store() else { return false };
    // SAFETY: a page of the span, which stays while the store is locked.
    is_guard(&store, span, page) && unsafe { os::unguard(at(span, page), PAGE) }
}

pub(super) fn put_back(heap: &'static Heap, address: usize) {
    put_range_back(heap, address, 1);
}

/// A call of more bytes removes guards only in the first span.
const NEIGHBOURS: usize = 1 << 20;

/// Removes the guards of a range's pages. Returns false if the range has none, or they stay.
pub(super) fn unprotect_range(heap: &'static Heap, address: usize, bytes: usize) -> bool {
    if sync::is_interrupted() || heap.is_entered_here() || os::kernel_page_size() != PAGE {
        return false;
    }
    let Some(store) = heap.hold_store() else { return false };
    let mut removed = false;
    each_guard(heap, &store, address, bytes, |from, length| {
        // SAFETY: pages of a span, which stays while the store is locked.
        removed |= unsafe { os::unguard(from, length) };
    });
    removed
}

/// Restores the guards of a range's pages, except on pages that have been reused.
pub(super) fn put_range_back(heap: &'static Heap, address: usize, bytes: usize) {
    let store = heap.lock_store();
    each_guard(heap, &store, address, bytes, |from, length| {
        // SAFETY: these pages must be guarded, so no code uses their contents.
        unsafe { os::guard(from, length) };
    });
}

pub(super) fn is_guarded(heap: &'static Heap, address: usize) -> bool {
    let mut is = false;
    if let Some(store) = heap.hold_store() {
        each_guard(heap, &store, address, 1, |_, _| is = true);
    }
    is
}

/// Calls `found` for the pages in a range that must be guarded, up to the first gap between spans.
fn each_guard(
    heap: &Heap,
    store: &Store,
    address: usize,
    bytes: usize,
    mut found: impl FnMut(*mut u8, usize),
) {
    let end = address.saturating_add(bytes);
    let mut page = address & !(PAGE - 1);
    while page < end
        && let Some(span) = Span::of(page)
        && span.heap.load(Ordering::Relaxed) == heap.id()
    {
        let last = end.min(span.start().addr() + span.units() * UNIT);
        while page < last {
            let start = page;
            while page < last && is_guard(store, span, page) {
                page += PAGE;
            }
            if page > start {
                found(at(span, start), page - start);
            } else {
                page += PAGE;
            }
        }
        if bytes > NEIGHBOURS {
            return;
        }
    }
}

fn at(span: &Span, page: usize) -> *mut u8 {
    span.start().with_addr(page)
}

/// Returns whether a page must be guarded. The caller must hold the store's lock.
fn is_guard(store: &Store, span: &'static Span, page: usize) -> bool {
    let Some(offset) = page.checked_sub(span.start().addr()) else { return false };
    let index = match span.form() {
        Form::Large => 0,
        _ => offset / span.bucket_bytes(),
    };
    if index >= span.bucket_count() {
        return span.form() == Form::Sampled;
    }
    let bucket = BucketRef { span, index };
    let record = bucket.record();
    let (from, length) = guarded_range(bucket);
    if page.wrapping_sub(from.addr()) < length && record.memory() == Memory::Guarded {
        return true;
    }
    match span.form() {
        Form::Large => {
            let room = record.room.load(Ordering::Relaxed);
            store.has_ends() && !(PAGE..PAGE + room).contains(&offset)
        }
        Form::Sampled => page.wrapping_sub(from.addr()) >= length,
        _ => false,
    }
}

fn is_traced() -> bool {
    const TRACER: &[u8] = b"TracerPid:\t";
    // The line is among the first ten.
    let (mut buffer, mut is_traced) = ([0; 1024], false);
    os::read_file(c"/proc/self/status", &mut buffer, |bytes| {
        let at = bytes.windows(TRACER.len()).position(|window| window == TRACER);
        is_traced = at.is_some_and(|at| bytes.get(at + TRACER.len()) != Some(&b'0'));
        false
    });
    is_traced
}
