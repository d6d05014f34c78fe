//! Arenas against a model, and edge cases.

extern crate std;

use core::alloc::Layout;
use core::cell::RefCell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::boxed::Box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::string::{String, ToString};
use std::vec;
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
    // Under Miri, which is a thousand times slower, blocks are smaller and fewer.
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
        // Under Miri, only the first and last bytes are checked.
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
                // Usually chooses the last block, which can grow in place.
                let which = if which % 3 == 0 { which % blocks.len() } else { blocks.len() - 1 };
                let block = blocks.remove(which);
                // SAFETY: the block is of this layout, and the new one replaces it.
                let at = unsafe { arena.resize(block.at, block.layout, size) }.unwrap();
                let layout = Layout::from_size_align(size, block.layout.align()).unwrap();
                let moved = Block { at, layout, byte: block.byte };
                moved.check(block.layout.size());
                moved.fill();
                blocks.push(moved);
                // A mark behind a moved block stays valid, but a mark inside it does not. So no
                // mark is kept.
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
    assert!(small.try_alloc([0u8; 30_000]).is_ok(), "the rest of the limit");
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

macro_rules! for_each_arena {
    ($test:ident) => {
        $test!(Arena::new());
        $test!(DropArena::new());
        $test!(SharedArena::new());
        let (mut plain, mut dropping) = (Arena::new(), DropArena::new());
        plain.scope(|scope| $test!(scope));
        dropping.scope(|scope| $test!(scope));
        assert_eq!((plain.used_bytes(), dropping.used_bytes()), (0, 0));
    };
}

#[test]
fn values_are_made_in_every_arena() {
    macro_rules! made {
        ($arena:expr) => {{
            let arena = $arena;
            let large = arena.alloc_with(|| [7u64; 600]);
            assert_eq!((*arena.alloc_with(|| 5), large[599]), (5, 7));
            assert_eq!(arena.try_alloc_with(|| "x".to_string()).unwrap(), "x");
            *arena.alloc_uninit::<u32>().write(1) += 1;
            assert_eq!(arena.alloc_uninit_slice::<u64>(30).len(), 30);
            assert_eq!(arena.alloc_slice_fill_copy(3, b'a'), b"aaa");
            assert_eq!(arena.alloc_slice_fill_default::<u32>(4), [0; 4]);
            assert_eq!(arena.alloc_slice_fill_clone(2, &"b".to_string()), ["b", "b"]);
            assert_eq!(arena.alloc_slice_clone(&["c".to_string()]), ["c"]);
            assert_eq!(arena.alloc_iter((0..100).filter(|n| n % 40 == 0)), [0, 40, 80]);
            assert_eq!(arena.alloc_iter([(); 9]).len(), 9);
            assert_eq!(arena.alloc_fmt(format_args!("{:>4}{}", 1, "é")), "   1é");
            assert_eq!(arena.alloc_fmt(format_args!("fixed")), "fixed");
            // Iterators and closures may use the same arena.
            let mut texts = Vec::new();
            let lengths = arena.alloc_iter((0..20).map(|n| {
                texts.push(arena.alloc_fmt(format_args!("{n}")));
                texts[n].len()
            }));
            assert!(texts.iter().enumerate().all(|(n, text)| **text == n.to_string()));
            assert!(lengths.iter().enumerate().all(|(n, &length)| length == 1 + n / 10));
            let outer = arena.alloc_with(|| [&*arena.alloc(1), &*arena.alloc(2)].map(|n| n + 1));
            assert_eq!(*outer, [2, 3]);
            assert_eq!(large, &[7; 600]);
            let absurd = usize::MAX / 2;
            assert!(arena.try_alloc_slice_fill_default::<u64>(absurd).is_err());
            assert!(arena.try_alloc_slice_fill_iter(core::iter::repeat_n(1u64, absurd)).is_err());
            assert!(arena.try_alloc_iter(core::iter::repeat_n(1u64, absurd)).is_err());
            assert!(arena.try_alloc_uninit_slice::<u64>(absurd).is_err());
        }};
    }
    for_each_arena!(made);
}

