//! Blocks that grow and shrink: in place, by copying, and by moving pages.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]

mod common;

use common::{Owned, Random, SLAB_MAX, UNIT, stats};

const MIB: usize = 1 << 20;

fn contents_survive_any_way_of_resizing() {
    let mut random = Random::new(3);
    for _ in 0..40 {
        let mut block = Owned::malloc(random.size());
        for _ in 0..40 {
            let size = match random.below(4) {
                0 => random.size(),
                1 => block.size + random.below(64),
                2 => block.size.saturating_sub(random.below(block.size / 2 + 1)),
                _ => (block.size * 3 / 2).min(3 * MIB),
            };
            block.realloc(size);
            assert!(block.usable() >= size);
        }
        block.free();
    }
}

fn vectors_that_double_keep_their_contents() {
    // Two blocks grow in turn, so that neither can simply grow into the memory behind it.
    let mut pair = [Owned::malloc(1000), Owned::malloc(1000)];
    while pair[0].size < 24 * MIB {
        for block in &mut pair {
            let size = block.size * 2;
            block.realloc(size);
        }
    }
    while pair[0].size > 100 {
        for block in &mut pair {
            let size = block.size / 3;
            block.realloc(size);
        }
    }
    pair.into_iter().for_each(Owned::free);
}

fn a_large_block_grows_in_place_into_what_is_free_behind_it() {
    let mut first = Owned::malloc(2 * UNIT);
    let second = Owned::malloc(2 * UNIT);
    let third = Owned::malloc(2 * UNIT);
    assert_eq!(second.at.addr(), first.at.addr() + 2 * UNIT, "side by side, on a fresh heap");
    second.free();
    let at = first.at;
    first.realloc(3 * UNIT + 5);
    assert_eq!(first.at, at);
    first.realloc(4 * UNIT);
    assert_eq!(first.at, at);
    // The third block begins behind these units, so the first block must move now.
    first.realloc(4 * UNIT + 1);
    assert_ne!(first.at, at);
    first.free();
    third.free();
}

fn a_block_that_still_fits_stays() {
    let mut block = Owned::malloc(1000);
    let at = block.at;
    for size in [block.usable(), 900, 700, 600, 1001] {
        block.realloc(size);
        assert_eq!(block.at, at, "{size}");
    }
    // A block that would use at most three eighths of its slot moves.
    block.realloc(20);
    assert!(block.usable() < 100);
    block.free();
    let mut large = Owned::malloc(10 * UNIT);
    let at = large.at;
    large.realloc(SLAB_MAX + 1);
    assert_eq!(large.at, at);
    assert!(large.usable() < UNIT, "the rest is no longer usable");
    large.free();
}

/// One test, because it counts the blocks of the whole process.
#[test]
fn blocks_are_resized() {
    a_large_block_grows_in_place_into_what_is_free_behind_it();
    contents_survive_any_way_of_resizing();
    vectors_that_double_keep_their_contents();
    a_block_that_still_fits_stays();
    assert_eq!((stats().live_blocks, stats().live_bytes), (0, 0));
}
