//! The clock, the object, and memory that is really there.
//!
//! A virtual machine's host may have taken back the pages that the guest is not
//! using. The first touch of such a page costs many times an ordinary page
//! fault, and whoever runs first pays. So each run begins by touching more
//! memory than it will need and giving it back: the kernel then hands out pages
//! that the host has backed a moment ago.

use std::time::Instant;

/// The size of an OS page as it is counted here.
pub const PAGE: usize = 4096;

/// What the pools of small objects hold: 32 bytes, nothing to drop.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Object {
    /// Read and written by the patterns.
    pub a: u64,
    /// The rest.
    pub b: [u64; 3],
}

impl Object {
    /// One that differs from the others.
    #[inline(always)]
    pub fn new(i: u64) -> Self {
        Self { a: i, b: [i, i ^ 0xff, !i] }
    }
}

/// Touches `bytes` of fresh memory and gives them back.
pub fn warm_host(bytes: usize) {
    let (read_write, private) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at a place of the kernel's choice.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, read_write, private, -1, 0) };
    assert_ne!(at, libc::MAP_FAILED, "no memory to warm");
    for offset in (0..bytes).step_by(PAGE) {
        // SAFETY: within the mapping made above.
        unsafe { at.cast::<u8>().add(offset).write_volatile(1) };
    }
    // SAFETY: the mapping made above, which nothing else knows.
    unsafe { libc::munmap(at, bytes) };
}

/// Nanoseconds that `work` takes, for each of `count` operations.
pub fn time(count: u64, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / count as f64
}

/// Prints the result of a run.
pub fn report(ns: f64) {
    println!("figure ns {ns:.4}");
}