#[test]
fn what_fails_gives_its_room_back() {
    macro_rules! fails {
        ($arena:expr) => {{
            let arena = $arena;
            let first = arena.alloc_layout(Layout::new::<u64>()).addr().get();
            let fail = || Err::<u64, _>("no".to_string());
            assert_eq!(arena.alloc_try_with(fail), Err("no".to_string()));
            let fail_large = || Err::<[u64; 100], _>("no".to_string());
            assert!(arena.alloc_try_with(fail_large).is_err());
            let odd = |n| if n < 5 { Ok(n) } else { Err(n) };
            assert_eq!(arena.alloc_slice_try_fill_with(9, odd), Err(5));
            let next = arena.alloc_try_with(|| Ok::<_, ()>(3u64)).unwrap();
            assert_eq!((&raw const *next).addr(), first + 8, "no room is lost");
            let large = arena.alloc_try_with(|| Ok::<_, String>([4u64; 100])).unwrap();
            // The closure keeps a block behind the room.
            let mut kept = None;
            let result = arena.alloc_try_with(|| {
                kept = Some(arena.alloc(77u64));
                Err::<u64, _>(())
            });
            assert_eq!(result, Err(()));
            arena.alloc_slice_fill_copy(10, 1u64);
            assert_eq!((kept, &*large, *next), (Some(&mut 77), &[4; 100], 3));
            assert_eq!(arena.try_alloc_try_with(|| Err::<u8, _>(1)).unwrap(), Err(1));
            assert_eq!(
                arena.alloc_slice_try_fill_iter([Ok::<_, ()>(1), Ok(2)]),
                Ok(&mut [1, 2][..])
            );
        }};
    }
    for_each_arena!(fails);
}

#[test]
fn a_closure_that_panics_leaves_a_sound_arena() {
    macro_rules! panics {
        ($arena:expr) => {{
            let arena = $arena;
            let before = arena.alloc_str("before");
            let boom = |n: usize| if n == 3 { panic!("at 3") } else { n.to_string() };
            let unwinds = |run: &mut dyn FnMut()| {
                assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
                arena.alloc_slice_fill_copy(100, 1u8);
            };
            unwinds(&mut || _ = arena.alloc_with(|| boom(3)));
            unwinds(&mut || _ = arena.alloc_try_with(|| Ok::<_, ()>([boom(1), boom(3)])));
            unwinds(&mut || _ = arena.alloc_slice_fill_with(9, boom));
            unwinds(&mut || _ = arena.alloc_slice_fill_iter((0..9).map(boom)));
            unwinds(&mut || _ = arena.alloc_iter((0..9).map(boom)));
            unwinds(&mut || _ = arena.alloc_slice_try_fill_with(9, |n| Ok::<_, ()>(boom(n))));
            struct Fails;
            impl core::fmt::Display for Fails {
                fn fmt(&self, _: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                    Err(core::fmt::Error)
                }
            }
            unwinds(&mut || _ = arena.alloc_fmt(format_args!("text {Fails}")));
            assert_eq!(before, "before");
        }};
    }
    for_each_arena!(panics);
}

#[test]
fn the_wishes_of_a_server() {
    let a = Arena::new();
    a.alloc_with(|| [0u8; 64]);
    a.alloc_try_with(|| "5".parse::<i32>()).unwrap();
    a.alloc_slice_fill_copy(3, 0u8);
    a.alloc_slice_fill_default::<u32>(4);
    let _ = Arena::with_capacity(1 << 20);
    a.alloc_uninit::<u32>();
    a.alloc_fmt(format_args!("{}", 1));
    let _ = a.chunk_capacity();
    let mut d = DropArena::with_limit(1);
    d.alloc_str("x");
    assert!(d.try_alloc_slice_copy(&[1]).is_err() && d.try_alloc_str("y").is_err());
    d.reset();
    d.scope(|_| ());
    assert!(d.try_alloc_slice_fill_with(1, |_| 1u8).is_ok());
    let s = SharedArena::new();
    let _ = s.used_bytes();
    s.trim();
}

