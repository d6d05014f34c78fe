//! Arenas against a model, and edge cases.

extern crate std;

use core::alloc::Layout;
use core::cell::RefCell;
use core::ptr::NonNull;
use std::boxed::Box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::string::ToString;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::cases::cases;
use crate::{Kind, describe};

#[derive(Clone, Debug)]
enum Step {
    Make { size: usize, shift: u32 },
    Resize { which: usize, size: usize },
    Free(usize),
    Mark,
    Rewind,
    Reset,
    Trim,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Miri is a thousand times slower: smaller and fewer blocks.
    let (large, most) = if cfg!(miri) { (70_000, 10) } else { (150_000, 80) };
    let size = prop_oneof![8 => 0usize..200, 2 => 200usize..9000, 1 => 9000usize..large];
    let step = prop_oneof![
        30 => (size.clone(), 0u32..14).prop_map(|(size, shift)| Step::Make { size, shift }),
        8 => (any::<usize>(), size).prop_map(|(which, size)| Step::Resize { which, size }),
        6 => any::<usize>().prop_map(Step::Free),
        3 => Just(Step::Mark),
        3 => Just(Step::Rewind),
        1 => Just(Step::Reset),
        1 => Just(Step::Trim),
    ];
    prop::collection::vec(step, 1..most)
}

/// A block of the model, filled with its byte.
#[derive(Clone, Copy)]
struct Block {
    at: NonNull<u8>,
    layout: Layout,
    byte: u8,
}

impl Block {
    fn fill(&self) {
        // SAFETY: the block is ours.
        unsafe { self.at.write_bytes(self.byte, self.layout.size()) };
    }

    fn check(&self, size: usize) {
        let size = self.layout.size().min(size);
        // SAFETY: the block is ours, and full.
        let bytes = unsafe { core::slice::from_raw_parts(self.at.as_ptr(), size) };
        // Under Miri the first and the last ones are enough.
        let looked_at = if cfg!(miri) { 20 } else { size };
        assert!(bytes.iter().take(looked_at).all(|&byte| byte == self.byte));
        assert!(bytes.iter().rev().take(looked_at).all(|&byte| byte == self.byte));
    }
}

