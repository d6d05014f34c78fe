//! The clock, the object, and warm memory.
//!
//! A virtual machine's host may have taken back the guest's unused pages, and the first touch of
//! such a page costs many times an ordinary page fault. So each run first touches more memory than
//! it needs and frees it.

use std::time::Instant;

/// The assumed size of an OS page.
pub const PAGE: usize = 4096;

/// The object in the pools of small objects: 32 bytes, without a destructor.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Object {
    /// Read and written by the patterns.
    pub a: u64,
    /// The rest of the object.
    pub b: [u64; 3],
}

impl Object {
    /// Makes an object that differs from the others.
    #[inline(always)]
    pub fn new(i: u64) -> Self {
        Self { a: i, b: [i, i ^ 0xff, !i] }
    }
}

/// Touches `bytes` of fresh memory and frees them.
pub fn warm_host(bytes: usize) {
    let (read_write, private) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address that the kernel chooses.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, read_write, private, -1, 0) };
    assert_ne!(at, libc::MAP_FAILED, "no memory to warm");
    for offset in (0..bytes).step_by(PAGE) {
        // SAFETY: within the mapping made above.
        unsafe { at.cast::<u8>().add(offset).write_volatile(1) };
    }
    // SAFETY: the mapping made above, to which no other code has a pointer.
    unsafe { libc::munmap(at, bytes) };
}

/// Returns the nanoseconds of `work` for each of `count` operations.
pub fn time(count: u64, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / count as f64
}

/// Prints the result of a run.
pub fn report(ns: f64) {
    println!("figure ns {ns:.4}");
}
