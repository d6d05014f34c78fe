//! Warms memory up before a run.
//!
//! ```text
//! free memory of the system   |cold|cold|cold|cold|cold|cold|cold|
//! touched and given back      |cold|cold|cold|warm|warm|warm|warm|  <- next to go
//! ```
//!
//! In a virtual machine the memory that the system holds free is often not there:
//! the host takes it back after seconds (free page reporting, balloons) or has never
//! given it, and hands it out at the first touch. A page is then ten times dearer than
//! its fault, and whether a run meets such pages depends on what ran before it, and
//! when. So as much memory as the run may want is touched immediately before it, and
//! given back: what was freed last is handed out first. It is the same before every
//! run, whatever the allocator. On a machine of its own it changes little.
//!
//! Only memory that is free is touched: the files that runs read stay in the page
//! cache, which the host does not take. It is done in a process of its own, the
//! kernel's first choice if there is less memory than it seems (in a container).

use super::machine;
use std::ptr;

/// Beyond what the program itself was seen to take: what else runs and what differs.
const SPARE: u64 = 64 << 20;
/// A touch in each of these is enough: the smallest page there is.
const STEP: usize = 4096;

/// Warms up as much memory as a run takes that was seen to take `peak` bytes at most, but
/// never more than half of what is unused. A failure is not reported: the run is only the
/// colder for it.
pub(crate) fn warm(peak: u64) {
    let bytes = wanted(peak, machine::unused());
    // SAFETY: the child makes system calls and writes to memory it has just mapped,
    // nothing else.
    let child = unsafe { libc::fork() };
    if child == 0 {
        die_first();
        touch(bytes);
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: waits for the child just made, if one was.
    while child > 0 && unsafe { libc::waitpid(child, &raw mut status, 0) } < 0 {
        if std::io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return;
        }
    }
}

/// How many bytes to touch.
fn wanted(peak: u64, unused: u64) -> usize {
    let bytes = peak.saturating_add(peak / 4).saturating_add(SPARE).min(unused / 2);
    usize::try_from(bytes).unwrap_or(0)
}

/// Asks the kernel to end this process before any other if memory is short.
fn die_first() {
    // SAFETY: a constant path.
    let file = unsafe { libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY) };
    if file >= 0 {
        let most = b"1000";
        // SAFETY: the text has so many bytes.
        unsafe { libc::write(file, most.as_ptr().cast(), most.len()) };
    }
}

/// Touches so much memory and gives it back.
fn touch(bytes: usize) {
    if bytes == 0 {
        return;
    }
    // SAFETY: a new mapping, wherever the kernel likes.
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
    // SAFETY: the mapping is ours. Huge pages make it quick; it goes without them too.
    unsafe { libc::madvise(start, bytes, libc::MADV_HUGEPAGE) };
    for at in (0..bytes).step_by(STEP) {
        // SAFETY: `at` is within the mapping.
        let place = unsafe { start.cast::<u8>().add(at) };
        // SAFETY: it is writable; volatile, because nobody reads it.
        unsafe { place.write_volatile(1) };
    }
    // SAFETY: the mapping is ours, and nothing refers to it any more.
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