#[test]
fn limits_and_capacities() {
    // A limit is exact, even over several chunks.
    let cases = [(1, 1), (65_540, 32_768), (100_000, 3), (1 << 20, 40_000)];
    for (limit, large) in cases.into_iter().take(if cfg!(miri) { 2 } else { 4 }) {
        let mut arena = Arena::with_limit(limit);
        for _ in 0..2 {
            let mut count = 0;
            while arena.try_alloc([0u8; 1]).is_ok() {
                count += 1 + arena.try_alloc_uninit_slice::<u8>(large - 1).map_or(0, |s| s.len());
            }
            assert!(count == limit || (count < limit && large == 40_000), "{count} of {limit}");
            assert_eq!((arena.used_bytes(), arena.reserved_bytes()), (limit, limit));
            arena.reset();
        }
        arena.trim();
    }
    let arena = Arena::with_capacity(100_000);
    assert_eq!((arena.reserved_bytes(), arena.chunk_capacity()), (128 << 10, 128 << 10));
    arena.alloc_slice_fill_copy(100_000, 0u8);
    assert_eq!((arena.used_bytes(), arena.chunk_capacity()), (100_000, (128 << 10) - 100_000));
    assert_eq!((Arena::new().chunk_capacity(), Arena::with_capacity(0).reserved_bytes()), (0, 0));
    assert!(Arena::try_with_capacity(usize::MAX).is_err());
    let arena = DropArena::with_limit(64 << 10);
    assert!(arena.try_alloc_slice_fill_with(20_000, |n| n).is_err());
    assert!(arena.try_alloc_slice_fill_with(9_000, |_| Box::new(1)).is_err());
    let count = arena.try_alloc_slice_fill_with(100, Box::new).unwrap().len();
    assert!(count == 100 && arena.try_alloc_fmt(format_args!("{:65000}{0:9999}", 1)).is_err());
}

#[derive(Clone)]
struct Counted<'a>(&'a core::cell::Cell<usize>);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn a_scope_of_a_drop_arena_drops_its_values() {
    let drops = core::cell::Cell::new(0);
    let value = Counted(&drops);
    let mut arena = DropArena::new();
    arena.alloc(value.clone());
    arena.scope(|outer| {
        outer.alloc_slice_fill_clone(2, &value);
        let kept = outer.alloc_iter((0..10).map(|_| value.clone()));
        outer.scope(|inner| {
            inner.alloc_with(|| value.clone());
            inner.alloc_slice_clone(kept);
        });
        assert_eq!(drops.get(), 11, "those of the inner scope");
        let failed = catch_unwind(AssertUnwindSafe(|| {
            outer.scope(|inner| {
                inner.alloc(value.clone());
                inner.alloc_iter((0..9).map(|n| (n < 3).then(|| value.clone()).unwrap()));
            });
        }));
        assert!(failed.is_err());
        assert_eq!(drops.get(), 11 + 4, "those before the panic");
        let failed =
            outer.alloc_slice_try_fill_with(9, |n| (n < 2).then(|| value.clone()).ok_or(n));
        assert_eq!(failed.err(), Some(2));
        let failed = outer.alloc_try_with(|| Err::<Counted<'_>, _>(value.clone()));
        drop(failed);
        assert_eq!(drops.get(), 15 + 1, "the error's; elements before it end with the scope");
    });
    assert_eq!(drops.get(), 16 + 14);
    drop(arena);
    assert_eq!(drops.get(), 31);
}

#[test]
fn a_scope_of_a_drop_arena_survives_its_destructors() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("in a destructor");
        }
    }
    let drops = core::cell::Cell::new(0);
    let mut arena = DropArena::new();
    let failed = catch_unwind(AssertUnwindSafe(|| {
        arena.scope(|scope| {
            scope.alloc(Counted(&drops));
            scope.alloc(Panics);
            scope.alloc_iter([Counted(&drops), Counted(&drops)]);
        });
    }));
    assert!(failed.is_err());
    assert_eq!((drops.get(), arena.used_bytes()), (3, 0));
}

#[derive(Clone, Debug)]
enum Change {
    Push(u16),
    Pop,
    Insert(usize, u16),
    Remove(usize),
    SwapRemove(usize),
    Truncate(usize),
    Retain(u16),
    Extend(Vec<u16>),
    Reserve(usize),
    Shrink,
    /// Another block, which keeps the vector from growing in place.
    Block,
    Clone,
    Iterate(usize),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        8 => any::<u16>().prop_map(Change::Push),
        3 => Just(Change::Pop),
        3 => (any::<usize>(), any::<u16>()).prop_map(|(at, value)| Change::Insert(at, value)),
        3 => any::<usize>().prop_map(Change::Remove),
        2 => any::<usize>().prop_map(Change::SwapRemove),
        1 => any::<usize>().prop_map(Change::Truncate),
        2 => (2u16..5).prop_map(Change::Retain),
        4 => prop::collection::vec(any::<u16>(), 0..20).prop_map(Change::Extend),
        1 => (0usize..100).prop_map(Change::Reserve),
        2 => Just(Change::Shrink),
        3 => Just(Change::Block),
        1 => Just(Change::Clone),
        1 => any::<usize>().prop_map(Change::Iterate),
    ];
    prop::collection::vec(change, 1..if cfg!(miri) { 15 } else { 100 })
}

