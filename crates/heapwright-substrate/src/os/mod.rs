//! The operating system: all heaps make their system calls below this module.
//!
//! There are two back ends with the same functions: `linux` (x86-64, aarch64), and `portable`, with
//! which Miri can run the heap. The target selects one of them.
//!
//! Memory is *reserved* (addresses, not accessible) or *committed* (readable and writable, zero
//! until written). After [`Memory::decommit`], committed memory is zero again. [`Memory`] is a
//! trait, so that tests can use a fake system with other page sizes and refusals.
//!
//! Functions of `linux` keep `errno` unchanged (unless they say otherwise), because `free` must.
//! Those of `portable` may change it, because no C program's `free` is built on them.

#[cfg(all(target_os = "linux", not(miri), any(target_arch = "x86_64", target_arch = "aarch64")))]
#[path = "linux/mod.rs"]
mod imp;

#[cfg(not(all(
    target_os = "linux",
    not(miri),
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
#[path = "portable.rs"]
mod imp;

#[cfg(test)]
pub mod fake;
mod mapping;

use core::sync::atomic::{AtomicU32, Ordering};

pub use imp::*;
pub use mapping::{Contents, LibcHeap, what_is_at};

/// The system calls that the process may still make (`seccomp`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Sandbox {
    /// All calls, as far as the process knows.
    Open,
    /// All calls, but soon fewer. The heap opens only files that it needs.
    Expected,
    /// Only mmap, munmap, mremap, mprotect, madvise, futex, write, clock_gettime and exit.
    Filter,
    /// Only write and exit.
    Strict,
}

/// The low byte is the sandbox. The other bytes count entries.
struct SandboxWord(AtomicU32);

static SANDBOX: SandboxWord = SandboxWord(AtomicU32::new(Sandbox::Open as u32));

/// A call by which the process is about to enter a sandbox.
#[must_use]
pub struct SandboxEntry {
    before: Sandbox,
    word: u32,
}

impl SandboxWord {
    const ONE_ENTRY: u32 = 1 << 8;

    fn get(&self) -> Sandbox {
        Self::sandbox_of(self.0.load(Ordering::SeqCst))
    }

    fn sandbox_of(word: u32) -> Sandbox {
        match word % Self::ONE_ENTRY {
            0 => Sandbox::Open,
            1 => Sandbox::Expected,
            2 => Sandbox::Filter,
            _ => Sandbox::Strict,
        }
    }

    fn enter(&self, sandbox: Sandbox) -> SandboxEntry {
        let mut word = self.0.load(Ordering::SeqCst);
        loop {
            let before = Self::sandbox_of(word);
            let entries = (word - word % Self::ONE_ENTRY).wrapping_add(Self::ONE_ENTRY);
            let next = entries | sandbox.max(before) as u32;
            match self.0.compare_exchange(word, next, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return SandboxEntry { before, word: next },
                Err(other) => word = other,
            }
        }
    }

    fn leave(&self, entry: SandboxEntry) {
        let entries = entry.word - entry.word % Self::ONE_ENTRY;
        let before = entries | entry.before.max(Sandbox::Expected) as u32;
        let order = Ordering::SeqCst;
        let _ = self.0.compare_exchange(entry.word, before, order, order);
    }
}

/// The sandbox of the process.
#[inline]
pub fn sandbox() -> Sandbox {
    SANDBOX.get()
}

/// Whether the process is in a sandbox, or is about to enter one.
#[inline]
pub fn is_in_sandbox() -> bool {
    sandbox() != Sandbox::Open
}

/// Whether the process may make only the calls for memory and text, or fewer.
#[inline]
pub fn is_filtered() -> bool {
    sandbox() >= Sandbox::Filter
}

/// Notes that the process is about to enter a sandbox.
pub fn enter_sandbox(sandbox: Sandbox) -> SandboxEntry {
    if sandbox >= Sandbox::Filter && !is_filtered() {
        remember();
    }
    SANDBOX.enter(sandbox)
}

/// Notes that the kernel has refused the sandbox. The process is in the earlier sandbox again (at
/// least [`Sandbox::Expected`]), unless another entry was noted in the meantime.
pub fn leave_sandbox(entry: SandboxEntry) {
    SANDBOX.leave(entry);
}

/// The process's own memory.
pub const SYSTEM: System = System;

/// An action at the end of a thread.
#[derive(Clone, Copy)]
pub enum Exit {
    /// Abandons the thread's cache.
    Cache,
    /// Frees the thread's index.
    ThreadIndex,
    /// Notes the end in the trace.
    Trace,
    /// Detaches the mutators of collected heaps that the thread still uses.
    Mutators,
}

const EXITS: usize = 4;

/// Prefetches the cache line of any address.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub fn prefetch(at: *const u8) {
    // SAFETY: a prefetch has no visible effect at any address.
    unsafe { core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(at.cast()) };
}

/// Prefetches the cache line of any address.
#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline(always)]
pub fn prefetch(at: *const u8) {
    // SAFETY: a prefetch has no visible effect at any address.
    unsafe { core::arch::asm!("prfm pldl1keep, [{0}]", in(reg) at, options(nostack, readonly)) };
}

/// Does nothing: this processor has no known prefetch.
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
#[inline(always)]
pub fn prefetch(_at: *const u8) {}

