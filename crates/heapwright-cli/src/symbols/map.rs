//! Maps a file into memory.
//!
//! A report needs a few pages of gigabytes of debug information, so the file is mapped, not read.
//! The mapping stays to the end of this command.
//!
//! The owner of a file may cut it while it is mapped. Then an access to a lost page raises SIGBUS,
//! and the handler ([`fill`]) maps zeros there. Any other SIGBUS ends the command.

use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A mapping of a file. Never freed.
struct Mapped {
    start: usize,
    length: usize,
    before: *const Mapped,
}

static MAPPED: AtomicPtr<Mapped> = AtomicPtr::new(ptr::null_mut());

/// Handles SIGBUS: maps zeros over the pages that a mapped file has lost.
extern "C" fn fill(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel gives the handler the signal's details.
    let info = unsafe { &*info };
    // SAFETY: a SIGBUS has an address.
    let at = unsafe { info.si_addr() }.addr();
    let mut mapped: *const Mapped = MAPPED.load(Ordering::Acquire);
    // SAFETY: the pointer is null, or an element of the list, which is never freed.
    while let Some(here) = unsafe { mapped.as_ref() } {
        let offset = at.wrapping_sub(here.start);
        if offset < here.length {
            // The file has no pages from this one to the mapping's end.
            // SAFETY: the call only reads a constant of the machine.
            let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
            let first = offset & !(page - 1);
            let (start, length) = (here.start + first, here.length - first);
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            let place = ptr::without_provenance_mut(start);
            // SAFETY: the range is in our mapping, and has no pages of the file any more.
            let filled = unsafe { libc::mmap(place, length, libc::PROT_READ, flags, -1, 0) };
            if filled != libc::MAP_FAILED {
                return;
            }
        }
        mapped = here.before;
    }
    // SAFETY: SIG_DFL is valid. The signal comes again, and ends the command.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// Maps a file. Returns its bytes, which stay valid while this command runs.
pub(crate) fn whole(file: &File) -> io::Result<&'static [u8]> {
    let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    if length == 0 {
        return Ok(&[]);
    }
    // SAFETY: a new mapping, private and only read, in a place that the kernel chooses.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ,
            libc::MAP_PRIVATE,
            file.as_raw_fd(),
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    survive_cuts(start.addr(), length);
    // SAFETY: this many bytes are mapped, readable, and never unmapped.
    Ok(unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length) })
}

fn survive_cuts(start: usize, length: usize) {
    static HANDLED: Once = Once::new();
    HANDLED.call_once(|| {
        // SAFETY: zeroed is a valid sigaction.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        action.sa_sigaction = fill as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        // SAFETY: the handler makes only system calls, and reads a list that only grows.
        unsafe { libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) };
    });
    let mapped = Box::leak(Box::new(Mapped { start, length, before: ptr::null() }));
    let mut newest = MAPPED.load(Ordering::Relaxed);
    loop {
        mapped.before = newest;
        let made = ptr::from_mut(mapped);
        match MAPPED.compare_exchange_weak(newest, made, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(other) => newest = other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_cut_reads_as_zeros() {
        let scratch = crate::statistics::Folder::quietly().expect("made");
        let path = scratch.path().join("cut");
        std::fs::write(&path, vec![7; 1 << 20]).expect("written");
        let file = File::options().read(true).write(true).open(&path).expect("there");
        let bytes = whole(&file).expect("mapped");
        file.set_len(100).expect("cut");
        assert_eq!(bytes[99], 7);
        assert_eq!((bytes[(1 << 20) - 1], bytes[1 << 19], bytes[8192]), (0, 0, 0));
    }
}
