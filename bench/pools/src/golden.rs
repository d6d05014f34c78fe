//! Calls for callgrind to count: the instructions of one call, with the `ret`.
//!
//! Each call is a separate function with a name that callgrind shows. Callgrind writes its counts
//! at each call of `golden_part`: a warm-up, 40 parts of 8 calls each, and one part of many calls.
//! The shortest of the 40 parts gives the cost of the fast path, the last part the mean.

use std::alloc::Layout;
use std::hint::black_box;
use std::ptr::NonNull;

/// Marks the end of a part.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn golden_part() {
    black_box(());
}

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn call_bumpalo_u32(arena: &bumpalo::Bump, value: u32) -> NonNull<u32> {
    NonNull::from(arena.alloc(value))
}

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn call_bumpalo_layout(arena: &bumpalo::Bump, size: usize, align: usize) -> NonNull<u8> {
    // SAFETY: callers pass the size and alignment of a valid layout.
    arena.alloc_layout(unsafe { Layout::from_size_align_unchecked(size, align) })
}

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn call_bump_scope_u32(arena: &bump_scope::Bump, value: u32) -> NonNull<u32> {
    crate::arenas::Arena::number(arena, value)
}

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn call_bump_scope_layout(
    arena: &bump_scope::Bump,
    size: usize,
    align: usize,
) -> NonNull<u8> {
    // SAFETY: callers pass the size and alignment of a valid layout.
    crate::arenas::Arena::piece(arena, unsafe { Layout::from_size_align_unchecked(size, align) })
}

/// Calls `eight`, which makes 8 calls of one or two functions, in parts.
pub fn parts(mut eight: impl FnMut()) {
    (0..2000).for_each(|_| eight());
    for _ in 0..40 {
        golden_part();
        eight();
    }
    golden_part();
    (0..2000).for_each(|_| eight());
    golden_part();
}

/// The sizes and alignments of pieces that the compiler does not know.
pub const PIECES: [(usize, usize); 8] =
    [(1, 1), (4, 4), (24, 8), (18, 2), (40, 8), (3, 1), (64, 16), (8, 8)];

/// Runs the two calls of an arena.
pub fn arena<A>(
    mut arena: A,
    number: impl Fn(&A, u32) -> NonNull<u32>,
    piece: impl Fn(&A, usize, usize) -> NonNull<u8>,
    reset: impl Fn(&mut A),
) {
    parts(|| {
        for i in 0..8 {
            black_box(number(black_box(&arena), i));
        }
    });
    reset(&mut arena);
    parts(|| {
        for (size, align) in PIECES {
            black_box(piece(black_box(&arena), size, align));
        }
    });
}

/// Runs all the calls.
pub fn run() -> Option<()> {
    let reset = bumpalo::Bump::reset;
    arena(
        bumpalo::Bump::new(),
        |a, n| call_bumpalo_u32(a, n),
        |a, s, b| call_bumpalo_layout(a, s, b),
        reset,
    );
    arena(
        bump_scope::Bump::new(),
        |a, n| call_bump_scope_u32(a, n),
        |a, s, b| call_bump_scope_layout(a, s, b),
        |a| a.reset(),
    );
    crate::ours::golden();
    crate::functions::golden();
    Some(())
}
