//! Arenas: the cost of the next piece.
//!
//! `u32`: a thousand `u32`s, then a reset, over and over. `layout`: the same with pieces whose
//! layout the compiler does not know. Each arena has grown before the clock starts.

use std::alloc::Layout;
use std::hint::black_box;
use std::ptr::NonNull;

use bump_scope::traits::BumpAllocatorTyped as _;

use crate::measure::{report, time, warm_host};

const PIECES: usize = 1000;

/// An arena. Pieces are distinguished by their addresses alone.
pub trait Arena {
    /// Makes room for a number, and stores the number.
    fn number(&self, value: u32) -> NonNull<u32>;

    /// Makes room for a layout that is known only at run time.
    fn piece(&self, layout: Layout) -> NonNull<u8>;

    /// Takes back all pieces.
    fn reset(&mut self);
}

impl Arena for bumpalo::Bump {
    #[inline(always)]
    fn number(&self, value: u32) -> NonNull<u32> {
        NonNull::from(self.alloc(value))
    }

    #[inline(always)]
    fn piece(&self, layout: Layout) -> NonNull<u8> {
        self.alloc_layout(layout)
    }

    fn reset(&mut self) {
        self.reset();
    }
}

impl Arena for bump_scope::Bump {
    #[inline(always)]
    fn number(&self, value: u32) -> NonNull<u32> {
        NonNull::from(bump_scope::BumpBox::leak(self.alloc(value)))
    }

    #[inline(always)]
    fn piece(&self, layout: Layout) -> NonNull<u8> {
        self.allocate_layout(layout)
    }

    fn reset(&mut self) {
        self.reset();
    }
}

/// Measures one of the patterns.
pub fn measure(mut arena: impl Arena, shape: &str, count: usize) -> Option<()> {
    let layouts = [
        Layout::new::<u8>(),
        Layout::new::<u32>(),
        Layout::new::<[u64; 3]>(),
        Layout::new::<[u16; 9]>(),
    ];
    let mut go = |count: usize| {
        for _ in 0..count.div_ceil(PIECES) {
            match shape {
                "u32" => {
                    for i in 0..PIECES as u32 {
                        black_box(arena.number(i));
                    }
                }
                _ => {
                    for i in 0..PIECES {
                        black_box(arena.piece(black_box(layouts[i % layouts.len()])));
                    }
                }
            }
            arena.reset();
        }
    };
    if !["u32", "layout"].contains(&shape) {
        return None;
    }
    go(count / 10);
    report(time(count as u64, || go(count)));
    Some(())
}

/// Runs `NAME u32|layout COUNT`.
pub fn run(words: &[&str]) -> Option<()> {
    let [name, shape, count] = *words else { return None };
    let count = count.parse().ok()?;
    warm_host(1 << 20);
    match name {
        "bumpalo" => measure(bumpalo::Bump::new(), shape, count),
        "bump-scope" => measure(bump_scope::Bump::new(), shape, count),
        _ => crate::ours::arena(name, shape, count),
    }
}
