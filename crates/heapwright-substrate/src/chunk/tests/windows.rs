extern crate std;

use std::boxed::Box;

use super::super::*;
use super::world::*;
use crate::address_map::MAX_UNITS;
use crate::os::System;
use crate::os::fake::Fake;

#[test]
fn a_window_that_does_not_fit_is_halved_until_it_does() {
    let _alone = alone();
    let os = Fake::new(4096, (64 << 20) + 5 * MIB, None);
    let map: &'static AddressMap = Box::leak(Box::new(AddressMap::new()));
    let mut chunk = Chunk::closed(os, map);
    assert!(chunk.open(1 << 30));
    let expected = if os::TABLE_ADJACENT { 4 * MIB } else { crate::os::MAX_WINDOW.min(64 * MIB) };
    assert_eq!(chunk.window.span_bytes(), expected);
    // SAFETY: nothing was taken.
    unsafe { os.give_back() };
}

#[test]
fn an_opening_that_fails_leaves_nothing_reserved() {
    for space in [Space::Generous, Space::Piecewise] {
        let mut world = World::closed(space, PAGES[0]);
        world.os.refuse_after(1);
        assert!(!world.chunk.open(WINDOW));
        assert_eq!(world.os.reserved_bytes(), 0);
        assert!(world.chunk.take(1, Want::Any).is_none());
    }
}

#[test]
#[cfg_attr(miri, ignore = "the portable back end cannot reserve at an address")]
fn a_piecewise_window_reserves_little_of_its_span_at_first() {
    let limit = 1 << 30;
    let _alone = alone();
    let os = Fake::new(4096, usize::MAX, Some(limit));
    let map: &'static AddressMap = Box::leak(Box::new(AddressMap::new()));
    let mut chunk = Chunk::closed(os, map);
    assert!(chunk.open(1 << 40));
    assert_eq!(chunk.window.span_bytes(), 4 * limit);
    assert!(os.reserved_bytes() < 2 * MIB, "{} bytes", os.reserved_bytes());
    // SAFETY: nothing was taken.
    unsafe { os.give_back() };
}

#[test]
#[cfg_attr(miri, ignore = "the portable back end cannot reserve at an address")]
fn what_is_free_is_left_to_others_where_address_space_is_limited() {
    let mut world = World::open(Space::Piecewise, PAGES[0]);
    let empty = world.os.reserved_bytes();
    let count = WINDOW / UNIT / 2;
    (0..count).for_each(|_| {
        world.take(1, false).expect("half of the limit");
    });
    let full = world.os.reserved_bytes();
    (0..count / 2).for_each(|which| world.give(which, 0));
    world.check();
    let free = world.chunk.dirty.units() + world.chunk.clean.units();
    assert!(free * UNIT <= (WINDOW / 8).max(MIB), "{free} units");
    while !world.taken.is_empty() {
        world.give(0, 0);
    }
    world.check();
    let left = world.os.reserved_bytes();
    assert!(left <= empty + WINDOW / 8 + MIB && left < full, "{left} of {full}, {empty} at first");
    world.finish();
}

#[test]
#[cfg_attr(miri, ignore = "the portable back end cannot reserve at an address")]
fn a_lowered_limit_leaves_what_is_reserved_in_the_span() {
    let mut world = World::open(Space::Piecewise, PAGES[0]);
    world.take(4 * window::PIECE + 4, false).unwrap();
    world.give_up(1);
    while world.take(1, false).is_some() {}
    assert!(world.frontier() <= world.span(), "{} of {}", world.frontier(), world.span());
    world.check();
    world.finish();
}

#[test]
#[cfg_attr(miri, ignore = "the portable back end cannot reserve at an address")]
fn where_no_mapping_can_be_split_the_pages_go_back_and_nothing_is_absent_or_cut() {
    let mut world = World::open(Space::Piecewise, PAGES[0]);
    for _ in 0..3 {
        world.take(window::PIECE / 4, false).unwrap();
    }
    world.os.keep_whole(true);
    // One of the other two blocks may be at the end of a mapping, so both are fully in use.
    for (which, run) in world.taken.iter().enumerate() {
        let used = if which == 1 { PAGES[0] } else { run.units * UNIT };
        world.map.record(run.unit).usable.store(used, Ordering::Relaxed);
    }
    assert!(!world.chunk.cut_tails());
    assert_eq!(large_block::usable(world.map.record(world.taken[1].unit)), PAGES[0]);
    let before = world.os.reserved_bytes();
    world.give(1, 0);
    world.chunk.purge_all(0);
    assert_eq!((world.os.reserved_bytes(), world.chunk.absent.units()), (before, 0));
    assert!(world.chunk.clean.units() >= window::PIECE / 4 && world.chunk.dirty.units() == 0);
    world.check();
    world.os.keep_whole(false);
    world.chunk.purge_all(0);
    assert!(world.os.reserved_bytes() < before && world.chunk.clean.units() == 0);
    world.check();
    world.finish();
}