fn against_a_model(steps: Vec<Step>) {
    let mut arena = Arena::new();
    let mut blocks: Vec<Block> = Vec::new();
    let mut marks = Vec::new();
    let mut byte = 0u8;
    for step in steps {
        byte = byte.wrapping_add(1);
        match step {
            Step::Make { size, shift } => {
                let layout = Layout::from_size_align(size, 1 << shift).unwrap();
                let at = arena.alloc_layout(layout);
                assert!(at.addr().get().is_multiple_of(1 << shift));
                if size > 0 {
                    assert_eq!(describe(at.as_ptr()).kind, Kind::Arena);
                }
                blocks.push(Block { at, layout, byte });
                blocks.last().unwrap().fill();
            }
            Step::Resize { which, size } if !blocks.is_empty() => {
                // Mostly the last block, which can grow in place.
                let which = if which % 3 == 0 { which % blocks.len() } else { blocks.len() - 1 };
                let block = blocks.remove(which);
                // SAFETY: the block is of this layout, and the new one replaces it.
                let at = unsafe { arena.resize(block.at, block.layout, size) }.unwrap();
                let layout = Layout::from_size_align(size, block.layout.align()).unwrap();
                let moved = Block { at, layout, byte: block.byte };
                moved.check(block.layout.size());
                moved.fill();
                blocks.push(moved);
                // A mark behind a moved block stays valid, but one inside it does not, so none is
                // kept.
                marks.clear();
            }
            Step::Free(which) if !blocks.is_empty() => {
                let block = blocks.remove(which % blocks.len());
                // SAFETY: the block is ours and no longer in the model.
                unsafe { arena.free(block.at, block.layout.size()) };
                marks.clear();
            }
            Step::Mark => marks.push((arena.mark(), blocks.len())),
            Step::Rewind => {
                if let Some((mark, count)) = marks.pop() {
                    blocks.truncate(count);
                    // SAFETY: blocks made since the mark are no longer in the model.
                    unsafe { arena.rewind(mark) };
                }
            }
            Step::Reset => {
                let before = arena.reserved_bytes();
                arena.reset();
                blocks.clear();
                marks.clear();
                assert_eq!((arena.used_bytes(), arena.reserved_bytes()), (0, before));
            }
            Step::Trim => {
                arena.trim();
                assert!(arena.reserved_bytes() >= arena.used_bytes());
            }
            Step::Resize { .. } | Step::Free(_) => {}
        }
        for block in &blocks {
            block.check(usize::MAX);
        }
    }
    let mut ranges: Vec<_> =
        blocks.iter().map(|b| (b.at.addr().get(), b.layout.size())).filter(|b| b.1 > 0).collect();
    ranges.sort_unstable();
    assert!(ranges.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn an_arena_keeps_to_the_model(steps in steps()) {
        against_a_model(steps);
    }
}

#[test]
fn scopes_give_back_exactly_what_they_took() {
    let mut arena = Arena::new();
    arena.scope(|outer| {
        let kept = outer.alloc_slice_fill_with(1000, |n| n);
        let mut seen = 0;
        for round in 0..10 {
            outer.scope(|inner| {
                let first = inner.alloc(round);
                let address = (&raw const *first).addr();
                assert!(seen == 0 || seen == address, "each round begins at the same place");
                seen = address;
                let _ = inner.alloc_layout(Layout::new::<[u8; 100_000]>());
                inner.scope(|innermost| *innermost.alloc(3));
            });
        }
        assert!(kept.iter().enumerate().all(|(n, &kept)| n == kept));
    });
    assert_eq!(arena.used_bytes(), 0);
}

#[test]
fn a_scope_that_panics_gives_back_too() {
    let mut arena = Arena::new();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        arena.scope(|scope| {
            scope.alloc([1u64; 100]);
            panic!("in a scope");
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(arena.used_bytes(), 0);
}

#[test]
fn a_reset_keeps_all_chunks_and_uses_them_again() {
    let mut arena = Arena::new();
    let fill = |arena: &Arena| {
        (0..100).for_each(|_| _ = arena.alloc_layout(Layout::new::<[u32; 5000]>()));
    };
    fill(&arena);
    let before = arena.reserved_bytes();
    for _ in 0..10 {
        arena.reset();
        fill(&arena);
        assert_eq!(arena.reserved_bytes(), before, "no chunk is made, none is lost");
    }
}

#[test]
fn one_large_request_changes_no_later_chunk() {
    let arena = Arena::new();
    let large = if cfg!(miri) { 1 << 20 } else { 100 << 20 };
    arena.alloc(1u8);
    let _ = arena.alloc_layout(Layout::from_size_align(large, 1).unwrap());
    arena.alloc_layout(Layout::from_size_align(60_000, 1).unwrap());
    assert!(arena.reserved_bytes() <= large + (512 << 10));
}

#[test]
fn the_last_block_grows_and_shrinks_where_it_is() {
    let arena = Arena::new();
    let layout = |size| Layout::from_size_align(size, 8).unwrap();
    let first = arena.alloc_layout(layout(64));
    // SAFETY: the block is of the layout, and the new one replaces it.
    assert_eq!(unsafe { arena.resize(first, layout(64), 4096) }, Some(first));
    // SAFETY: the block is of the layout, and the new one replaces it.
    assert_eq!(unsafe { arena.resize(first, layout(4096), 16) }, Some(first));
    let second = arena.alloc_layout(layout(8));
    assert_eq!(second.addr().get() - first.addr().get(), 16);
    // SAFETY: the block has 16 bytes now, and the new one replaces it.
    let moved = unsafe { arena.resize(first, layout(16), 32) }.unwrap();
    assert_ne!(moved, first, "another block is in the way");
    // SAFETY: the block has 32 bytes, and a failed request leaves it unchanged.
    assert_eq!(unsafe { arena.resize(moved, layout(32), isize::MAX as usize) }, None);
    // SAFETY: the block is not used any more.
    unsafe { arena.free(moved, 32) };
    assert_eq!(arena.alloc_layout(layout(8)), moved, "the last block's memory is used again");
}

#[test]
fn nothing_takes_no_memory() {
    let arena = Arena::new();
    arena.alloc(());
    arena.alloc_str("");
    arena.alloc_slice_copy::<u64>(&[]);
    let aligned = arena.alloc_layout(Layout::from_size_align(0, 4096).unwrap());
    assert!(aligned.addr().get().is_multiple_of(4096));
    assert_eq!(arena.reserved_bytes(), 0);
    arena.alloc(1u8);
    assert!(arena.alloc_layout(Layout::from_size_align(0, 1 << 20).unwrap()).addr().get() > 0);
}

#[test]
fn sizes_that_cannot_be_had_are_refused() {
    let arena = Arena::new();
    let absurd = Layout::from_size_align(isize::MAX as usize & !63, 64).unwrap();
    assert!(arena.try_alloc_layout(absurd).is_err());
    assert!(arena.try_alloc_slice_fill_with(usize::MAX, |_| 1u64).is_err());
    assert_eq!(*arena.alloc(5), 5, "and all is as before");
    let small = Arena::with_limit(100_000);
    assert!(small.try_alloc([0u8; 50_000]).is_ok());
    assert!(small.try_alloc([0u8; 50_000]).is_err());
    assert_eq!(small.reserved_bytes(), 64 << 10);
    let none = Arena::with_limit(0);
    assert_eq!(none.try_alloc(7).unwrap_err().0, 7);
}

#[test]
fn slices_and_strings_are_copies() {
    let arena = Arena::new();
    let text = arena.alloc_str("copied");
    text.make_ascii_uppercase();
    assert_eq!(text, "COPIED");
    assert_eq!(arena.alloc_slice_copy(&[1, 2, 3]), [1, 2, 3]);
    let strings = arena.alloc_slice_clone(&["a".to_string(), "b".to_string()]);
    assert_eq!(strings, ["a", "b"]);
    // An arena does not drop its values.
    strings.iter_mut().for_each(|string| drop(core::mem::take(string)));
    assert_eq!(arena.alloc_slice_fill_iter([4, 5]), [4, 5]);
    struct Lies;
    impl Iterator for Lies {
        type Item = u8;
        fn next(&mut self) -> Option<u8> {
            None
        }
        fn size_hint(&self) -> (usize, Option<usize>) {
            (9, Some(9))
        }
    }
    impl ExactSizeIterator for Lies {}
    assert_eq!(arena.alloc_slice_fill_iter(Lies), []);
}

#[test]
fn a_drop_arena_drops_the_last_made_first() {
    struct Named<'a>(&'a RefCell<Vec<u32>>, u32);
    impl Drop for Named<'_> {
        fn drop(&mut self) {
            self.0.borrow_mut().push(self.1);
            assert!(self.1 != 13, "a destructor that panics");
        }
    }
    let dropped = RefCell::new(Vec::new());
    let mut arena = DropArena::new();
    arena.alloc(Named(&dropped, 1));
    arena.alloc(77u64);
    arena.alloc_slice_fill_iter([Named(&dropped, 2), Named(&dropped, 3)]);
    arena.alloc(Named(&dropped, 4)).1 = 5;
    arena.reset();
    assert_eq!(dropped.take(), [5, 2, 3, 1]);
    assert_eq!(arena.used_bytes(), 0);
    for n in [11, 12, 13, 14] {
        arena.alloc(Named(&dropped, n));
    }
    assert!(catch_unwind(AssertUnwindSafe(|| arena.reset())).is_err());
    assert_eq!(dropped.take(), [14, 13, 12, 11], "the others are dropped all the same");
    arena.alloc(Named(&dropped, 6));
    drop(arena);
    assert_eq!(dropped.take(), [6]);
}

#[test]
fn threads_share_an_arena() {
    let count = if cfg!(miri) { 50 } else { 20_000 };
    let mut arena = SharedArena::new();
    for _ in 0..2 {
        let mut made: Vec<(usize, usize)> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4u64)
                .map(|thread| {
                    let arena = &arena;
                    scope.spawn(move || {
                        let make =
                            |n: usize| arena.alloc_slice_fill_with(1 + n % 50, |_| thread + 1);
                        let mine: Vec<&mut [u64]> = (0..count).map(make).collect();
                        assert!(mine.iter().all(|s| s.iter().all(|&n| n == thread + 1)));
                        mine.into_iter().map(|s| (s.as_ptr().addr(), size_of_val(s))).collect()
                    })
                })
                .collect();
            let results: Vec<Vec<_>> = threads.into_iter().map(|t| t.join().unwrap()).collect();
            results.concat()
        });
        made.sort_unstable();
        assert!(made.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
        let before = arena.reserved_bytes();
        arena.reset();
        assert_eq!(arena.reserved_bytes(), before);
    }
    assert!(SharedArena::with_limit(0).try_alloc(Box::new(1)).is_err());
}
