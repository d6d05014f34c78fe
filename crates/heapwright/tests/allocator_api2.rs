//! The `Allocator` trait in each enabled version, of `allocator-api2` and of std.
//!
//! ```text
//! cargo test -p heapwright --features allocator-api2-02,allocator-api2-03,allocator-api2-04
//! cargo +nightly test -p heapwright --features nightly
//! ```
#![cfg(any(
    feature = "allocator-api2-02",
    feature = "allocator-api2-03",
    feature = "allocator-api2-04",
    feature = "nightly"
))]
#![cfg_attr(feature = "nightly", feature(allocator_api))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]

mod common;

use std::alloc::Layout;
use std::hint::black_box;
use std::ptr::NonNull;

use common::{HAS_HEAP, SLAB_MAX, UNIT, stats};
use heapwright::arena::{Arena, SharedArena};
use heapwright::{Heapwright, heap};

fn fill(block: NonNull<[u8]>) {
    for at in 0..block.len() {
        // SAFETY: the byte is in the block, which is ours.
        unsafe { block.cast::<u8>().as_ptr().wrapping_add(at).write(at as u8 | 1) };
    }
}

fn bytes<'a>(block: NonNull<[u8]>, size: usize) -> &'a [u8] {
    // SAFETY: the block is ours, and this many bytes of it were written.
    unsafe { std::slice::from_raw_parts(block.cast().as_ptr(), size) }
}

fn is_filled(block: NonNull<[u8]>, size: usize) -> bool {
    bytes(block, size).iter().enumerate().all(|(at, &byte)| byte == at as u8 | 1)
}

macro_rules! version {
    ($name:ident, $feature:literal, $api:ident) => {
        #[cfg(feature = $feature)]
        mod $name {
            use super::*;
            use $api::alloc::Allocator;

            pub(crate) fn collections() {
                let mut numbers = $api::vec::Vec::new_in(Heapwright);
                for number in 0..100_000u64 {
                    numbers.push(number);
                }
                assert_eq!(heap::owns(numbers.as_ptr().cast()), HAS_HEAP);
                numbers.retain(|number| number % 3 == 0);
                numbers.shrink_to_fit();
                assert!(numbers.iter().enumerate().all(|(at, &number)| number == 3 * at as u64));
                let mut nothing = $api::vec::Vec::new_in(Heapwright);
                nothing.extend([(); 10]);
                assert!(nothing.len() == 10 && !heap::owns(nothing.as_ptr().cast()));
                let boxed = $api::boxed::Box::new_in([7u8; 5000], Heapwright);
                assert!(boxed.iter().all(|&byte| byte == 7));
                let zeroed = $api::vec::Vec::<u8, _>::with_capacity_in(0, Heapwright);
                assert_eq!(zeroed.capacity(), 0);
            }

            pub(crate) fn in_arenas() {
                let mut arena = Arena::new();
                methods(&arena);
                arena.reset();
                {
                    let mut numbers = $api::vec::Vec::new_in(&arena);
                    (0..100_000u64).for_each(|number| numbers.push(number));
                    let at = numbers.as_ptr();
                    assert!(numbers.iter().enumerate().all(|(n, &number)| n as u64 == number));
                    // The last block shrinks and grows in place.
                    numbers.truncate(10);
                    numbers.shrink_to_fit();
                    numbers.reserve_exact(1000);
                    assert_eq!(numbers.as_ptr(), at);
                    let other = $api::boxed::Box::new_in([1u8; 100], &arena);
                    numbers.reserve_exact(5000);
                    assert!(numbers.as_ptr() != at && numbers[9] == 9);
                    assert!(other.iter().all(|&byte| byte == 1));
                }
                arena.reset();
                arena.scope(|outer| {
                    let kept = $api::boxed::Box::new_in(5, &*outer);
                    assert_eq!(*kept, 5);
                    drop(kept);
                    outer.scope(|inner| methods(&*inner));
                });
                assert_eq!(arena.used_bytes(), 0);
                // A block that ends where the next chunk begins is not the last one.
                let first = $api::vec::Vec::<u8, _>::with_capacity_in(64 << 10, &arena);
                let next = $api::vec::Vec::<u8, _>::with_capacity_in(1000, &arena);
                drop(next);
                drop(first);
                assert!(arena.used_bytes() <= arena.reserved_bytes());
            }

            pub(crate) fn in_a_shared_arena() {
                let mut arena = SharedArena::new();
                methods(&arena);
                arena.reset();
                let filled = |from: u64| {
                    let mut numbers = $api::vec::Vec::new_in(&arena);
                    (from..from + 20_000).for_each(|number| numbers.push(number));
                    numbers
                };
                std::thread::scope(|scope| {
                    let threads: [_; 3] = [1, 2, 3].map(|from| scope.spawn(move || filled(from)));
                    for (thread, from) in threads.into_iter().zip(1u64..) {
                        let numbers = thread.join().unwrap();
                        assert!(numbers.iter().zip(from..).all(|(&number, at)| number == at));
                    }
                });
                arena.reset();
                // The last block grows in place, and its memory goes back to the arena.
                let mut numbers = $api::vec::Vec::<u64, _>::with_capacity_in(10, &arena);
                let at = numbers.as_ptr();
                numbers.reserve_exact(1000);
                assert_eq!((numbers.as_ptr(), arena.used_bytes()), (at, 8000));
                drop(numbers);
                assert_eq!(arena.used_bytes(), 0);
            }

            #[cfg(feature = "debug")]
            pub(crate) fn in_debug_heaps() {
                use heapwright::debug::{Checked, Config, DebugHeap, Guard};
                for guard in [Guard::Never, Guard::Sample, Guard::All] {
                    let config = Config { quiet: true, guard, ..Config::DEFAULT };
                    let heap = DebugHeap::new(config);
                    let checked = Checked::with(std::alloc::System, config);
                    methods(&heap);
                    methods(&checked);
                    let mut numbers = $api::vec::Vec::new_in(&heap);
                    (0..10_000u64).for_each(|number| numbers.push(number));
                    let mut others = $api::vec::Vec::new_in(&checked);
                    others.extend_from_slice(&numbers);
                    assert_eq!((heap.live().blocks, checked.live().blocks), (1, 1));
                    drop((numbers, others));
                    heap.sweep();
                    checked.sweep();
                    assert_eq!((heap.last_finding(), checked.last_finding()), (None, None));
                    assert_eq!((heap.deinit().blocks, checked.deinit().blocks), (0, 0));
                }
            }

            pub(crate) fn methods(source: impl Allocator) {
                let layout = |size, align| Layout::from_size_align(size, align).unwrap();
                let sizes = [0, 1, 16, 100, 5000, SLAB_MAX, SLAB_MAX + 1, 3 * UNIT];
                for from in sizes {
                    for to in sizes {
                        for (align, then) in [(1, 1), (16, 64), (4096, 8), (64, 64)] {
                            let (old, new) = (layout(from, align), layout(to, then));
                            let block = source.allocate(old).unwrap();
                            assert!(block.cast::<u8>().addr().get().is_multiple_of(align));
                            assert_eq!(block.len(), from);
                            fill(block);
                            let at = block.cast();
                            let resized = if to >= from {
                                // SAFETY: the block is of the old layout.
                                unsafe { source.grow_zeroed(at, old, new) }.unwrap()
                            } else {
                                // SAFETY: the block is of the old layout.
                                unsafe { source.shrink(at, old, new) }.unwrap()
                            };
                            assert!(resized.cast::<u8>().addr().get().is_multiple_of(then));
                            assert_eq!(resized.len(), to);
                            assert!(is_filled(resized, from.min(to)), "{from} to {to}");
                            if to > from {
                                assert!(bytes(resized, to)[from..].iter().all(|&byte| byte == 0));
                            }
                            // SAFETY: the block is of the new layout, and not used again.
                            unsafe { source.deallocate(resized.cast(), new) };
                        }
                    }
                    let zeroed = source.allocate_zeroed(layout(from, 32)).unwrap();
                    assert!(bytes(zeroed, from).iter().all(|&byte| byte == 0));
                    let (old, new) = (layout(from, 32), layout(from + 1000, 32));
                    // SAFETY: the block is of the old layout.
                    let grown = unsafe { source.grow(zeroed.cast(), old, new) }.unwrap();
                    assert!(bytes(grown, from).iter().all(|&byte| byte == 0));
                    // SAFETY: the block is of the new layout, and not used again.
                    unsafe { source.deallocate(grown.cast(), new) };
                }
                // The compiler knows `System`'s `malloc`: it may leave out an unused block, as if
                // it succeeded.
                assert!(black_box(source.allocate(layout(isize::MAX as usize - 64, 1))).is_err());
            }
        }
    };
}

