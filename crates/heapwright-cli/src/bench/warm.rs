//! Warms memory up before a run.
//!
//! ```text
//! free memory of the system   |cold|cold|cold|cold|cold|cold|cold|
//! touched and given back      |cold|cold|cold|warm|warm|warm|warm|  <- next to go
//! ```
//!
//! In a virtual machine free memory often has no pages of the host behind it: the host has taken
//! them back (free page reporting, balloons) or has never given them. The first touch of such a
//! page costs ten times a page fault, and the previous run decides how many of them a run meets.
//! So, immediately before each run, this module touches as much memory as the run may need, and
//! frees it. The kernel hands out the last freed pages first.
//!
//! Only free memory is touched, so the files that runs read stay in the page cache. A child process
//! touches it: if a container has less memory than it seems, the kernel ends this child first.

use super::machine;
use std::ptr;

/// More bytes than the peak, for other processes and for differences between runs.
const SPARE: u64 = 64 << 20;
/// The smallest page. One touch in each page is enough.
const STEP: usize = 4096;

/// Warms up memory for a run whose peak was `peak` bytes, but at most half of the free memory. If
/// that fails, the run only starts with colder memory.
pub(crate) fn warm(peak: u64) {
    let bytes = wanted(peak, machine::unused());
    // SAFETY: the child only makes system calls and writes to memory that it has just mapped.
    let child = unsafe { libc::fork() };
    if child == 0 {
        die_first();
        touch(bytes);
        // SAFETY: the call ends the child at once.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: the call waits for the child just made, and writes `status`.
    while child > 0 && unsafe { libc::waitpid(child, &raw mut status, 0) } < 0 {
        if std::io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return;
        }
    }
}

fn wanted(peak: u64, unused: u64) -> usize {
    let bytes = peak.saturating_add(peak / 4).saturating_add(SPARE).min(unused / 2);
    usize::try_from(bytes).unwrap_or(0)
}

/// Asks the kernel to end this process first if memory is short.
fn die_first() {
    // SAFETY: the path is a constant string.
    let file = unsafe { libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY) };
    if file >= 0 {
        let most = b"1000";
        // SAFETY: the text has `most.len()` bytes.
        unsafe { libc::write(file, most.as_ptr().cast(), most.len()) };
    }
}

fn touch(bytes: usize) {
    if bytes == 0 {
        return;
    }
    // SAFETY: a new mapping replaces nothing.
    let start = unsafe {
        libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return;
    }
    // SAFETY: the mapping is this function's. Huge pages are quicker; a failure does not matter.
    unsafe { libc::madvise(start, bytes, libc::MADV_HUGEPAGE) };
    for at in (0..bytes).step_by(STEP) {
        // SAFETY: `at` is within the mapping.
        let place = unsafe { start.cast::<u8>().add(at) };
        // SAFETY: the byte is writable. The write is volatile because nothing reads it.
        unsafe { place.write_volatile(1) };
    }
    // SAFETY: the mapping is this function's, and nothing refers to it any more.
    unsafe { libc::munmap(start, bytes) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_more_than_the_peak_is_wanted_and_half_of_the_memory_at_most() {
        assert_eq!(wanted(64 << 20, u64::MAX), 144 << 20);
        assert_eq!(wanted(64 << 20, 100 << 20), 50 << 20);
        assert_eq!(wanted(u64::MAX, 8192), 4096);
        assert_eq!(wanted(1 << 30, 0), 0);
    }

    #[test]
    fn what_is_touched_is_given_back() {
        let resident = || {
            let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
            text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok())
        };
        let before = resident();
        touch(256 << 20);
        let more = resident().zip(before).map(|(after, before)| after.saturating_sub(before));
        assert!(more.is_none_or(|pages| pages < (64 << 20) / 4096), "{more:?} pages stay");
    }
}
