//! Blocks that pools, arenas and first-class heaps of C hand out, in the process's debug heap.
//!
//! In `mode=debug` the C layer takes each object from here, so that each is checked like a block of
//! `malloc`. The record has the owner's kind, so `free` of a pool's object is a mismatch.

use core::ptr::NonNull;

use heapwright_record::debug as record;

use crate::request::{Origin, Request, Return};

use super::process;

/// The kind of object that hands out a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// A pool.
    Pool,
    /// An arena.
    Arena,
    /// A first-class heap, whose blocks `free` may free, too.
    Heap,
}

impl Owner {
    const fn origin(self) -> Origin {
        match self {
            Self::Pool => Origin::Pool,
            Self::Arena => Origin::Arena,
            Self::Heap => Origin::Heap,
        }
    }

    fn gives_back(self) -> Return {
        let call = match self {
            Self::Pool => record::Call::PoolFree,
            Self::Arena => record::Call::ArenaFree,
            Self::Heap => record::Call::HeapFree,
        };
        Return { call, origin: self.origin(), size: None, align: None }
    }
}

/// Makes a block for an owner: `size` bytes at a multiple of `align`, zeroed if `zero`. Returns
/// `None` without memory, or if the mode is not `debug`. Takes constant time, plus system calls.
///
/// ```
/// use heapwright::debug::{Owner, allocate_owned};
/// // Not in mode=debug:
/// assert!(allocate_owned(Owner::Pool, 40, 8, false).is_none());
/// ```
#[must_use]
pub fn allocate_owned(owner: Owner, size: usize, align: usize, zero: bool) -> Option<NonNull<u8>> {
    let request = Request::new(size, align, zero, owner.origin());
    if !request.is_possible() {
        return None;
    }
    NonNull::new(process::allocate(request)?)
}

/// Frees a block of an owner, or reports that no such block begins there. Takes constant time.
///
/// # Safety
///
/// If the block is in use, no code uses it afterwards.
///
/// ```
/// use heapwright::debug::{Owner, allocate_owned, free_owned};
/// if let Some(block) = allocate_owned(Owner::Heap, 40, 8, false) {
///     // SAFETY: allocated above, freed once.
///     unsafe { free_owned(Owner::Heap, block.as_ptr()) };
/// }
/// ```
pub unsafe fn free_owned(owner: Owner, block: *mut u8) {
    // SAFETY: as the caller promises.
    if !unsafe { process::free(block, owner.gives_back()) } {
        process::refuse(block.addr(), owner.gives_back());
    }
}

/// Reports that an owner was given another owner's block, which stays. Takes constant time.
///
/// ```
/// use heapwright::debug::{Owner, refuse_owned};
/// // Not in mode=debug, nothing happens:
/// refuse_owned(Owner::Pool, core::ptr::null());
/// ```
pub fn refuse_owned(owner: Owner, block: *const u8) {
    process::refuse(block.addr(), owner.gives_back());
}
