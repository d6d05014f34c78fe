//! The writer of a run's spill: shared memory for entries that no file takes.
//!
//! `heapwright_record::spill` has the layout. The memory is mapped at the process's start, and is
//! the same after `fork`, `setuid`, `chroot` and in a sandbox. A write needs no system call and no
//! lock, so a child of `vfork` may write, too. Under a limit of address space there is no spill.
//! Called by `recorder` and by `debug::process`.

use core::ffi::CStr;
use core::ptr;

use heapwright_record::spill::{BLOCK, BLOCKS, BYTES, Kind, OFFSET, ROOM, word};

use crate::os::{self, Memory, System};
use crate::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

static PLACE: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());

/// Uses the spill in a run's shared file from now on, if the file has one.
pub(crate) fn share(path: &CStr) {
    if System.address_space_limit().is_none() {
        PLACE.store(os::map_sealed(path, OFFSET, BYTES), Ordering::Release);
    }
}

fn head(place: *mut u8, block: u64) -> &'static AtomicU64 {
    let head = place.wrapping_add(block as usize * BLOCK).cast::<AtomicU64>();
    // SAFETY: the block lies in the mapping, which stays for good. It begins with a word that all
    // processes use as an atomic.
    unsafe { &*head }
}

/// Adds bytes of a process's record. Returns false without a spill, or without room in it.
pub(crate) fn append(process: u32, bytes: &[u8], kind: Kind) -> bool {
    let place = PLACE.load(Ordering::Acquire);
    if place.is_null() {
        return false;
    }
    let blocks = bytes.len().div_ceil(ROOM) as u64;
    let used = head(place, 0).fetch_add(blocks, Ordering::Relaxed);
    if used.saturating_add(blocks) > BLOCKS {
        return false;
    }
    for (block, bytes) in (used + 1..).zip(bytes.chunks(ROOM)) {
        let head = head(place, block);
        let to = ptr::from_ref(head).cast::<u8>().cast_mut().wrapping_add(size_of::<u64>());
        // SAFETY: the addition gave this block to this call, and the block has room for the bytes.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        head.store(word(process, bytes.len(), kind), Ordering::Release);
    }
    true
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;
    use heapwright_record::spill::blocks;
    extern crate std;

    #[test]
    fn what_processes_append_is_read_in_order() {
        // SAFETY: makes a file.
        let file = unsafe { libc::memfd_create(c"test".as_ptr(), libc::MFD_ALLOW_SEALING) };
        // SAFETY: the file is the test's.
        assert_eq!(unsafe { libc::ftruncate(file, (OFFSET + BYTES) as i64) }, 0);
        // SAFETY: the file is the test's.
        assert_eq!(unsafe { libc::fcntl(file, libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) }, 0);
        assert!(!append(1, b"x", Kind::Next));
        let path = std::format!("/proc/self/fd/{file}\0");
        share(CStr::from_bytes_with_nul(path.as_bytes()).unwrap());
        assert!(append(1, b"one", Kind::Next) && append(2, &[7; 3000], Kind::Again));
        // SAFETY: the mapping stays, and no thread writes to it now.
        let spill = unsafe { core::slice::from_raw_parts(PLACE.load(Ordering::Relaxed), BYTES) };
        let lengths: std::vec::Vec<_> = blocks(spill).map(|(p, k, b)| (p, k, b.len())).collect();
        let again = |bytes| (2, Kind::Again, bytes);
        assert_eq!(lengths, [(1, Kind::Next, 3), again(ROOM), again(ROOM), again(3000 - 2 * ROOM)]);
        head(PLACE.load(Ordering::Relaxed), 0).store(BLOCKS, Ordering::Relaxed);
        assert!(!append(1, b"x", Kind::Next));
    }
}