version!(v02, "allocator-api2-02", allocator_api2_02);
version!(v03, "allocator-api2-03", allocator_api2_03);
version!(v04, "allocator-api2-04", allocator_api2_04);
version!(nightly, "nightly", std);

#[cfg(feature = "allocator-api2-02")]
fn hash_maps() {
    use std::hash::RandomState;

    let mut map: hashbrown::HashMap<u64, [u64; 3], RandomState, Heapwright> =
        hashbrown::HashMap::with_hasher_in(RandomState::new(), Heapwright);
    for key in 0..30_000 {
        map.insert(key, [key; 3]);
        if key % 2 == 0 {
            map.remove(&(key / 2));
        }
    }
    assert_eq!(map.len(), 15_000);
    map.shrink_to_fit();
    assert!(map.iter().all(|(key, value)| {
        *value == [*key; 3] && heap::owns(value.as_ptr().cast()) == HAS_HEAP
    }));
}

/// One test, because it counts the blocks of the whole process.
#[test]
fn the_allocator_trait_in_each_version() {
    #[cfg(feature = "allocator-api2-02")]
    {
        v02::collections();
        v02::methods(Heapwright);
        v02::in_arenas();
        v02::in_a_shared_arena();
        #[cfg(feature = "debug")]
        v02::in_debug_heaps();
        hash_maps();
    }
    #[cfg(feature = "allocator-api2-03")]
    {
        v03::collections();
        v03::methods(Heapwright);
        v03::in_arenas();
        v03::in_a_shared_arena();
        #[cfg(feature = "debug")]
        v03::in_debug_heaps();
    }
    #[cfg(feature = "allocator-api2-04")]
    {
        v04::collections();
        v04::methods(Heapwright);
        v04::in_arenas();
        v04::in_a_shared_arena();
        #[cfg(feature = "debug")]
        v04::in_debug_heaps();
    }
    #[cfg(feature = "nightly")]
    {
        nightly::collections();
        nightly::methods(Heapwright);
        nightly::in_arenas();
        nightly::in_a_shared_arena();
        #[cfg(feature = "debug")]
        nightly::in_debug_heaps();
    }
    assert_eq!(stats().live_blocks, 0);
}
