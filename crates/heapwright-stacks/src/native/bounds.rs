//! Bounds: the readable memory of a stack.
//!
//! ```text
//!      floor              low          sp                      high
//!   .....|................[============|========================)  the thread's own stack
//!        no stack of ours  \__ every page was once read, from sp upward
//!        reaches below
//! ```
//!
//! The end of a thread's own stack is known without a file. The C library puts a thread's control
//! block above the thread's stack, and the loader noted the start of the first thread's stack.
//! Everything between the stack pointer and that end is mapped while the thread lives. This is
//! tested once for each page and thread: `os::is_readable` lets the kernel read a word.
//!
//! Any other stack (a fiber, a signal's alternate stack, a split stack) has a hole between it and
//! that end. There, each walk tests a page before it reads from the page. No read faults, even if
//! memory was unmapped meanwhile.
//!
//! # Invariants
//!
//! - `[low, high)` is readable while the thread whose control block is at `token` lives. A thread
//!   may get the scratch of an ended thread. If its token differs, the bounds are set again. If its
//!   token is the same, its stack ends at the same place, so all memory from its stack pointer to
//!   `high` is its stack. These bounds never permit a read below a walk's first stack pointer.
//! - Words belong to other frames. So each is read as a whole, aligned and volatile.

use core::ptr;

use super::machine::thread_pointer;
use heapwright_substrate::os;

/// The longest stack that is accepted.
const LONGEST: usize = 1 << 30;

/// The calling thread's own stack. Zeroed memory is a valid value.
pub(super) struct Own {
    /// The control block of the thread to which the bounds belong.
    token: usize,
    low: usize,
    high: usize,
    floor: usize,
}

impl Own {
    pub(super) const fn new() -> Self {
        Self { token: 0, low: 0, high: 0, floor: 0 }
    }

    /// Returns the end of the thread's own stack, if `sp` is on it.
    #[inline(always)]
    pub(super) fn end(&mut self, sp: usize) -> Option<usize> {
        if self.low <= sp && sp < self.high && self.token == thread_pointer() {
            Some(self.high)
        } else {
            self.look(sp)
        }
    }

    #[cold]
    #[inline(never)]
    fn look(&mut self, sp: usize) -> Option<usize> {
        let token = thread_pointer();
        if self.token != token {
            let first = os::first_stack_end();
            let end = if first != 0 && os::is_first_thread() { first } else { token };
            *self = Self { token, low: end & !7, high: end & !7, floor: 0 };
        }
        let room = self.high.saturating_sub(sp);
        if sp < self.floor || !(8..LONGEST).contains(&room) {
            return None;
        }
        let page = os::kernel_page_size();
        let mut at = sp & !7;
        while at < self.low {
            if !os::is_readable(at) {
                self.floor = at;
                return None;
            }
            at = (at & !(page - 1)) + page;
        }
        self.low = self.low.min(sp & !(page - 1)).max(self.floor);
        Some(self.high)
    }
}

pub(super) struct Reader {
    low: usize,
    /// The distance from `low` to the last word.
    span: usize,
    page: usize,
    /// Whether a page was tested.
    pub(super) tried: bool,
}

impl Reader {
    /// Reads upward from `sp`, without tests up to `end`.
    #[inline(always)]
    pub(super) fn new(sp: usize, end: Option<usize>) -> Self {
        match end {
            Some(end) if sp.is_multiple_of(8) && sp + 8 <= end => {
                Self { low: sp, span: end - 8 - sp, page: 1, tried: false }
            }
            // No aligned word lies in this range.
            _ => Self { low: usize::MAX, span: 0, page: 1, tried: false },
        }
    }

    /// Returns the words that need no test: the first word, and the distance to the last.
    #[inline(always)]
    pub(super) fn without_trying(&self) -> (usize, usize) {
        (self.low, self.span)
    }

    #[inline(always)]
    fn has(&mut self, address: usize) -> bool {
        address.wrapping_sub(self.low) <= self.span || self.try_page(address)
    }

    #[cold]
    #[inline(never)]
    fn try_page(&mut self, address: usize) -> bool {
        self.tried = true;
        let page = address & !(os::kernel_page_size() - 1);
        if page != self.page {
            if !os::is_readable(address) {
                return false;
            }
            self.page = page;
        }
        true
    }

    /// Returns a word, or `None` if it is not aligned or not readable.
    #[inline(always)]
    pub(super) fn word(&mut self, address: usize) -> Option<usize> {
        if !address.is_multiple_of(8) || !self.has(address) {
            return None;
        }
        // SAFETY: aligned, and on the thread's own stack or on a tested page.
        Some(unsafe { word_at(address) })
    }
}

/// # Safety
///
/// The address is aligned and readable.
#[inline(always)]
pub(super) unsafe fn word_at(address: usize) -> usize {
    let at = ptr::with_exposed_provenance::<usize>(address);
    // SAFETY: by the contract the address is aligned and readable.
    unsafe { at.read_volatile() }
}
