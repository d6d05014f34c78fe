//! The crate's own memory, reserved from the system and never given back. A guard page on either
//! side stops stray writes of the program that run out of neighbouring memory.

use core::ptr;

use heapwright_substrate::os::{Memory, System};
use heapwright_substrate::sync::atomic::{AtomicPtr, Ordering};

/// Returns zeroed memory of at least `size` bytes, aligned to a page, or null if there is none.
fn guarded(size: usize) -> *mut u8 {
    let page = System.page_size();
    let Some(size) = size.checked_next_multiple_of(page) else { return ptr::null_mut() };
    let whole = System.reserve(size + 2 * page, page);
    if whole.is_null() {
        return whole;
    }
    let inner = whole.wrapping_add(page);
    // SAFETY: the middle of a reservation just made, in whole pages.
    if unsafe { System.commit(inner, size) } {
        return inner;
    }
    // SAFETY: the reservation was just made, and no other thread has seen it.
    unsafe { System.release(whole, size + 2 * page) };
    ptr::null_mut()
}

/// Takes guarded memory of `size` bytes at the first call, and returns the same memory later, or
/// null if there is none. If threads race, all but one release their memory.
#[cold]
#[inline(never)]
fn take(place: &AtomicPtr<u8>, size: usize) -> *mut u8 {
    let fresh = guarded(size);
    if fresh.is_null() {
        return place.load(Ordering::Acquire);
    }
    match place.compare_exchange(ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => fresh,
        Err(winner) => {
            let page = System.page_size();
            let whole = size.next_multiple_of(page) + 2 * page;
            // SAFETY: this is the whole reservation of `guarded`, and no other thread has seen it.
            unsafe { System.release(fresh.wrapping_sub(page), whole) };
            winner
        }
    }
}

pub(super) struct Region {
    at: AtomicPtr<u8>,
    #[cfg(test)]
    is_refused: core::sync::atomic::AtomicBool,
}

impl Region {
    pub(super) const fn new() -> Self {
        Self {
            at: AtomicPtr::new(ptr::null_mut()),
            #[cfg(test)]
            is_refused: core::sync::atomic::AtomicBool::new(false),
        }
    }

    #[cfg(test)]
    pub(super) fn refuse(&self, is_refused: bool) {
        self.is_refused.store(is_refused, Ordering::Relaxed);
    }

    /// Returns the region's address, or null before [`Region::get`].
    #[inline(always)]
    pub(super) fn peek(&self) -> *mut u8 {
        self.at.load(Ordering::Acquire)
    }

    /// Returns `size` bytes, at first zeroed, or null without memory. `size` is always the same.
    #[inline(always)]
    pub(super) fn get(&self, size: usize) -> *mut u8 {
        #[cfg(test)]
        if self.is_refused.load(Ordering::Relaxed) {
            return ptr::null_mut();
        }
        let at = self.peek();
        if at.is_null() { take(&self.at, size) } else { at }
    }
}
