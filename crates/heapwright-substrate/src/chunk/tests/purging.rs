//! Tests of runs that wait to go back to the kernel, and of regions for huge pages.

extern crate std;

use std::boxed::Box;
use std::sync::MutexGuard;
use std::vec::Vec;

use super::super::dense::HUGE;
use super::super::*;
use super::world::*;
use crate::os::fake::Fake;

/// A chunk whose units 1 to `count` are taken. If a test frees every second unit, none merge.
fn chunk_of_singles(count: usize) -> (Fake, Chunk<Fake>, MutexGuard<'static, ()>) {
    let alone = alone();
    let os = Fake::new(4096, 1 << 30, None);
    let map: &'static AddressMap = Box::leak(Box::new(AddressMap::new()));
    let mut chunk = Chunk::closed(os, map);
    assert!(chunk.open(512 * MIB));
    for unit in 1..=count {
        assert_eq!(chunk.take(1, Want::Any).map(|run| run.unit), Some(unit));
    }
    map.set_entries(1, count, Entry::LARGE_HEAD);
    (os, chunk, alone)
}

fn purge_expired_at(chunk: &mut Chunk<Fake>, now: u32, delay: i32) -> usize {
    let mut purged = 0;
    while let Some(run) = chunk.expire(now, delay) {
        purged += run.1;
        chunk.pay(run.1);
        chunk.attach(run, true, now);
    }
    purged
}

#[test]
fn what_nobody_needed_for_a_delay_goes_back_and_no_more() {
    let (os, mut chunk, _alone) = chunk_of_singles(400);
    (2..=200).step_by(2).for_each(|unit| chunk.give(unit, 1, 0));
    let purged = |chunk: &mut Chunk<Fake>, times: core::ops::RangeInclusive<u32>| -> usize {
        times.step_by(250).map(|now| purge_expired_at(chunk, now, 1000)).sum()
    };
    // The runs became dirty during the first part of the delay, so that part does not count.
    assert_eq!(purged(&mut chunk, 250..=1000), 0);
    // All runs but 30 are needed, for a moment.
    let busy: Vec<usize> = (0..70).map(|_| chunk.take(1, Want::Any).unwrap().unit).collect();
    assert_eq!(purged(&mut chunk, 1250..=1500), 30);
    busy.iter().for_each(|&unit| chunk.give(unit, 1, 1500));
    assert_eq!(chunk.dirty.units(), 70);
    // No run is needed: all go at the end of the first part after the delay.
    assert_eq!(purged(&mut chunk, 1750..=2500), 0);
    assert_eq!(purged(&mut chunk, 2750..=2750), 70);
    assert_eq!(purged(&mut chunk, 3000..=9000), 0);
    // SAFETY: no thread uses the memory.
    unsafe { os.give_back() };
}

#[test]
fn a_heap_that_grows_gives_back_what_it_cannot_use() {
    let (os, mut chunk, _alone) = chunk_of_singles(2000);
    (2..=2000).step_by(2).for_each(|unit| chunk.give(unit, 1, 0));
    let many = 1000 - FEW - chunk.taken / 4;
    let short = LONG - 1;
    assert!(chunk.take(short, Want::Any).unwrap().zero);
    assert_eq!(purge_expired_at(&mut chunk, 1, 1000), short);
    (0..1000 / short).for_each(|_| assert!(chunk.take(short, Want::Any).unwrap().zero));
    let purged = purge_expired_at(&mut chunk, 1, 1000);
    assert!(0 < purged && purged + short <= many, "{purged} of {many}");
    // A long run makes no units due while at most twice the units in use are in memory. A run that
    // is longer than all others in total makes units due earlier.
    for (units, is_paid) in [(100, false), (3000, true)] {
        let (dirty, others) = (chunk.dirty.units(), chunk.taken);
        assert!(take_paid(&mut chunk, units, Want::Any).zero);
        let left = dirty.saturating_sub(units).max(few_beside(units, others));
        assert_eq!(chunk.dirty.units(), if is_paid { left } else { dirty });
    }
    // SAFETY: no thread uses the memory.
    unsafe { os.give_back() };
}

fn pay(chunk: &mut Chunk<Fake>) {
    while let Some(run) = chunk.expire_owed() {
        assert!(run.1 <= HUGE);
        assert!(Chunk::<Fake>::purge_run(chunk.map, &chunk.window.os(), run));
        chunk.attach(run, true, 0);
    }
}

fn take_paid(chunk: &mut Chunk<Fake>, units: usize, want: Want) -> Run {
    let run = chunk.take(units, want).unwrap();
    chunk.map.set_entries(run.unit, units, Entry::LARGE_HEAD);
    pay(chunk);
    run
}

#[test]
fn a_buffer_that_grows_is_in_memory_once() {
    for stays in [false, true] {
        let (os, mut chunk, _alone) = chunk_of_singles(1);
        for units in (10 * LONG..=40 * LONG).step_by(2 * LONG) {
            let kept = chunk.taken;
            let run = take_paid(&mut chunk, units, Want::Any);
            let few = if stays { few_beside(units, kept) } else { 0 };
            let resident = chunk.taken + chunk.dirty.units();
            assert!(resident <= kept + units + few, "{units}: {resident}");
            assert!(stays || chunk.window.frontier() == 2 + units, "it grows where it is");
            if stays {
                take_paid(&mut chunk, 1, Want::Any);
            }
            chunk.give(run.unit, units, 0);
        }
        for units in [40 * LONG, 40 * LONG, 25 * LONG] {
            let run = take_paid(&mut chunk, units, Want::Any);
            assert!(!run.zero && chunk.owed == 0);
            chunk.give(run.unit, units, 0);
        }
        // SAFETY: no thread uses the memory.
        unsafe { os.give_back() };
    }
}

