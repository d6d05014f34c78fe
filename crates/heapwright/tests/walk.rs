//! The walk finds every block in use, and no other block.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]

mod common;

use std::collections::BTreeMap;

use common::{Owned, Random};
use heapwright::heap::{self, Heap};

#[test]
fn a_walk_of_a_quiet_process_finds_exactly_what_is_live() {
    let mut random = Random::new(5);
    let mut blocks: Vec<Owned> = (0..3000).map(|_| Owned::malloc(random.size())).collect();
    for _ in 0..2000 {
        blocks.swap_remove(random.below(blocks.len())).free();
    }
    let own = Heap::create();
    for size in [10, 5000, 100_000] {
        // SAFETY: the heap exists.
        blocks.push(Owned::adopt(unsafe { Heap::alloc(own, size, 16, false) }, size));
    }
    // Blocks that are free in a cache would count as handed out.
    heap::trim(0);
    let mut found = BTreeMap::new();
    let mut last = 0;
    let whole = heap::walk(&mut |block| {
        assert!(block.address > last, "not in the order of addresses");
        last = block.address;
        if block.in_use {
            found.insert(block.address, block);
        }
        true
    });
    assert!(whole);
    for block in &blocks {
        let seen = found.remove(&block.at.addr()).expect("a block that the walk did not find");
        assert_eq!(seen.size, block.usable());
        assert_eq!(seen.owner, heapwright::describe(block.at).owner);
    }
    let first = found.iter().next();
    assert!(first.is_none(), "{} blocks that are free, as {first:?}", found.len());
    let mut left = 10;
    assert!(!heap::walk(&mut |_| {
        left -= 1;
        left > 0
    }));
    assert_eq!(left, 0);
    let own_blocks = blocks.split_off(blocks.len() - 3);
    blocks.into_iter().for_each(Owned::free);
    own_blocks.into_iter().for_each(Owned::free);
    // SAFETY: no code uses the heap or its blocks afterwards.
    unsafe { Heap::destroy(own) };
}
