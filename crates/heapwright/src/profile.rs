//! The heap profile: the program's allocations by site, estimated from a sample of its blocks.
//!
//! ```text
//! begin(512 KiB) ... the program runs ... write(file) ... write(file) ... end()
//!                                            |
//!                                            v
//!     live, allocated, temporary and peak bytes of each stack, with errors; bytes by thread
//! ```
//!
//! Samples are a Poisson process over allocated bytes. A block of `n` bytes is a *sample* with
//! probability `1 - exp(-n / period)`, independent of earlier blocks. A sample's stack is kept, and
//! its free is noticed in any thread. Between [`begin`] and [`end`], `free` of other blocks takes
//! some more instructions, as does `malloc` in threads that share caches.
//!
//! `heapwright profile -- PROGRAM`, or the options `sample` and `profile` of the preloaded library,
//! need no change to the program. The profile covers blocks of `malloc` and first-class heaps. It
//! also covers segments of pools, chunks of arenas and pages of collected heaps, each as a block of
//! its length (`runs.rs`). With `mode=hardened`, `malloc` is not sampled. The idea is TCMalloc's
//! (Google, "Sampling"), and jemalloc has it, too. heapwright counts blocks when a thread's lists
//! are filled (`cache/sampling.rs`).

use core::ffi::c_int;

use crate::cache::draw::period;
use crate::drawn::{self, By};
use crate::heap;
use crate::options::{LEAST_SAMPLE, MOST_SAMPLE};
use crate::samples;
use crate::text::Line;

/// Starts to take a sample for each `bytes` bytes allocated, on average, and resets the counts.
///
/// `bytes` is clamped to 1 KiB to 1 GiB. Earlier samples that are live stay in the profile. Each
/// thread follows at its next slow path, soon in a program that allocates.
///
/// Returns false if there is no memory, if another copy of heapwright serves `malloc` in this
/// process, or if the mode is `debug`.
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

/// Stops sampling. Live samples stay in the profile until they are freed.
///
/// ```
/// heapwright::profile::end();
/// assert!(!heapwright::profile::is_on());
/// ```
pub fn end() {
    drawn::end_sampling();
}

/// Returns whether blocks are sampled now.
///
/// ```
/// assert!(!heapwright::profile::is_on());
/// ```
#[must_use]
pub fn is_on() -> bool {
    period() != 0
}

/// Writes the present profile to an open file, pipe or socket, as a complete record for `heapwright
/// report`. Returns false if the record was not written whole. Takes time in proportion to the
/// samples; other threads that make or free a sample wait.
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

/// Saves the profile before the process ends, if the options name a file (`profile=PREFIX`). It is
/// also saved now and then. Only a C layer that sees the end calls this.
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

/// Returns whether the options ask for a profile at the program's end.
///
/// ```
/// assert!(!heapwright::profile::is_wanted());
/// ```
#[must_use]
pub fn is_wanted() -> bool {
    crate::options::profile_file().is_some()
}

/// Forgets the code of a library that was unloaded, for a C layer that interposes `dlclose`.
///
/// ```
/// heapwright::profile::forget_code();
/// ```
pub fn forget_code() {
    if samples::has_begun() {
        crate::stacks::forget_code();
    }
}
