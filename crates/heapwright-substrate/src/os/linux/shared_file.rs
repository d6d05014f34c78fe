//! A file that processes share, mapped so that no other process can cause a fault.
//!
//! ```text
//!   memfd of a command, sealed against shrinking --path under /proc--> mapped in our reservation
//! ```
//!
//! If another process cuts a mapped file, a read raises SIGBUS. So the file must be sealed against
//! shrinking (`F_SEAL_SHRINK`), and be long enough. Called by `heapwright-stacks` and `spill`.

use core::ffi::CStr;
use core::ptr;

use super::{Memory, System, calls, keeping_errno};

/// Maps `size` bytes (whole pages) of a sealed file. Null: it is missing, too short or not sealed.
pub fn map_sealed(path: &CStr, offset: usize, size: usize) -> *mut u8 {
    keeping_errno(|| {
        let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
        let file = calls::open(path, flags, 0);
        if file < 0 {
            return ptr::null_mut();
        }
        let is_sealed = is_sealed(file, offset + size);
        let at = if is_sealed { map(file, offset, size) } else { ptr::null_mut() };
        calls::close(file);
        at
    })
}

fn is_sealed(file: i32, least: usize) -> bool {
    // SAFETY: reads flags of a descriptor.
    let seals = unsafe { libc::fcntl(file, libc::F_GET_SEALS) };
    // SAFETY: moves the offset of a descriptor of our own.
    let length = unsafe { libc::lseek(file, 0, libc::SEEK_END) };
    seals >= 0
        && seals & libc::F_SEAL_SHRINK != 0
        && usize::try_from(length).is_ok_and(|is| is >= least)
}

fn map(file: i32, offset: usize, size: usize) -> *mut u8 {
    // The range is a noted reservation, so a leak check skips it.
    let at = System.reserve(size, System.page_size());
    if at.is_null() {
        return at;
    }
    let (access, how) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED);
    // SAFETY: replaces a reservation just made, which no other thread has seen.
    let got = unsafe { libc::mmap(at.cast(), size, access, how, file, offset as i64) };
    if got.addr() == at.addr() {
        return at;
    }
    // SAFETY: just reserved, and no other thread has seen it.
    unsafe { System.release(at, size) };
    ptr::null_mut()
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::ffi::CString;

    fn memfd(size: i64, seals: i32) -> (i32, CString) {
        // SAFETY: makes a file.
        let file = unsafe { libc::memfd_create(c"test".as_ptr(), libc::MFD_ALLOW_SEALING) };
        // SAFETY: the file is the test's.
        assert!(file >= 0 && unsafe { libc::ftruncate(file, size) } == 0);
        // SAFETY: the file is the test's.
        assert_eq!(unsafe { libc::fcntl(file, libc::F_ADD_SEALS, seals) }, 0);
        (file, CString::new(std::format!("/proc/self/fd/{file}")).unwrap())
    }

    #[test]
    fn only_what_cannot_shrink_is_mapped_and_two_see_the_same() {
        let size = 4 * System.page_size();
        let (file, path) = memfd(size as i64, libc::F_SEAL_SHRINK);
        let (one, two) = (map_sealed(&path, 0, size), map_sealed(&path, 0, size));
        assert!(!one.is_null() && !two.is_null() && one != two);
        // SAFETY: mapped above.
        unsafe { one.wrapping_add(size - 1).write_volatile(7) };
        // SAFETY: mapped above.
        assert_eq!(unsafe { two.wrapping_add(size - 1).read_volatile() }, 7);
        let last = map_sealed(&path, size - System.page_size(), System.page_size());
        // SAFETY: mapped above.
        assert_eq!(unsafe { last.wrapping_add(System.page_size() - 1).read_volatile() }, 7);
        assert_eq!(super::super::is_own(one.addr()), Some(one.addr() + size));
        assert!(map_sealed(&path, size, size).is_null());
        let (open, unsealed) = memfd(size as i64, 0);
        assert!(map_sealed(&unsealed, 0, size).is_null());
        assert!(map_sealed(c"/proc/self/exe", 0, size).is_null());
        assert!(map_sealed(c"/nowhere", 0, size).is_null());
        for at in [one, two] {
            // SAFETY: mapped above; no thread uses it.
            assert!(unsafe { System.release(at, size) });
        }
        calls::close(file);
        calls::close(open);
    }
}
