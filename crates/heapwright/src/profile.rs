//! A heap profile: what the program allocates, site by site, estimated from a sample of its blocks.
//!
//! ```text
//! begin(512 KiB) ... the program runs ... write(file) ... write(file) ... end()
//!                                            |
//!                                            v
//!              live, allocated, temporary and peak bytes of each stack, with their errors; bytes by thread
//! ```
//!
//! Samples are a Poisson process over allocated bytes: a block of `n` bytes is a *sample* with the
//! probability `1 - exp(-n / period)`, whatever was allocated before it. Its stack is kept, and its
//! free is seen, whichever thread makes it, so the estimates are of what is live now and not only
//! of what was allocated. Other blocks cost `free` some instructions (in threads that share caches,
//! `malloc`), and nothing before [`begin`] and after [`end`].
//!
//! The same without a change to the program: `heapwright profile -- PROGRAM`, or the options
//! `sample` and `profile` of the preloaded library. `heapwright report` reads what [`write()`]
//! writes.
//!
//! What is profiled are blocks of `malloc` and of first-class heaps, and the segments, chunks and
//! pages that pools, arenas and collected heaps take, each as a block of its length (`runs.rs`).
//! The idea is TCMalloc's (Google, "Sampling"); jemalloc does the same. Theirs count bytes in each
//! `malloc`; here they are counted when blocks come into a thread's lists, see `cache/sampling.rs`.

use core::ffi::c_int;

use crate::cache::draw::period;
use crate::drawn::{self, By};
use crate::heap;
use crate::options::{LEAST_SAMPLE, MOST_SAMPLE};
use crate::samples;
use crate::text::Line;

/// Takes a sample per `bytes` bytes allocated, on average, from now on, and counts allocations
/// anew.
///
/// `bytes` is clamped to 1 KiB to 1 GiB. What was sampled before and is live stays in the profile.
/// Each thread follows at its next slow operation, when its cache has no block of a size: in a
/// program that allocates, within moments.
///
/// False: this heap does not serve `malloc`'s calls in this process, because another copy of
/// heapwright does or because it runs in mode `debug`; or there is no memory.
///
/// ```
/// use heapwright::{heap, profile};
///
/// assert!(profile::begin(64 << 10));
/// let blocks: Vec<_> = (0..1000).map(|_| heap::malloc(1000)).collect();
/// assert!(profile::is_on());
/// profile::end();
/// // SAFETY: blocks of our own, each freed once.
/// blocks.into_iter().for_each(|block| unsafe { heap::free(block) });
/// ```
pub fn begin(bytes: usize) -> bool {
    heap::begin_sampling(bytes.clamp(LEAST_SAMPLE, MOST_SAMPLE), By::Program)
}

/// Makes no samples from now on. Those that are live stay in the profile until they are freed.
///
/// ```
/// heapwright::profile::end();
/// assert!(!heapwright::profile::is_on());
/// ```
pub fn end() {
    drawn::end_sampling();
}

/// Whether blocks are sampled just now.
///
/// ```
/// assert!(!heapwright::profile::is_on());
/// ```
#[must_use]
pub fn is_on() -> bool {
    period() != 0
}

/// Writes the profile, as it is now, to an open file, pipe or socket: a record for
/// `heapwright report`, complete in itself. Takes time in proportion to the number of samples;
/// other threads wait if they make or free one meanwhile.
///
/// False: it could not be written whole.
///
/// ```
/// use std::os::fd::AsRawFd;
///
/// let file = std::fs::File::create("/dev/null").unwrap();
/// assert!(heapwright::profile::write(file.as_raw_fd()));
/// ```
pub fn write(file: c_int) -> bool {
    samples::write_in(file)
}

/// The process is about to end: saves the profile in the file that the options name
/// (`profile=PREFIX`), if they do. (It is saved now and then before, for processes that are
/// killed.)
///
/// Only a C layer that sees the end calls this.
///
/// ```
/// heapwright::profile::write_at_exit();
/// ```
pub fn write_at_exit() {
    if is_wanted() && !samples::save() {
        Line::new()
            .text("cannot write the heap profile: look at the folder of option profile")
            .write();
    }
}

/// Whether the options say that the profile is to be written when the program ends.
///
/// ```
/// assert!(!heapwright::profile::is_wanted());
/// ```
#[must_use]
pub fn is_wanted() -> bool {
    crate::options::profile_file().is_some()
}

/// A library was unloaded: addresses of code mean something else from now on.
///
/// Only a C layer that interposes `dlclose` calls this.
///
/// ```
/// heapwright::profile::forget_code();
/// ```
pub fn forget_code() {
    if samples::has_begun() {
        crate::stacks::forget_code();
    }
}