#[test]
#[cfg_attr(miri, ignore = "the portable back end cannot reserve at an address")]
fn a_block_that_was_cut_is_whole_again_or_free() {
    for (keep, refused) in [(0, false), (0, true), (1, false), (2, true), (3, false)] {
        let mut world = World::open(Space::Piecewise, PAGES[0]);
        for _ in 0..3 {
            world.take(4, false).unwrap();
        }
        let Taken { unit, units } = world.taken[1];
        let used = UNIT + PAGES[0];
        let record = world.map.record(unit);
        record.usable.store(used, Ordering::Relaxed);
        let at = world.map.address_of(unit).addr();
        for other in [0, 2] {
            let run = world.taken[other];
            world.map.record(run.unit).usable.store(run.units * UNIT, Ordering::Relaxed);
        }
        assert!(world.chunk.cut_tails() && !world.chunk.cut_tails());
        assert_eq!(large_block::usable(record), used);
        assert!(world.os.is_reserved(at + used - 1) && !world.os.is_reserved(at + used));
        assert!(!world.os.is_reserved(at + units * UNIT - 1));
        if refused {
            world.os.refuse_after(0);
            world.refusing = true;
        }
        if keep == 3 {
            assert!(world.chunk.mend_tail(unit));
            assert!(world.os.is_committed(world.map.address_of(unit), units * UNIT));
            assert!(world.is_zero(unit + 2, 2));
            world.fill(unit + 1, 3);
        } else {
            let whole = world.chunk.settle_tail(unit, units, keep);
            assert_eq!(whole, if keep == 0 && refused { 1 } else { 2 });
            assert_eq!(large_block::usable(record), used);
            world.fill(unit + 1, if keep < 2 && !refused { 1 } else { 0 });
            if keep < 2 {
                world.chunk.give(unit + keep, whole - keep, world.now);
                world.given_at[unit + keep..unit + whole].fill(world.now);
            }
            world.os.refuse_nothing();
            world.refusing = false;
            if keep == 2 {
                record.units.store(2, Ordering::Relaxed);
                assert!(!world.os.is_reserved(at + used) && world.chunk.mend_tail(unit));
                world.fill(unit + 1, 1);
            }
            if keep == 0 {
                world.taken.remove(1);
            } else {
                world.taken[1].units = keep;
                record.units.store(keep as u32, Ordering::Relaxed);
            }
        }
        world.check();
        world.finish();
    }
}

#[test]
#[cfg_attr(miri, ignore = "the portable back end cannot reserve at an address")]
fn what_others_map_into_the_range_is_stepped_over_and_stays_theirs() {
    let hole = window::PIECE;
    let mut world = World::open(Space::Piecewise, PAGES[0]);
    let theirs = world.map_foreign(hole, 10);
    assert!(!theirs.is_null(), "somebody else is behind the first piece");
    // SAFETY: the mapping was just made.
    assert!(unsafe { System.commit(theirs, 10 * UNIT) });
    // SAFETY: accessible, and the test's.
    unsafe { theirs.write_bytes(0x5a, 10 * UNIT) };
    // The request exceeds the room left in the first piece: the window must hop.
    let run = world.take(100, true).expect("there is room behind the hole");
    assert!(run.unit >= hole + 10 && run.zero);
    world.check();
    let left = world.take(hole - 1, true).expect("the rest of the first piece");
    assert_eq!((left.unit, left.zero), (1, true));
    for unit in hole..hole + 10 {
        assert_eq!(world.kind(unit), Kind::Foreign);
    }
    // SAFETY: accessible, and the test's.
    let bytes = unsafe { core::slice::from_raw_parts(theirs, 10 * UNIT) };
    assert!(bytes.iter().all(|&byte| byte == 0x5a), "somebody else's memory was changed");
    world.finish();
}

#[test]
#[cfg_attr(miri, ignore = "the portable back end cannot reserve at an address")]
fn a_free_run_serves_although_others_have_mapped_parts_of_it() {
    let mut world = World::open(Space::Piecewise, PAGES[0]);
    let run = world.take(64, false).unwrap();
    world.take(8, false).unwrap();
    world.give(0, 0);
    world.chunk.shed_all_but(0);
    assert_eq!(world.chunk.absent.units(), 64);
    for unit in [run.unit, run.unit + 63] {
        assert!(!world.map_foreign(unit, 1).is_null());
    }
    let parts: [Run; 3] = [16, 16, 14].map(|units| world.take(units, true).unwrap());
    assert!(parts.iter().all(|part| (run.unit + 1..run.unit + 63).contains(&part.unit)));
    world.check();
    world.finish();
}

#[test]
fn a_request_may_use_the_last_free_run_and_what_was_never_used() {
    let mut world = World::open(Space::Generous, PAGES[0]);
    let all = world.span() - 1;
    world.take(all / 2, false).unwrap();
    world.give(0, 0);
    assert!(world.take(all, false).is_some(), "all of the window is free");
    world.finish();
}

#[test]
fn a_request_for_more_than_the_window_is_refused() {
    let mut world = World::open(Space::Generous, PAGES[0]);
    for units in [world.span(), world.span() + 1, MAX_UNITS - 1] {
        assert!(world.take(units, false).is_none());
    }
    world.finish();
}