/// The elements lie on std's heap, so Miri and sanitizers see an element that is dropped twice or
/// never.
fn vectors_against_a_model(changes: Vec<Change>) {
    let arena = Arena::new();
    let mut vec: ArenaVec<'_, Box<u16>> = ArenaVec::new_in(&arena);
    let mut model: Vec<Box<u16>> = Vec::new();
    for change in changes {
        let length = model.len();
        match change {
            Change::Push(value) => {
                vec.push(Box::new(value));
                model.push(Box::new(value));
            }
            Change::Pop => assert_eq!(vec.pop(), model.pop()),
            Change::Insert(at, value) => {
                vec.insert(at % (length + 1), Box::new(value));
                model.insert(at % (length + 1), Box::new(value));
            }
            Change::Remove(at) if length > 0 => {
                assert_eq!(vec.remove(at % length), model.remove(at % length));
            }
            Change::SwapRemove(at) if length > 0 => {
                assert_eq!(vec.swap_remove(at % length), model.swap_remove(at % length));
            }
            Change::Truncate(to) if length > 0 => {
                vec.truncate(to % (2 * length));
                model.truncate(to % (2 * length));
            }
            Change::Retain(by) => {
                vec.retain(|value| **value % by > 0);
                model.retain(|value| **value % by > 0);
            }
            Change::Extend(values) => {
                vec.extend(values.iter().map(|&value| Box::new(value)));
                model.extend(values.into_iter().map(Box::new));
            }
            Change::Reserve(more) => {
                vec.reserve(more);
                assert!(vec.capacity() >= length + more);
            }
            Change::Shrink => vec.shrink_to_fit(),
            Change::Block => _ = arena.alloc(1u64),
            Change::Clone => vec = vec.clone(),
            Change::Iterate(count) => {
                let mut old = core::mem::replace(&mut vec, ArenaVec::new_in(&arena)).into_iter();
                let (front, back) = (count % 3, count % 2);
                vec.extend(old.by_ref().skip(front));
                drop(old);
                model.drain(..front.min(length));
                if back == 1 {
                    let mut old =
                        core::mem::replace(&mut vec, ArenaVec::new_in(&arena)).into_iter();
                    assert_eq!(old.next_back(), model.pop());
                    vec = ArenaVec::from_iter_in(old, &arena);
                }
            }
            _ => {}
        }
        assert_eq!(vec, model[..]);
    }
    let kept = vec.into_boxed_slice();
    assert_eq!(*kept, model[..]);
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn a_vector_keeps_to_the_model(changes in changes()) {
        vectors_against_a_model(changes);
    }
}

#[test]
fn a_vector_gives_its_last_block_back() {
    let arena = Arena::new();
    let numbers = ArenaVec::from_iter_in(0..1000, &arena);
    assert_eq!((arena.used_bytes(), numbers.capacity()), (4000, 1000));
    let first = numbers.as_ptr();
    drop(numbers);
    assert_eq!(arena.used_bytes(), 0);
    let mut numbers = ArenaVec::with_capacity_in(1000, &arena);
    numbers.extend_from_slice_copy(&[1, 2, 3]);
    numbers.extend(&[4]);
    let slice = numbers.into_slice();
    assert_eq!((slice.as_ptr(), &*slice, arena.used_bytes()), (first, &[1, 2, 3, 4][..], 16));
    let mut units = ArenaVec::new_in(&arena);
    units.resize(1000, ());
    assert_eq!((units.pop(), units.len(), arena.used_bytes()), (Some(()), 999, 16));
}

#[test]
fn a_vector_whose_elements_panic_drops_each_once() {
    struct Bomb<'a>(&'a core::cell::Cell<usize>, bool);
    impl Drop for Bomb<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
            assert!(!self.1, "a destructor that panics");
        }
    }
    let drops = core::cell::Cell::new(0);
    let arena = Arena::new();
    let four =
        |bomb: usize| ArenaVec::from_iter_in((0..4).map(|n| Bomb(&drops, n == bomb)), &arena);
    let unwinds = |run: &mut dyn FnMut()| {
        assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
        assert_eq!((drops.take(), arena.used_bytes()), (4, 0));
    };
    unwinds(&mut || drop(four(1)));
    unwinds(&mut || four(2).clear());
    unwinds(&mut || drop(four(1).into_iter().next()));
    unwinds(&mut || four(1).retain(|bomb| !bomb.1));
    unwinds(&mut || four(9).retain(|_| panic!("in the predicate")));
    let boxed = AssertUnwindSafe(four(3).into_boxed_slice());
    assert!(catch_unwind(move || drop({ boxed }.0)).is_err());
    assert_eq!(drops.get(), 4);
}

