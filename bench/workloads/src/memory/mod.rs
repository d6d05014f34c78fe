//! C's allocator, and the two kinds of memory that workloads take from it.
//!
//! All requests to the raced allocator go through this file or through Rust's containers, whose
//! system allocator calls the same `malloc`. `black_box` keeps the compiler from removing a pair of
//! `malloc` and `free` whose block stays in the function.
//!
//! [`Block`] is memory of any size whose middle may stay untouched; [`Array`] is a sequence of
//! initialised numbers.

mod array;
mod block;

pub(crate) use array::Array;
pub(crate) use block::Block;

use std::hint::black_box;
use std::ptr::NonNull;

fn allocate(size: usize) -> NonNull<u8> {
    // SAFETY: malloc takes any size.
    let start = unsafe { libc::malloc(size) };
    accept(start, size)
}

fn allocate_zeroed(size: usize) -> NonNull<u8> {
    // SAFETY: calloc takes any size.
    let start = unsafe { libc::calloc(1, size) };
    accept(start, size)
}

/// `alignment` is a power of two that divides `size`.
fn allocate_aligned(alignment: usize, size: usize) -> NonNull<u8> {
    // SAFETY: aligned_alloc accepts any two numbers, and returns null for wrong ones.
    let start = unsafe { libc::aligned_alloc(alignment, size) };
    accept(start, size)
}

/// # Safety
/// `start` came from this file, was not released, and is not used again.
unsafe fn reallocate(start: NonNull<u8>, size: usize) -> NonNull<u8> {
    // SAFETY: the caller promises that `start` is a live block of this file.
    let start = unsafe { libc::realloc(start.as_ptr().cast(), size) };
    accept(start, size)
}

/// # Safety
/// `start` came from this file, was not released, and is not used again.
unsafe fn release(start: NonNull<u8>) {
    // SAFETY: the caller promises that `start` is a live block of this file.
    unsafe { libc::free(black_box(start).as_ptr().cast()) }
}

/// Without memory the race has nothing to measure: the program ends.
fn accept(start: *mut libc::c_void, size: usize) -> NonNull<u8> {
    match NonNull::new(black_box(start).cast()) {
        Some(start) => start,
        None => out_of_memory(size),
    }
}

#[cold]
fn out_of_memory(size: usize) -> ! {
    eprintln!("workload: the allocator refused {size} bytes");
    std::process::exit(1)
}
