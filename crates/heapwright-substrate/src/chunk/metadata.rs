//! Memory for the heap's own objects: caches, slots of registries, segments of tables.
//!
//! A bump allocator over units marked `METADATA`. Its memory never goes back.

use core::ptr;

use super::Want;
use crate::address_map::{Entry, MAP};
use crate::size_class::UNIT;
use crate::sync::Lock;

struct Bump {
    next: usize,
    end: usize,
    unit: usize,
}

static BUMP: Lock<Bump> = Lock::new(Bump { next: 0, end: 0, unit: 0 });

/// Zeroed memory that lives as long as the process. Null: there is no memory. `align` is a power of
/// two and at most a unit.
pub fn alloc(size: usize, align: usize) -> *mut u8 {
    let mut bump = BUMP.lock();
    let at = bump.next.next_multiple_of(align);
    if at + size > bump.end {
        let units = size.div_ceil(UNIT);
        // The unused end of the last run is lost.
        let Some(run) = super::take(units, 1, Want::Zero, Entry::METADATA, |_| Entry::METADATA)
        else {
            return ptr::null_mut();
        };
        if !run.zero {
            // SAFETY: the run was just taken; no other thread knows it.
            unsafe { ptr::write_bytes(MAP.address_of(run.unit), 0, units * UNIT) };
        }
        *bump = Bump { next: 0, end: units * UNIT, unit: run.unit };
    }
    let at = bump.next.next_multiple_of(align);
    bump.next = at + size;
    MAP.address_of(bump.unit).wrapping_add(at)
}

/// Holds the lock across a fork.
pub fn before_fork() {
    BUMP.acquire();
}

/// Gives the lock back on either side of a fork.
///
/// # Safety
///
/// Follows [`before_fork`] in the forking thread or its copy in the child.
pub unsafe fn after_fork() {
    // SAFETY: by the contract this thread (in a child: its original) holds the lock.
    unsafe { BUMP.release() };
}