#[test]
fn a_long_run_is_put_together_of_what_lies_side_by_side() {
    let (os, mut chunk, _alone) = chunk_of_singles(1);
    let long = take_paid(&mut chunk, 75, Want::Any).unit;
    take_paid(&mut chunk, 1, Want::Any);
    // | a run | clean 20 | dirty 30 | clean 10 | dirty 15 | a run |
    chunk.give_unused(long, 20);
    chunk.give(long + 20, 30, 0);
    chunk.give_unused(long + 50, 10);
    chunk.give(long + 60, 15, 0);
    let free = |chunk: &Chunk<Fake>| (chunk.dirty.units(), chunk.clean.units());
    for (units, from, left) in [(50, 20, (5, 20)), (70, 5, (0, 5))] {
        let run = take_paid(&mut chunk, units, Want::Any);
        assert_eq!((run.unit, run.zero, free(&chunk)), (long + from, false, left));
        chunk.give(run.unit, units, 0);
    }
    let run = take_paid(&mut chunk, 76, Want::Any);
    assert!(run.zero && run.unit > long + 75);
    let dirty = chunk.dirty.units();
    assert_eq!(chunk.extend(long - 1, 1, 10), Some(false));
    assert_eq!(dirty - chunk.dirty.units(), 5);
    // SAFETY: no thread uses the memory.
    unsafe { os.give_back() };
}

#[test]
fn too_much_does_not_wait_at_all() {
    let (os, mut chunk, _alone) = chunk_of_singles(1);
    let run = chunk.take(6000, Want::Any).unwrap();
    chunk.give(run.unit, 6000, 0);
    let most = ALLOWANCE + 2 * chunk.taken;
    assert_eq!(chunk.expire(1, 1000).map_or(0, |run| run.1), 6000 - most);
    assert_eq!(chunk.expire(1, 1000), None);
    // SAFETY: no thread uses the memory.
    unsafe { os.give_back() };
}

#[test]
fn dense_regions_are_aligned_and_lose_nothing() {
    let (os, mut chunk, _alone) = chunk_of_singles(dense::MANY);
    chunk.huge_pages = true;
    let base = chunk.map.base().addr() / UNIT;
    let before = chunk.window.frontier();
    let first = chunk.take(1, Want::Dense).unwrap();
    assert!(first.dense && first.zero && (base + first.unit).is_multiple_of(dense::HUGE));
    let region = (dense::MANY / 8).max(dense::HUGE);
    let pad = first.unit - before;
    assert_eq!(chunk.window.frontier(), first.unit + region);
    assert_eq!((chunk.clean.units(), chunk.dirty.units()), (pad, 0));
    for _ in 0..=pad {
        let other = chunk.take(1, Want::Any).unwrap();
        assert!(other.unit < first.unit || other.unit >= first.unit + region);
    }
    for unit in first.unit + 1..first.unit + dense::HUGE / 2 {
        let next = chunk.take(1, Want::Dense).unwrap();
        assert_eq!((next.unit, next.zero, next.dense), (unit, true, false));
    }
    let delay = 10_u32;
    for now in [delay, 2 * delay] {
        assert_eq!((chunk.dirty.units(), chunk.waiting()), (0, dense::HUGE / 2));
        assert_eq!(chunk.expire(now, delay.cast_signed()), None);
    }
    assert_eq!((chunk.dirty.units(), chunk.waiting()), (dense::HUGE / 2, dense::HUGE / 2));
    assert!(chunk.expire(4 * delay, delay.cast_signed()).is_none_or(|(_, units)| units > 0));
    let clean = chunk.clean.units();
    chunk.end_region(0);
    assert_eq!(chunk.clean.units() - clean, region - dense::HUGE);
    let long = chunk.take(4 * dense::HUGE, Want::Any).unwrap();
    chunk.give_unused(long.unit, 4 * dense::HUGE);
    let (frontier, clean) = (chunk.window.frontier(), chunk.clean.units());
    let again = chunk.take_dense(Want::Dense).unwrap();
    assert!(again.dense && again.zero && (base + again.unit).is_multiple_of(dense::HUGE));
    assert!(again.unit >= long.unit && again.unit + dense::HUGE <= frontier);
    assert_eq!((chunk.window.frontier(), chunk.clean.units()), (frontier, clean - dense::HUGE));
    // SAFETY: no thread uses the memory.
    unsafe { os.give_back() };
}

#[test]
fn dense_regions_do_not_walk_on_while_clean_memory_waits() {
    let (os, mut chunk, _alone) = chunk_of_singles(4 * dense::MANY);
    chunk.huge_pages = true;
    (2..=4 * dense::MANY - 2).step_by(3).for_each(|unit| chunk.give_unused(unit, 2));
    assert!(chunk.clean.units() > chunk.taken);
    let frontier = chunk.window.frontier();
    let run = chunk.take(1, Want::Dense).unwrap();
    assert!(run.zero && !run.dense && chunk.window.frontier() == frontier);
    while chunk.clean.units() > chunk.taken {
        assert!(!chunk.take(1, Want::Dense).unwrap().dense);
    }
    assert!(chunk.take(1, Want::Dense).unwrap().dense && chunk.window.frontier() > frontier);
    // SAFETY: no thread uses the memory.
    unsafe { os.give_back() };
}
