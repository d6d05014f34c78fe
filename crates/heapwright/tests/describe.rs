//! `describe` accepts any address, and returns the block that contains it.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]

mod common;

use common::{Owned, Random, SLAB_MAX, UNIT, alone};
use heapwright::heap::{self, Heap};
use heapwright::{BlockState, Description, Kind};

fn at(address: usize) -> Description {
    heapwright::describe(std::ptr::without_provenance(address))
}

#[test]
fn every_byte_of_a_block_leads_to_it() {
    let _alone = alone();
    for size in [1, 16, 48, 100, 512, 700, 4096, 10_000, SLAB_MAX] {
        let block = Owned::malloc(size);
        let start = block.at.addr();
        for offset in 0..block.usable() {
            let found = at(start + offset);
            assert_eq!((found.kind, found.state), (Kind::Small, BlockState::InUse), "{size}");
            assert_eq!((found.block, found.offset), (start, offset), "{size}");
            assert_eq!(found.size, block.usable());
        }
        block.free();
    }
    for size in [SLAB_MAX + 1, UNIT, UNIT + 1, 50 * UNIT, 700 * UNIT] {
        let block = Owned::malloc(size);
        let start = block.at.addr();
        for offset in (0..size).step_by(4093).chain([size - 1]) {
            let found = at(start + offset);
            assert_eq!((found.kind, found.state), (Kind::Large, BlockState::InUse), "{size}");
            assert_eq!((found.block, found.offset), (start, offset), "{size}");
            assert_eq!(found.size, block.usable());
            assert!(heap::owns(block.at.wrapping_add(offset)));
        }
        block.free();
        assert_eq!(at(start).kind, Kind::Free);
        assert!(!heap::owns(std::ptr::without_provenance(start + size / 2)));
    }
}

#[test]
fn returned_blocks_are_free_and_heaps_are_told_apart() {
    let _alone = alone();
    let kept = Owned::malloc(200);
    let gone: Vec<Owned> = (0..100).map(|_| Owned::malloc(200)).collect();
    let addresses: Vec<usize> = gone.iter().map(|block| block.at.addr()).collect();
    gone.into_iter().for_each(Owned::free);
    heap::trim(0);
    for address in addresses {
        let found = at(address);
        assert_ne!(found.state, BlockState::InUse, "{found:?}");
    }
    let own = Heap::create();
    // SAFETY: the heap exists.
    let block = unsafe { Heap::alloc(own, 200, 16, false) };
    assert_ne!(at(block.addr()).owner, at(kept.at.addr()).owner);
    // SAFETY: the heap exists.
    let large = unsafe { Heap::alloc(own, 200_000, 16, false) };
    assert_eq!(at(large.addr() + 150_000).owner, at(block.addr()).owner);
    // SAFETY: no code uses the heap or its blocks afterwards.
    unsafe { Heap::destroy(own) };
    kept.free();
}

#[test]
fn what_is_not_the_heaps_is_foreign() {
    static DATA: u8 = 0;
    let local = 0u8;
    let boxed = Box::new(0u8);
    let code = what_is_not_the_heaps_is_foreign as fn();
    for address in [
        (&raw const DATA).addr(),
        (&raw const local).addr(),
        (&raw const *boxed).addr(),
        code as usize,
        0,
        1,
        usize::MAX,
        isize::MAX as usize,
        isize::MIN as usize,
    ] {
        assert_eq!(at(address).kind, Kind::Foreign, "{address:#x}");
        assert!(!heap::owns(std::ptr::without_provenance(address)));
    }
}

#[test]
fn the_rest_of_a_large_blocks_last_unit_is_no_part_of_it() {
    let _alone = alone();
    let block = Owned::malloc(68 << 10);
    let start = block.at.addr();
    let size = at(start).size;
    assert!(((68 << 10)..(128 << 10)).contains(&size), "{size}");
    assert_eq!(at(start + size - 1).offset, size - 1);
    let behind = at(start + size);
    assert_eq!((behind.kind, behind.block, behind.offset), (Kind::Large, 0, 0));
    block.free();
}

#[test]
fn no_address_faults() {
    let _alone = alone();
    let block = Owned::malloc(100);
    let start = block.at.addr();
    let mut random = Random::new(9);
    let (mut foreign, mut small, mut inside) = (0, 0, 0);
    for bits in 1..=64 {
        for _ in 0..2000 {
            let any = random.next() as usize >> (64 - bits);
            for address in [any, !any, start.wrapping_add(any), start.wrapping_sub(any)] {
                let found = at(address);
                foreign += usize::from(found.kind == Kind::Foreign);
                small += usize::from(found.kind == Kind::Small);
                inside += usize::from(found.offset > 0);
                assert!(found.block == 0 || found.block + found.offset == address);
                assert!(found.offset < found.size.max(1), "{found:?}");
                // The next block may be gone already.
                let _ = at(found.block.wrapping_add(found.size));
            }
        }
    }
    assert!(foreign > 1000 && small > 1000 && inside > 1000, "{foreign}, {small}, {inside}");
    block.free();
}
