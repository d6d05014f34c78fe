//! C's allocator, and the two kinds of memory the workloads take from it.
//!
//! Everything asked of the raced allocator goes through the functions of this
//! file or through Rust's own containers, whose system allocator calls the same
//! `malloc`. Nowhere else in this crate is unsafe code.
//!
//! The compiler knows `malloc` and `free`, and may drop a pair whose block does
//! not leave the function: `black_box` shows each pointer to something that
//! might have looked.
//!
//! [`Block`] is memory of any size whose middle may stay untouched, [`Array`]
//! is a run of plain numbers that are all there.

mod array;
mod block;

pub(crate) use array::Array;
pub(crate) use block::Block;

use std::hint::black_box;
use std::ptr::NonNull;

/// The start of new memory; what is in it is not known.
fn allocate(size: usize) -> NonNull<u8> {
    // SAFETY: malloc takes any size.
    let start = unsafe { libc::malloc(size) };
    accept(start, size)
}

/// The start of new memory that is all zero.
fn allocate_zeroed(size: usize) -> NonNull<u8> {
    // SAFETY: calloc takes any size.
    let start = unsafe { libc::calloc(1, size) };
    accept(start, size)
}

/// The start of new memory at a multiple of `alignment`, a power of two, of
/// which `size` is a multiple.
fn allocate_aligned(alignment: usize, size: usize) -> NonNull<u8> {
    // SAFETY: aligned_alloc takes any two numbers and refuses wrong ones.
    let start = unsafe { libc::aligned_alloc(alignment, size) };
    accept(start, size)
}

/// Moves a block to a new size.
///
/// # Safety
/// `start` came from this file, was not released, and is not used again.
unsafe fn reallocate(start: NonNull<u8>, size: usize) -> NonNull<u8> {
    // SAFETY: the caller's promise.
    let start = unsafe { libc::realloc(start.as_ptr().cast(), size) };
    accept(start, size)
}

/// Gives a block back.
///
/// # Safety
/// `start` came from this file, was not released, and is not used again.
unsafe fn release(start: NonNull<u8>) {
    // SAFETY: the caller's promise.
    unsafe { libc::free(black_box(start).as_ptr().cast()) }
}

/// The pointer an allocator answered with. A race in which memory ran out has
/// nothing to measure: the program ends, and the race reports it as failed.
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
