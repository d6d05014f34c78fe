//! Thread tag: a mark that threads inherit from their creator. This file also finds the places of
//! pointers outside the heap: modules' data and thread-local variables.
//!
//! The mark is the thread's timer slack (by default 50 us), the only inherited attribute that can
//! be any number. A few more microseconds of slack do no harm.

use core::ffi::{c_int, c_void};
use core::ptr;

use super::keeping_errno;

/// The calling thread's mark: the last one that it set, or its creator's mark when it started.
pub fn mark() -> u64 {
    let none = ptr::null_mut::<c_void>();
    // SAFETY: the call only reads.
    let slack = keeping_errno(|| unsafe { libc::prctl(libc::PR_GET_TIMERSLACK, none) });
    u64::try_from(slack).unwrap_or(0)
}

/// Marks the calling thread, and the threads that it starts from now on. `mark` must not be 0.
pub fn set_mark(mark: u64) {
    // SAFETY: the call changes a number of this thread's.
    keeping_errno(|| unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, mark) });
}

/// Whether a thread of this process exists.
pub fn is_running(thread: u32) -> bool {
    let process = super::process_id() as c_int;
    // SAFETY: signal 0 is not sent.
    keeping_errno(|| unsafe { libc::syscall(libc::SYS_tgkill, process, thread as c_int, 0) == 0 })
}

/// Sleeps for at most a millisecond.
pub fn nap() {
    keeping_errno(|| super::calls::sleep_ns(1_000_000));
}

/// Calls `visit` with the bounds of every module's data. Takes the loader's lock.
pub fn each_data_segment(visit: &mut dyn FnMut(usize, usize)) {
    unsafe extern "C" fn module(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        visit: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader's description of a module, valid during the call.
        let info = unsafe { &*info };
        // SAFETY: the pointer that is passed below.
        let visit = unsafe { &mut *visit.cast::<&mut dyn FnMut(usize, usize)>() };
        for number in 0..usize::from(info.dlpi_phnum) {
            // SAFETY: the module has this number of headers.
            let header = unsafe { &*info.dlpi_phdr.wrapping_add(number) };
            if header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W != 0 {
                let start = (info.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
                visit(start, start + header.p_memsz as usize);
            }
        }
        0
    }
    let mut visit = visit;
    let argument = (&raw mut visit).cast();
    // SAFETY: `module` takes this argument, which is valid for the call.
    keeping_errno(|| unsafe { libc::dl_iterate_phdr(Some(module), argument) });
}

/// The numbers of bytes of static thread-local variables below and above the thread pointer. This
/// takes the loader's lock, and measures in the calling thread.
pub fn thread_local_bytes() -> (usize, usize) {
    unsafe extern "C" fn module(
        info: *mut libc::dl_phdr_info,
        size: usize,
        extent: *mut c_void,
    ) -> c_int {
        /// A block that is further away was allocated later, outside the static block.
        const FAR: usize = 1 << 20;
        if size < size_of::<libc::dl_phdr_info>() {
            return 0;
        }
        // SAFETY: the loader's description of a module, valid during the call.
        let info = unsafe { &*info };
        // SAFETY: the pointer that is passed below.
        let (below, above) = unsafe { &mut *extent.cast::<(usize, usize)>() };
        let data = info.dlpi_tls_data.addr();
        for number in 0..usize::from(info.dlpi_phnum) {
            // SAFETY: the module has this number of headers.
            let header = unsafe { &*info.dlpi_phdr.wrapping_add(number) };
            let pointer = super::thread_pointer();
            if header.p_type == libc::PT_TLS && data != 0 && data.abs_diff(pointer) < FAR {
                *below = (*below).max(pointer.saturating_sub(data));
                *above = (*above).max((data + header.p_memsz as usize).saturating_sub(pointer));
            }
        }
        0
    }
    let mut extent = (0, 0);
    let argument = (&raw mut extent).cast();
    // SAFETY: `module` takes this argument, which is valid for the call.
    keeping_errno(|| unsafe { libc::dl_iterate_phdr(Some(module), argument) });
    extent
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;

    #[test]
    fn a_thread_has_its_creators_mark() {
        std::thread::spawn(|| {
            let before = mark();
            set_mark(before + 77);
            assert_eq!(mark(), before + 77);
            assert_eq!(std::thread::spawn(mark).join().unwrap(), before + 77);
            set_mark(before);
            assert_eq!(std::thread::spawn(mark).join().unwrap(), before);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn data_is_in_a_segment_and_threads_run() {
        static DATA: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(7);
        let here = ptr::from_ref(&DATA).addr();
        let mut found = 0;
        each_data_segment(&mut |from, to| found += usize::from((from..to).contains(&here)));
        assert_eq!(found, 1);
        assert!(is_running(super::super::thread_id()) && !is_running(1 << 30));
    }
}
