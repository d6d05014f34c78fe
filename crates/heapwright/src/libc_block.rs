//! Blocks of the C library's own allocator, recognised by their headers.
//!
//! A preloaded `malloc` meets blocks that the C library's own allocator made:
//! a library loaded with `RTLD_DEEPBIND` calls the C library's `malloc`, and
//! hands the block to a program that calls ours. Those are recognised and
//! passed on.
//!
//! glibc's blocks carry their size in the word before them:
//!
//! ```text
//!   | previous size | size | A M P | user's bytes ...
//!                              | |
//!                              | +-- M: a mapping of its own
//!                              +---- A: not in the main heap; the arena is named
//!                                    at the start of the 64-MiB block around it
//! ```
//!
//! A header is read only where the kernel says that memory is readable. That
//! costs a read of /proc/self/maps, so the last mapping that proved to hold
//! such blocks is remembered.
//!
//! Called by `heap::foreign`, which passes such blocks on, and by the debug heap, which leaves
//! them alone.

use core::ptr;

use crate::os::{self, Contents};
use crate::sync::Lock;

/// Memory that holds blocks of the C library.
#[derive(Clone, Copy)]
struct Region {
    start: usize,
    end: usize,
    /// The main heap, which grows and shrinks with the program break.
    is_main: bool,
}

/// The region that last proved to hold blocks of the C library.
static KNOWN: Lock<Region> = Lock::new(Region { start: 0, end: 0, is_main: false });

const HEADER: usize = 16;
const PREVIOUS_IN_USE: usize = 1;
const MAPPED: usize = 2;
const NOT_MAIN: usize = 4;
/// glibc's arenas, but for the main one, begin at multiples of this.
const ARENA: usize = 64 << 20;

/// The bytes that may be used of a block of the C library, or `None` where
/// `address` is not one.
pub(crate) fn usable_size(address: usize) -> Option<usize> {
    if !address.is_multiple_of(16) || address < 1 << 16 {
        return None;
    }
    // Never waits: a forked child may find the lock held by nobody it has.
    if let Some(mut known) = KNOWN.try_lock().map(|known| *known) {
        if known.is_main {
            known.end = known.end.min(os::program_break());
        }
        if let Some(usable) = usable_in(known, address) {
            return Some(usable);
        }
    }
    let Ok(mapping) = os::mapping_of(address - HEADER) else {
        // It is not known what memory this is. What looks like a block is passed
        // on: the C library checks more, and ends the program where it must.
        let anywhere = Region { start: 0, end: usize::MAX, is_main: true };
        return header(anywhere, address).map(|(bytes, _)| bytes - HEADER);
    };
    let mapping = mapping?;
    // Anonymous, writable memory; not the main stack, not a file.
    let is_main = match mapping.contents() {
        Contents::Break => true,
        Contents::Anonymous => false,
        _ => return None,
    };
    if !mapping.readable || !mapping.writable {
        return None;
    }
    let region = Region { start: mapping.start, end: mapping.end, is_main };
    if let Some(usable) = usable_in_mapping(region, address) {
        return Some(usable);
    }
    if let Some(usable) = usable_in_main_elsewhere(region, address) {
        return Some(usable);
    }
    let usable =
        if is_main { usable_in(region, address)? } else { usable_in_arena(region, address)? };
    if let Some(mut known) = KNOWN.try_lock() {
        *known = region;
    }
    Some(usable)
}

/// The size and the flags in the header of a block, if that is in the region
/// and the block ends in it.
fn header(region: Region, address: usize) -> Option<(usize, usize)> {
    if !(region.start + HEADER..region.end).contains(&address) {
        return None;
    }
    // SAFETY: the word before the block is in the region, which is readable.
    let size = unsafe { ptr::with_exposed_provenance::<usize>(address - 8).read() };
    let (bytes, flags) = (size & !7, size & 7);
    let fits = bytes >= 32 && bytes <= region.end - (address - HEADER);
    fits.then_some((bytes, flags))
}

/// A block in the main heap or in an arena that is known to be one.
fn usable_in(region: Region, address: usize) -> Option<usize> {
    let (bytes, flags) = header(region, address)?;
    let belongs = flags & MAPPED == 0 && (flags & NOT_MAIN == 0) == region.is_main;
    (belongs && bytes.is_multiple_of(16)).then(|| bytes - 8)
}

/// A block in an arena: the 64 MiB around it begin with a pointer to the arena.
fn usable_in_arena(region: Region, address: usize) -> Option<usize> {
    let heap = address & !(ARENA - 1);
    if heap < region.start {
        return None;
    }
    // SAFETY: in the region, which is readable.
    let arena = unsafe { ptr::with_exposed_provenance::<usize>(heap).read() };
    let is_arena = arena.is_multiple_of(8)
        && matches!(os::mapping_of(arena), Ok(Some(mapping)) if mapping.writable);
    if is_arena { usable_in(region, address) } else { None }
}

/// A block of the main arena where the program break could not be moved, or of
/// a C library in a namespace of its own: in some anonymous mapping. The block
/// behind it must say that this one is in use.
fn usable_in_main_elsewhere(region: Region, address: usize) -> Option<usize> {
    let (bytes, flags) = header(region, address)?;
    if region.is_main || flags & (MAPPED | NOT_MAIN) != 0 || !bytes.is_multiple_of(16) {
        return None;
    }
    let (next, next_flags) = header(region, address + bytes)?;
    (next.is_multiple_of(16) && next_flags & PREVIOUS_IN_USE != 0).then(|| bytes - 8)
}

/// A block that is a mapping of its own. The words before it say how far the
/// mapping begins before it, and a size; together they are whole pages.
fn usable_in_mapping(region: Region, address: usize) -> Option<usize> {
    let (bytes, flags) = header(region, address)?;
    if flags & MAPPED == 0 {
        return None;
    }
    // SAFETY: in the region, which is readable.
    let before = unsafe { ptr::with_exposed_provenance::<usize>(address - 16).read() };
    let page = os::kernel_page_size();
    let starts = (address - HEADER).checked_sub(before)?;
    let whole = starts.is_multiple_of(page) && (before + bytes).is_multiple_of(page);
    (whole && starts >= region.start).then(|| bytes - 16)
}
