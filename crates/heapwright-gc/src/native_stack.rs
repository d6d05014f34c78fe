//! The native stack: a thread's C stack and registers, which may be scanned for references.
//!
//! ```text
//!   base   | the program's frames ... | frame that calls the heap |  top   | the heap's frames |
//!            <------------- scanned, words that may be anything -->         not scanned
//! ```
//!
//! The stack is noted where the thread enters the heap, so stale values in the heap's own frames
//! keep no object. Callee-saved registers, which may hold the only copy of a reference, are noted.
//!
//! A program may run on a stack of its own (`makecontext`, `sigaltstack`). So a scan looks up once
//! how far the memory below the base can be read. If the top is not there, the scan ends the
//! program. Part of `mutator`.

use heapwright_substrate::address_map::MAP;
use heapwright_substrate::misuse;
use heapwright_substrate::os;

use super::cell::{Num, Ptr};
use super::tracer::Tracer;

/// A thread's C stack. All-zero bytes: a stack that is not scanned.
pub(super) struct NativeStack {
    /// The stack's end; null if the stack is not scanned.
    base: Ptr<u8>,
    /// The memory from this address up to the base can be read. 0: not known.
    readable_from: Num,
    pub(super) top: Ptr<u8>,
    /// Whether an outer frame has noted the top, which then holds until that frame returns.
    noted: Num,
    pub(super) registers: [Num; os::SAVED_REGISTERS],
}

impl NativeStack {
    /// Notes the top of the stack, if it is scanned and no outer frame has noted it. Inlined: the
    /// note holds for as long as the caller's frame exists.
    #[inline(always)]
    pub(super) fn note(&self) {
        if self.base.get().is_null() || self.noted.get() != 0 {
            return;
        }
        let mut registers = [0; os::SAVED_REGISTERS];
        let top = os::save_registers(&mut registers);
        for (to, from) in self.registers.iter().zip(registers) {
            to.set(from);
        }
        self.top.set(self.base.get().with_addr(top));
    }

    /// As [`NativeStack::note`], for as long as the guard exists. Functions that are called
    /// meanwhile note nothing, so stale values in their frames keep no object.
    #[inline(always)]
    pub(super) fn enter(&self) -> Noted<'_> {
        self.note();
        Noted { stack: self, outer: self.noted.replace(1) }
    }

    /// From now on, scans the stack below `base`; null: scans none.
    pub(super) fn name(&self, base: *mut u8) {
        if self.base.get() != base {
            self.readable_from.set(0);
        }
        self.base.set(base);
    }

    /// Returns whether `top` is on the stack that ends at `base`, as far as the system tells.
    fn holds(&self, top: *mut u8, base: *mut u8) -> bool {
        let known = self.readable_from.get();
        if top > base || known != 0 && top.addr() >= known {
            return top <= base;
        }
        let (mut start, mut end, mut found) = (0, 0, false);
        let is_known = os::each_mapping(&mut |mapping| {
            if mapping.start != end || start == 0 || !mapping.readable {
                start = if mapping.readable { mapping.start } else { 0 };
            }
            end = mapping.end;
            found = end >= base.addr();
            !found
        });
        if !(is_known && found) {
            return true;
        }
        self.readable_from.set(start);
        start != 0 && start <= top.addr()
    }

    pub(super) fn scan(&self, tracer: &Tracer) {
        let (top, base) = (self.top.get(), self.base.get());
        if base.is_null() || top.is_null() {
            return;
        }
        if !self.holds(top, base) {
            misuse::collected_heap(
                "a collection on a stack that is not the one of hw_gc_scan_stack: call \
                 hw_gc_scan_stack with each stack that the thread enters (makecontext, \
                 sigaltstack), and with the old stack when the thread returns to it",
            );
        }
        for register in &self.registers {
            tracer.mark_maybe(MAP.base().with_addr(register.get()));
        }
        // SAFETY: the thread is stopped below `top`, or is away with unchanged frames above it.
        // `base` is the end of its stack, by the contract of `scan_stack`.
        unsafe { tracer.scan(top, base) };
    }

    pub(super) fn clear(&self) {
        self.name(core::ptr::null_mut());
        self.top.set(core::ptr::null_mut());
        self.noted.set(0);
    }
}

pub(super) struct Noted<'a> {
    stack: &'a NativeStack,
    outer: usize,
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        self.stack.noted.set(self.outer);
    }
}