/// Moves the bytes of a block to another block. Whole pages move ([`move_pages`]) if there are at
/// least `least` bytes, and both blocks begin at the same offset in a page. Other bytes are copied.
/// Returns the number of bytes that moved as pages. These bytes begin at the first page boundary of
/// the source, and read as zero now. `None`: the source is unchanged, and the caller must not use
/// the destination. After that, no more pages move in this process.
///
/// # Safety
///
/// Both ranges have `size` bytes, are committed, the caller's, and do not overlap. No thread uses
/// the contents at `to`.
pub unsafe fn move_bytes(from: *mut u8, to: *mut u8, size: usize, least: usize) -> Option<usize> {
    let page = kernel_page_size();
    let head = from.addr().next_multiple_of(page) - from.addr();
    let is_alike = (from.addr() ^ to.addr()).is_multiple_of(page);
    if size < least || size < head + page || !is_alike {
        // SAFETY: by the contract both ranges have `size` bytes and do not overlap.
        unsafe { core::ptr::copy_nonoverlapping(from, to, size) };
        return Some(0);
    }
    let pages = (size - head) & !(page - 1);
    // SAFETY: by the contract these are whole pages of both ranges.
    let moved = unsafe { move_pages(from.wrapping_add(head), to.wrapping_add(head), pages) }?;
    // SAFETY: these are the first bytes of both ranges, which did not move.
    unsafe { core::ptr::copy_nonoverlapping(from, to, head) };
    let behind = head + moved;
    let (from, to) = (from.wrapping_add(behind), to.wrapping_add(behind));
    // SAFETY: these are the bytes of both ranges behind the moved pages.
    unsafe { core::ptr::copy_nonoverlapping(from, to, size - behind) };
    Some(moved)
}

/// Reads a file's first bytes into `text`, as far as they fit. Returns their number; 0: the file is
/// empty, or cannot be read.
pub fn read_beginning(path: &core::ffi::CStr, text: &mut [u8]) -> usize {
    let mut length = 0;
    let mut buffer = [0; 512];
    read_file(path, &mut buffer, |bytes| {
        let room = bytes.len().min(text.len() - length);
        text[length..length + room].copy_from_slice(&bytes[..room]);
        length += room;
        room == bytes.len()
    });
    length
}

/// The memory functions of an operating system that the window uses.
pub trait Memory {
    /// Bytes in a page: the grain of commit and decommit. A power of two.
    fn page_size(&self) -> usize;

    /// Reserves `size` bytes at a multiple of `align`. Null: the system refused.
    fn reserve(&self, size: usize, align: usize) -> *mut u8;

    /// Reserves exactly `[at, at + size)`. Null: a part is in use, or the system refused.
    fn reserve_at(&self, at: usize, size: usize) -> *mut u8;

    /// Releases a reservation, or a part of it. False: nothing changed, because the system allows
    /// no more mappings.
    ///
    /// # Safety
    ///
    /// The range is reserved by the caller, and no thread uses it.
    unsafe fn release(&self, at: *mut u8, size: usize) -> bool;

    /// Makes reserved memory accessible. False: nothing changed.
    ///
    /// # Safety
    ///
    /// The range is reserved by the caller, and page aligned.
    unsafe fn commit(&self, at: *mut u8, size: usize) -> bool;

    /// Makes reserved memory readable, as zeros, without using memory. False: nothing changed.
    ///
    /// # Safety
    ///
    /// As [`Memory::commit`].
    unsafe fn expose(&self, at: *mut u8, size: usize) -> bool;

    /// Gives the pages of committed memory back to the system; the memory then reads as zero.
    /// False: the pages are unchanged (locked memory).
    ///
    /// # Safety
    ///
    /// The range is committed, page aligned, and no thread uses its contents.
    unsafe fn decommit(&self, at: *mut u8, size: usize) -> bool;

    /// Makes committed memory reserved again: inaccessible, and no longer counted by the kernel.
    /// False: nothing changed, except that the memory may read as zero.
    ///
    /// # Safety
    ///
    /// As [`Memory::decommit`].
    unsafe fn retract(&self, _at: *mut u8, _size: usize) -> bool {
        false
    }

    /// Makes committed memory read as zero: by [`Memory::decommit`], or by writing zeros.
    ///
    /// # Safety
    ///
    /// As [`Memory::decommit`].
    unsafe fn make_zero(&self, at: *mut u8, size: usize) {
        // SAFETY: this function has the contract of `decommit`.
        if !unsafe { self.decommit(at, size) } {
            // SAFETY: by the contract the memory is committed, and no thread uses it.
            unsafe { at.write_bytes(0, size) };
        }
    }

    /// The process's limit of address space in bytes; `None`: no limit is known.
    fn address_space_limit(&self) -> Option<usize>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_sandbox_leaves_the_one_that_another_thread_entered() {
        let word = SandboxWord(AtomicU32::new(0));
        let refused = word.enter(Sandbox::Strict);
        word.leave(refused);
        assert!(word.get() == Sandbox::Expected);
        // In both orders, another thread enters a sandbox while a call of this thread is refused.
        let (first, _second) = (word.enter(Sandbox::Strict), word.enter(Sandbox::Filter));
        word.leave(first);
        assert!(word.get() == Sandbox::Strict, "as strict as either");
        let _ = word.enter(Sandbox::Expected);
        let later = word.enter(Sandbox::Filter);
        word.leave(later);
        assert!(word.get() == Sandbox::Strict);
    }
}