#[test]
fn boxes_and_strings_in_arenas() {
    let drops = core::cell::Cell::new(0);
    let arena = Arena::new();
    let boxed = ArenaBox::new_in(Counted(&drops), &arena);
    let inner = ArenaBox::into_inner(boxed);
    assert_eq!(drops.get(), 0);
    drop(ArenaBox::new_in(inner, &arena));
    let _ = ArenaBox::leak(ArenaBox::new_in(Counted(&drops), &arena));
    assert_eq!(drops.get(), 1);
    // A box is sent to another thread; its arena stays.
    let sent = ArenaBox::new_in("sent".to_string(), &arena);
    std::thread::scope(|scope| _ = scope.spawn(move || assert_eq!(*sent, "sent")));

    let mut text = crate::format_in!(&arena, "{}-{}", 1, "é");
    text.push_str("..");
    assert_eq!((text.pop(), text.pop(), text.pop()), (Some('.'), Some('.'), Some('é')));
    text.make_ascii_uppercase();
    text.extend(["ab", "c"]);
    text.truncate(3);
    assert_eq!(text, "1-a");
    assert!(
        catch_unwind(AssertUnwindSafe(|| {
            ArenaString::from_str_in("é", &arena).truncate(1);
        }))
        .is_err()
    );
    let mut arena = DropArena::new();
    arena.scope(|scope| {
        assert_eq!(ArenaString::from_iter_in(['x'; 100], &*scope), "x".repeat(100)[..]);
        assert_eq!(ArenaVec::from_iter_in([text.clone()], &*scope)[0], text);
    });
}

#[test]
fn coerced_boxes_own_whole_values() {
    trait Any {}
    impl<T> Any for T {}
    static DROPS: AtomicUsize = AtomicUsize::new(0);
    struct Empty;
    impl Drop for Empty {
        fn drop(&mut self) {
            DROPS.fetch_add(1, Ordering::Relaxed);
        }
    }
    // A value without bytes takes no memory; its box still has the value's own destructor.
    let arena = Arena::new();
    let empty = coerce!(ArenaBox::new_in(Empty, &arena) => dyn Any + Sync);
    assert_eq!((size_of_val(&*empty), arena.reserved_bytes()), (0, 0));
    drop(coerce!(empty => dyn Any));
    assert_eq!(DROPS.load(Ordering::Relaxed), 1);

    let drops = core::cell::Cell::new(0);
    let pair =
        coerce!(ArenaBox::new_in((Counted(&drops), Counted(&drops)), &arena) => dyn Any + '_);
    assert_eq!(size_of_val(&*pair), 2 * size_of::<Counted<'_>>());
    drop(pair);
    assert_eq!(drops.get(), 2);
    let slice = coerce!(ArenaBox::new_in([1, 2], &arena) => [u8]);
    assert_eq!(slice.iter().sum::<u8>(), 3);
    let shown = coerce!(ArenaBox::new_in(7, &arena) => dyn core::fmt::Display + Send);
    std::thread::scope(|scope| _ = scope.spawn(move || assert_eq!(shown.to_string(), "7")));
}

#[test]
fn a_shared_arena_takes_memory_back() {
    let mut arena = SharedArena::new();
    assert_eq!((arena.used_bytes(), arena.trim()), (0, 0));
    let rounds = if cfg!(miri) { 20 } else { 5_000 };
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let arena = &arena;
            scope.spawn(move || {
                for n in 0..rounds {
                    // Rows grow and are given back among rows of other threads.
                    let row = arena.alloc_iter((0..n % 30).map(|m| thread + m));
                    assert!(row.iter().zip(thread..).all(|(&value, expected)| value == expected));
                    let failed = arena.alloc_try_with(|| Err::<[u64; 9], _>(thread));
                    assert_eq!(failed, Err(thread));
                }
            });
        }
    });
    assert!(arena.used_bytes() > 0 && arena.used_bytes() <= arena.reserved_bytes());
    let large = if cfg!(miri) { 100_000 } else { 10 << 20 };
    arena.alloc_slice_fill_copy(large, 1u8);
    arena.reset();
    assert_eq!(arena.used_bytes(), 0);
    assert!(arena.trim() >= large);
    assert!(arena.reserved_bytes() <= 1 << 20);
    assert_eq!(*arena.alloc(5), 5);
}
