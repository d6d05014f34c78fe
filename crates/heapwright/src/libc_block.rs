//! Blocks that the C library's own allocator made before heapwright took over.
//!
//! Only code that calls `__libc_malloc` by this name before heapwright's constructor has such
//! blocks, so they are few. The constructor lists their addresses:
//!
//! ```text
//!   glibc's heap   | chunk | chunk | ... | top |     from the first chunk to the program break
//!   chunk          previous size | size A M P | user's bytes ...    P: the chunk before is in use
//!   mapped chunk   a mapping of its own: M, and whole pages
//! ```
//!
//! Each listed block is passed on to the C library once. No header is trusted afterwards, because a
//! program can forge one. Called by `heap`, and by the debug heap, which leaves these blocks alone.

use core::ptr;

use crate::os::{self, Contents};
use crate::sync::atomic::{AtomicUsize, Ordering};

/// The most blocks that are listed. Others are refused, like unknown addresses.
const MOST: usize = 512;

/// Addresses of the listed blocks. A block that was passed on becomes 0.
static BLOCKS: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];
static COUNT: AtomicUsize = AtomicUsize::new(0);

const HEADER: usize = 16;
const PREVIOUS_IN_USE: usize = 1;
const MAPPED: usize = 2;
/// The most pages of all mappings that are searched for mapped chunks.
const MOST_PAGES: usize = 1 << 16;

/// Makes the list. The constructor calls this once, while the process has one thread.
pub(crate) fn record() {
    let Some(heap) = os::libc_heap() else { return };
    record_heap(heap.start, heap.end);
    if heap.mapped > 0 {
        record_mapped(heap.mapped);
    }
}

fn add(block: usize) {
    let at = COUNT.load(Ordering::Relaxed);
    if let Some(place) = BLOCKS.get(at) {
        place.store(block, Ordering::Relaxed);
        COUNT.store(at + 1, Ordering::Release);
    }
}

/// # Safety
///
/// The word can be read.
unsafe fn word(address: usize) -> usize {
    // SAFETY: by the contract the word can be read.
    unsafe { ptr::with_exposed_provenance::<usize>(address).read() }
}

/// Lists the live chunks of the main heap. Lists none if the chunks do not lead to the heap's end:
/// other code moved the program break, or a thread's own heap made the start wrong.
#[cold]
#[inline(never)]
fn record_heap(start: usize, end: usize) {
    // The last chunk, up to the end, is memory that glibc has not handed out yet.
    let next = |at: usize| {
        if end - at < HEADER || !os::is_readable(at + 8) {
            return None;
        }
        // SAFETY: the word can be read, as tested above.
        let bytes = unsafe { word(at + 8) } & !7;
        let is_chunk = bytes >= 2 * HEADER && bytes.is_multiple_of(16) && bytes <= end - at;
        is_chunk.then(|| at + bytes)
    };
    let chunks = || core::iter::successors(Some(start), |&at| next(at));
    if chunks().last() != Some(end) {
        return;
    }
    for (at, behind) in chunks().zip(chunks().skip(1)).filter(|&(_, behind)| behind < end) {
        // SAFETY: the header of the next chunk, which is in the heap.
        if unsafe { word(behind + 8) } & PREVIOUS_IN_USE != 0 {
            add(at + HEADER);
        }
    }
}

#[cold]
#[inline(never)]
fn record_mapped(mut left: usize) {
    let page = os::kernel_page_size();
    let mut pages = MOST_PAGES;
    os::each_mapping(&mut |mapping| {
        let is_memory =
            mapping.readable && mapping.writable && mapping.contents() == Contents::Anonymous;
        let mut at = mapping.start;
        while is_memory && at < mapping.end && left > 0 && pages > 0 {
            pages -= 1;
            // Guard marks make a page unreadable, and the list of mappings does not show them.
            if !os::is_readable(at) {
                at += page;
                continue;
            }
            let bytes = mapped_bytes(at, 0).filter(|&bytes| bytes <= mapping.end - at);
            let bytes = bytes.filter(|&bytes| {
                let mut others = (at..at + bytes).step_by(page).skip(1);
                bytes >= page && bytes.is_multiple_of(page) && others.all(os::is_readable)
            });
            if let Some(bytes) = bytes {
                // An aligned block has a header of its own, further on in the mapping.
                let headers = (0..bytes).step_by(HEADER).rev();
                let is_its = |&before: &usize| {
                    mapped_bytes(at + before, before).is_some_and(|rest| before + rest == bytes)
                };
                add(at + headers.into_iter().find(is_its).unwrap_or(0) + HEADER);
                left -= 1;
            }
            at += bytes.unwrap_or(page);
        }
        left > 0 && pages > 0
    });
}

/// Returns the bytes of the mapped chunk with a readable header `before` bytes into its mapping.
fn mapped_bytes(at: usize, before: usize) -> Option<usize> {
    // SAFETY: the address can be read, as the caller promises.
    let is_before = unsafe { word(at) } == before;
    // SAFETY: the next word is in the same page.
    let size = unsafe { word(at + 8) };
    (is_before && size & 7 == MAPPED).then_some(size & !7)
}

fn place_of(address: usize) -> Option<&'static AtomicUsize> {
    let written = &BLOCKS[..COUNT.load(Ordering::Acquire)];
    written.iter().find(|place| address != 0 && place.load(Ordering::Relaxed) == address)
}

#[cfg(feature = "debug")]
pub(crate) fn has(address: usize) -> bool {
    place_of(address).is_some()
}

/// Takes a block off the list, to pass it on to the C library once.
pub(crate) fn take(address: usize) -> bool {
    let order = Ordering::Relaxed;
    place_of(address).is_some_and(|at| at.compare_exchange(address, 0, order, order).is_ok())
}

pub(crate) fn usable_size(address: usize) -> Option<usize> {
    place_of(address)?;
    // SAFETY: the C library made this block, which was not passed on.
    let size = unsafe { word(address - 8) };
    let behind = if size & MAPPED != 0 { 16 } else { 8 };
    (size & !7).checked_sub(behind)
}
