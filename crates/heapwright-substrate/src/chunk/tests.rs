//! The chunk against a model, on the fake operating system.
//!
//! The model knows which runs are taken, which are detached, and when each
//! unit was given back. After every operation the whole window is walked, and
//! every unit below the frontier must be in exactly one place: a taken run, a
//! detached one, a free run that its index, its tags and the queue agree on,
//! or somebody else's mapping. Contents are marked, so that a run that claims
//! to read as zero, or is handed out twice, is seen in memory and not only in
//! the records.
//!
//! What only these tests find: a unit lost or owned twice after some order of
//! merges, splits, refusals and detours; a page size assumed to be 4096.

extern crate std;

use std::boxed::Box;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::address_map::MAX_UNITS;
use crate::address_map::SIDE_BITMAP;
use crate::os::System;
use crate::os::fake::Fake;
use crate::testing::{cases, sample};
use crate::unit_record::Record;

const MIB: usize = 1 << 20;
/// The windows here: large enough for several pieces and for bins of ranges.
const WINDOW: usize = if cfg!(miri) { 4 * MIB } else { 16 * MIB };
/// Under Miri only large ones: the ledger of the fake counts every page.
const PAGES: [usize; 3] = if cfg!(miri) { [64 << 10; 3] } else { [4 << 10, 16 << 10, 64 << 10] };
/// One mark stands for so many bytes of contents.
const MARKED: usize = if cfg!(miri) { UNIT } else { 4096 };

/// How the window is had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Space {
    /// All at once.
    Generous,
    /// In pieces, under a limit of address space.
    Thrifty,
}

/// What is done to the chunk.
#[derive(Clone, Debug)]
enum Op {
    /// Takes a run; `hard`: purges and tries again, as `chunk::take` does.
    Take { units: usize, want_zero: bool, hard: bool },
    /// Takes a run and gives it back untouched.
    Unused { units: usize },
    /// Gives the end of a taken run back, or all of it.
    Give { which: Index, keep: Index, all: bool },
    /// Lengthens a taken run in place.
    Extend { which: Index, more: usize },
    /// Lets time pass and takes an expired run out.
    Expire { wait: u32, delay: i32 },
    /// Puts a detached run back, purged or not.
    Attach { which: Index, purge: bool },
    /// Purges all but so many units.
    PurgeAll { keep: usize },
    /// The process will be allowed only so many units of address space.
    GiveUp { most: usize },
    /// Somebody else maps memory, if it is still nobody's.
    Foreign { at: usize, units: usize },
}

fn op() -> impl Strategy<Value = Op> {
    let units = || prop_oneof![4 => 1..=4usize, 3 => 5..=24usize, 1 => 25..=140usize];
    let which = any::<Index>;
    prop_oneof![
        8 => (units(), any::<bool>(), any::<bool>())
            .prop_map(|(units, want_zero, hard)| Op::Take { units, want_zero, hard }),
        1 => units().prop_map(|units| Op::Unused { units }),
        7 => (which(), which(), prop::bool::weighted(0.7))
            .prop_map(|(which, keep, all)| Op::Give { which, keep, all }),
        3 => (which(), units()).prop_map(|(which, more)| Op::Extend { which, more }),
        3 => (0..40u32, prop_oneof![Just(0), Just(30), Just(-1)])
            .prop_map(|(wait, delay)| Op::Expire { wait, delay }),
        3 => (which(), prop::bool::weighted(0.8))
            .prop_map(|(which, purge)| Op::Attach { which, purge }),
        1 => (0..40usize).prop_map(|keep| Op::PurgeAll { keep }),
        1 => (0..=WINDOW / UNIT).prop_map(|most| Op::GiveUp { most }),
        1 => (1..WINDOW / UNIT, 1..32usize).prop_map(|(at, units)| Op::Foreign { at, units }),
    ]
}

fn ops(most: usize) -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 1..if cfg!(miri) { most / 4 } else { most })
}

#[derive(Clone, Copy)]
struct Taken {
    unit: usize,
    units: usize,
}

impl Taken {
    fn end(self) -> usize {
        self.unit + self.units
    }
}

/// One window at a time: where addresses are few, thrifty ones are not far apart (see `os::fake`), and
/// find no room where another test has just mapped something.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A chunk and what it must be like.
struct World {
    _alone: MutexGuard<'static, ()>,
    os: Fake,
    space: Space,
    map: &'static AddressMap,
    chunk: Chunk<Fake>,
    taken: Vec<Taken>,
    detached: Vec<(usize, usize)>,
    foreign: Vec<(*mut u8, usize)>,
    /// When each unit was given back last.
    given_at: Vec<u32>,
    now: u32,
    /// Calls may be refused, so nothing is promised but consistency.
    refusing: bool,
}

/// Words that stand for a run's contents: the first and the last of each page.
fn marks(map: &AddressMap, unit: usize, units: usize) -> impl Iterator<Item = *mut usize> {
    let base = map.address_of(unit);
    (0..units * UNIT / MARKED)
        .flat_map(move |page| [page * MARKED, (page + 1) * MARKED - size_of::<usize>()])
        .map(move |at| base.wrapping_add(at).cast())
}

impl World {
    fn closed(space: Space, page: usize) -> Self {
        let limit = (space == Space::Thrifty).then_some(WINDOW);
        let os = Fake::new(page, 1 << 30, limit);
        let map: &'static AddressMap = Box::leak(Box::new(AddressMap::new()));
        Self {
            _alone: alone(),
            os,
            space,
            map,
            chunk: Chunk::closed(os, map),
            taken: Vec::new(),
            detached: Vec::new(),
            foreign: Vec::new(),
            given_at: vec![0; WINDOW / UNIT],
            // So that times wrap around in the middle of a test.
            now: u32::MAX - 200,
            refusing: false,
        }
    }

    fn open(space: Space, page: usize) -> Self {
        let mut world = Self::closed(space, page);
        assert!(world.chunk.open(WINDOW));
        world
    }

    fn frontier(&self) -> usize {
        self.chunk.window.frontier()
    }

    fn span(&self) -> usize {
        self.chunk.window.span_bytes() / UNIT
    }

    fn kind(&self, unit: usize) -> Kind {
        self.map.lookup(self.map.address_of(unit).addr()).1.kind()
    }

    fn is_zero(&self, unit: usize, units: usize) -> bool {
        // SAFETY: only runs below the frontier are asked about; they are committed.
        marks(self.map, unit, units).all(|word| unsafe { word.read() } == 0)
    }

    fn fill(&self, unit: usize, units: usize) {
        for word in marks(self.map, unit, units) {
            // SAFETY: the run was handed out, so it is committed and ours.
            unsafe { word.write(!word.addr()) };
        }
    }

    fn is_filled(&self, unit: usize, units: usize) -> bool {
        // SAFETY: the run was handed out, so it is committed and ours.
        marks(self.map, unit, units).all(|word| unsafe { word.read() } == !word.addr())
    }

    /// Units came out of the chunk: they were free, are ours alone, and read as
    /// zero if that was said.
    fn receive(&self, unit: usize, units: usize, zero: bool) {
        assert!(unit > 0 && unit + units <= self.frontier());
        assert!((unit..unit + units).all(|at| self.kind(at) == Kind::Free));
        assert!(self.os.is_committed(self.map.address_of(unit), units * UNIT), "not committed");
        for taken in &self.taken {
            assert!(unit + units <= taken.unit || unit >= taken.end(), "handed out twice");
        }
        assert!(!zero || self.is_zero(unit, units), "does not read as zero");
        self.fill(unit, units);
    }

    fn take(&mut self, units: usize, want_zero: bool) -> Option<Run> {
        let run = self.chunk.take(units, if want_zero { Want::Zero } else { Want::Any });
        if let Some(run) = run {
            self.receive(run.unit, units, run.zero);
            self.map.record(run.unit).units.store(units as u32, Ordering::Relaxed);
            self.map.set_entry(run.unit, Entry::LARGE_HEAD);
            self.map.set_entries(run.unit + 1, units - 1, Entry::large_rest(run.unit));
            self.taken.push(Taken { unit: run.unit, units });
        } else if !self.refusing {
            for (_, length) in self.chunk.dirty.all().into_iter().chain(self.chunk.clean.all()) {
                assert!(!RunIndex::must_find(units, length), "{units} units were there: {length}");
            }
            let fits = self.space == Space::Generous && units <= self.span() - self.frontier();
            assert!(!fits, "{units} units were never used");
        }
        run
    }

    fn give(&mut self, which: usize, keep: usize) {
        let run = &mut self.taken[which];
        let gone = Taken { unit: run.unit + keep, units: run.units - keep };
        run.units = keep;
        self.map.record(run.unit).units.store(keep as u32, Ordering::Relaxed);
        if keep == 0 {
            self.taken.swap_remove(which);
        }
        assert!(self.is_filled(gone.unit, gone.units), "somebody wrote to a taken run");
        self.given_at[gone.unit..gone.end()].fill(self.now);
        self.chunk.give(gone.unit, gone.units, self.now);
    }

    fn extend(&mut self, which: usize, more: usize) {
        let run = self.taken[which];
        // What the extension may be made of, if nothing is refused.
        let free = |runs: Vec<(usize, usize)>| {
            runs.into_iter().find(|&(unit, _)| unit == run.end()).map_or(0, |(_, units)| units)
        };
        let behind = free(self.chunk.dirty.all()).max(free(self.chunk.clean.all()));
        let to_frontier = run.end() + behind == self.frontier();
        let fits = behind >= more
            || to_frontier
                && self.space == Space::Generous
                && behind + self.span() - self.frontier() >= more;
        match self.chunk.extend(run.unit, run.units, more) {
            Some(zero) => {
                self.receive(run.end(), more, zero);
                self.taken[which].units += more;
                let units = self.taken[which].units as u32;
                self.map.record(run.unit).units.store(units, Ordering::Relaxed);
                self.map.set_entries(run.end(), more, Entry::large_rest(run.unit));
            }
            None => assert!(self.refusing || !fits, "{more} units were there behind {behind}"),
        }
    }

    fn expire(&mut self, wait: u32, delay: i32) {
        self.now = self.now.wrapping_add(wait);
        let dirty = self.chunk.dirty.all();
        let expired = self.chunk.expire(self.now, delay);
        if delay < 0 {
            assert!(expired.is_none(), "the delay is for ever");
        } else if delay == 0 {
            assert_eq!(expired.is_some(), !dirty.is_empty(), "there is no delay");
        }
        if let Some((unit, units)) = expired {
            let whole = dirty.iter().any(|&(from, all)| from <= unit && unit + units == from + all);
            assert!(units > 0 && whole, "not a dirty run, nor the end of one");
        }
        self.detached.extend(expired);
    }

    fn attach(&mut self, which: usize, purge: bool) {
        let run = self.detached.swap_remove(which);
        let purged = purge && Chunk::<Fake>::purge_run(self.map, &self.os, run);
        if !purged {
            self.given_at[run.0..run.0 + run.1].fill(self.now);
        }
        self.chunk.attach(run, purged, self.now);
    }

    fn purge_all(&mut self, keep: usize) {
        let before = self.chunk.dirty.units();
        let purged = self.chunk.purge_all(keep);
        let left = self.chunk.dirty.units();
        assert_eq!(before - left, purged);
        assert!(left <= keep || self.refusing);
    }

    fn give_up(&mut self, most: usize) {
        self.chunk.window.set_limit(most * UNIT);
        if os::TABLE_ADJACENT && self.space == Space::Generous {
            self.space = Space::Thrifty;
            // What is not writable is room in the side tables, and no more.
            let committed = self.chunk.window.committed_bytes();
            let units = most.next_power_of_two().max(committed / UNIT);
            let sides = units * (size_of::<Record>() + SIDE_BITMAP + size_of::<u32>());
            let kept = self.os.reserved_bytes();
            assert!(kept <= committed + sides + 4 * self.os.page_size(), "{kept} of {committed}");
        }
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Take { units, want_zero, hard } => {
                let run = self.take(units, want_zero);
                if run.is_none() && hard {
                    self.purge_all(0);
                    self.take(units, want_zero);
                }
            }
            Op::Unused { units } => {
                if let Some(run) = self.chunk.take(units, Want::Zero) {
                    if run.zero {
                        self.chunk.give_unused(run.unit, units);
                    } else {
                        self.given_at[run.unit..run.unit + units].fill(self.now);
                        self.chunk.give(run.unit, units, self.now);
                    }
                }
            }
            Op::Give { which, keep, all } if !self.taken.is_empty() => {
                let which = which.index(self.taken.len());
                let keep = if all { 0 } else { keep.index(self.taken[which].units) };
                self.give(which, keep);
            }
            Op::Extend { which, more } if !self.taken.is_empty() => {
                self.extend(which.index(self.taken.len()), more);
            }
            Op::Expire { wait, delay } => self.expire(wait, delay),
            Op::Attach { which, purge } if !self.detached.is_empty() => {
                self.attach(which.index(self.detached.len()), purge);
            }
            Op::PurgeAll { keep } => self.purge_all(keep),
            Op::GiveUp { most } => self.give_up(most),
            Op::Foreign { at, units } if at + units <= self.span() => {
                self.map_foreign(at, units);
            }
            _ => {}
        }
        self.check();
    }

    /// Maps memory that is somebody else's into the window's range, if it is
    /// free there.
    fn map_foreign(&mut self, unit: usize, units: usize) -> *mut u8 {
        let at = System.reserve_at(self.map.address_of(unit).addr(), units * UNIT);
        if !at.is_null() {
            self.foreign.push((at, units * UNIT));
        }
        at
    }

    /// Every unit below the frontier is in exactly one place.
    fn check(&self) {
        let frontier = self.frontier();
        let mut placed = vec![false; frontier];
        let mut place = |unit: usize| {
            assert!(!placed[unit], "unit {unit} is in two places");
            placed[unit] = true;
        };
        place(0);
        assert_eq!(self.kind(0), Kind::Metadata);
        for run in &self.taken {
            (run.unit..run.end()).for_each(&mut place);
            assert_eq!(self.kind(run.unit), Kind::LargeHead);
            let rest = Kind::LargeRest(run.unit);
            assert!((run.unit + 1..run.end()).all(|unit| self.kind(unit) == rest));
        }
        for &(unit, units) in &self.detached {
            (unit..unit + units).for_each(&mut place);
            assert!((unit..unit + units).all(|at| self.kind(at) == Kind::Free));
        }
        let (mut dirty, mut clean) = (self.chunk.dirty.all(), self.chunk.clean.all());
        let mut absent = self.chunk.absent.all();
        let all =
            [(&mut dirty, State::Dirty), (&mut clean, State::Clean), (&mut absent, State::Absent)];
        for (runs, state) in all {
            runs.sort_unstable();
            for &(unit, units) in &*runs {
                (unit..unit + units).for_each(&mut place);
                assert!((unit..unit + units).all(|at| self.kind(at) == Kind::Free));
                let at = self.map.address_of(unit);
                if state == State::Absent {
                    let mut units = (0..units).map(|unit| at.addr() + unit * UNIT);
                    assert!(units.all(|at| !self.os.is_reserved(at)), "absent, and still here");
                } else {
                    assert!(self.os.is_committed(at, units * UNIT));
                }
                for tag in [unit, unit + units - 1] {
                    let record = self.map.record(tag);
                    assert_eq!(record.units.load(Ordering::Relaxed) as usize, units, "tags");
                    assert_eq!(record.state.load(Ordering::Relaxed), state as u8, "tags");
                }
            }
            let apart = runs.windows(2).all(|pair| pair[0].0 + pair[0].1 < pair[1].0);
            assert!(apart, "neighbours that were not merged: {runs:?}");
        }
        // What nobody has is foreign, and was never ours.
        for unit in (0..frontier).filter(|&unit| !placed[unit]) {
            assert_eq!(self.kind(unit), Kind::Foreign, "unit {unit} is lost");
            let reserved = self.os.is_reserved(self.map.address_of(unit).addr());
            assert!(!reserved, "unit {unit} is reserved and lost");
        }
        let sum = |runs: &[(usize, usize)]| runs.iter().map(|run| run.1).sum::<usize>();
        assert_eq!(self.chunk.dirty.units(), sum(&dirty));
        assert_eq!(self.chunk.clean.units(), sum(&clean));
        assert_eq!(self.chunk.taken, self.taken.iter().map(|run| run.units).sum::<usize>());
        self.check_queue(dirty);
    }

    /// All dirty runs are in the queue, the oldest last, none younger than any
    /// of its units.
    fn check_queue(&self, dirty: Vec<(usize, usize)>) {
        let stamp = |unit: usize| self.map.record(unit).stamp.load(Ordering::Relaxed);
        let mut queue = Vec::new();
        let mut at = self.chunk.queue.first();
        while let Some(unit) = at {
            assert_eq!(self.chunk.queue.before(self.map, unit), queue.last().copied());
            if let Some(&newer) = queue.last() {
                assert!(waited(stamp(unit), stamp(newer)) >= 0, "the queue is not in order");
            }
            queue.push(unit);
            at = self.chunk.queue.after(self.map, unit);
        }
        assert_eq!(self.chunk.oldest, queue.last().copied().unwrap_or(0));
        queue.sort_unstable();
        let firsts: Vec<usize> = dirty.iter().map(|run| run.0).collect();
        assert_eq!(queue, firsts);
        for (unit, units) in dirty {
            let parts = &self.given_at[unit..unit + units];
            let fair = parts.iter().all(|&given| waited(stamp(unit), given) >= 0);
            assert!(fair, "a run counts as younger than its oldest part");
        }
    }

    /// Gives everything back: all runs merge, all reads as zero, and all of it
    /// can be had again in one piece (a piece between foreign mappings).
    fn finish(mut self) {
        self.os.refuse_nothing();
        self.refusing = false;
        while !self.detached.is_empty() {
            self.attach(0, true);
        }
        while !self.taken.is_empty() {
            self.give(0, 0);
        }
        self.purge_all(0);
        self.check();
        // Where address space is scarce, none is left.
        let mut clean = self.chunk.clean.all();
        assert!(clean.is_empty() || !self.chunk.window.is_scarce());
        clean.extend(self.chunk.absent.all());
        clean.sort_unstable();
        let foreign = (1..self.frontier()).filter(|&unit| self.kind(unit) == Kind::Foreign);
        let pieces = 1 + foreign.clone().filter(|&at| self.kind(at - 1) != Kind::Foreign).count();
        assert!(clean.len() <= pieces, "free runs that did not merge: {clean:?}");
        let units = clean.iter().map(|run| run.1).sum::<usize>();
        assert_eq!(units, self.frontier() - 1 - foreign.count());
        // They may lie where runs are absent, and those come back only without them.
        for &(at, size) in &self.foreign {
            // SAFETY: the test mapped it, and only the test knows of it.
            unsafe { System.release(at, size) };
        }
        // All before any: of two pieces of one length either may be found.
        let absent = self.chunk.absent.units() > 0;
        assert!(absent || clean.iter().all(|&(unit, units)| self.is_zero(unit, units)));
        for &(_, units) in clean.iter().rev() {
            let found = self.take(units, true).expect("a free run of this size");
            assert!(found.zero);
        }
        assert_eq!(self.chunk.clean.units() + self.chunk.absent.units(), 0);
        // SAFETY: the world ends here, and with it all that know the window.
        unsafe { self.os.give_back() };
    }
}

fn play(space: Space, page: usize, ops: &[Op]) {
    let mut world = World::open(space, page);
    for op in ops {
        world.apply(op);
    }
    world.finish();
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn a_generous_window_keeps_account_of_every_unit(page in prop::sample::select(&PAGES), ops in ops(60)) {
        play(Space::Generous, page, &ops);
    }

    #[test]
    #[cfg_attr(miri, ignore = "the portable back end cannot reserve at an address")]
    fn a_thrifty_window_keeps_account_of_every_unit(page in prop::sample::select(&PAGES), ops in ops(60)) {
        play(Space::Thrifty, page, &ops);
    }
}

/// Plays the same operations again and again, refusing another call each time,
/// until no call is left to refuse.
fn refuse_each_call(refuse: fn(&Fake, u64)) {
    let scripts = sample(&prop::collection::vec(prop::collection::vec(op(), 36), 2));
    // Growth, with somebody's mapping in the way of a thrifty window.
    let growth =
        [20, 30, 8, 12, 40, 3].map(|units| Op::Take { units, want_zero: true, hard: true });
    let in_the_way = Op::Foreign { at: window::PIECE + 2, units: 5 };
    let growth = [in_the_way].into_iter().chain(growth).collect();
    for script in scripts.into_iter().chain([growth]) {
        for space in [Space::Generous, Space::Thrifty] {
            for page in [4 << 10, 64 << 10] {
                let calls = (0..).find(|&call| !refuses_call(space, page, &script, refuse, call));
                assert!(calls > Some(8), "the operations must need the system: {calls:?} calls");
            }
        }
    }
}

/// Plays the operations while one call is refused. Returns whether it was made.
fn refuses_call(space: Space, page: usize, ops: &[Op], refuse: fn(&Fake, u64), call: u64) -> bool {
    let mut world = World::closed(space, page);
    refuse(&world.os, call);
    world.refusing = true;
    if world.chunk.open(WINDOW) {
        for op in ops {
            world.apply(op);
        }
        let made = world.os.calls() > call;
        world.finish();
        made
    } else {
        assert!(world.os.calls() > call, "nothing was refused, and the window did not open");
        // SAFETY: the window never opened; nobody has anything of it.
        unsafe { world.os.give_back() };
        true
    }
}

#[test]
#[cfg_attr(miri, ignore = "hundreds of windows")]
fn a_system_that_refuses_one_call_costs_nothing_but_that() {
    refuse_each_call(Fake::refuse_only);
}

#[test]
#[cfg_attr(miri, ignore = "hundreds of windows")]
fn a_system_that_refuses_all_calls_from_some_point_on_loses_nothing() {
    refuse_each_call(Fake::refuse_after);
}

#[test]
fn a_window_that_does_not_fit_is_halved_until_it_does() {
    let _alone = alone();
    let os = Fake::new(4096, (64 << 20) + 5 * MIB, None);
    let map: &'static AddressMap = Box::leak(Box::new(AddressMap::new()));
    let mut chunk = Chunk::closed(os, map);
    assert!(chunk.open(1 << 30));
    // 64 MiB of it are the distance to the table, on systems that have that.
    let expected = if os::TABLE_ADJACENT { 4 * MIB } else { crate::os::MAX_WINDOW.min(64 * MIB) };
    assert_eq!(chunk.window.span_bytes(), expected);
    // SAFETY: nobody took anything.
    unsafe { os.give_back() };
}

#[test]
fn an_opening_that_fails_leaves_nothing_reserved() {
    for space in [Space::Generous, Space::Thrifty] {
        let mut world = World::closed(space, PAGES[0]);
        // The first reservation succeeds, and no other.
        world.os.refuse_after(1);
        assert!(!world.chunk.open(WINDOW));
        assert_eq!(world.os.reserved_bytes(), 0);
        assert!(world.chunk.take(1, Want::Any).is_none());
    }
}

#[test]
#[cfg_attr(miri, ignore = "the portable back end cannot reserve at an address")]
fn a_thrifty_window_reserves_little_of_its_span_at_first() {
    let limit = 1 << 30;
    let _alone = alone();
    let os = Fake::new(4096, usize::MAX, Some(limit));
    let map: &'static AddressMap = Box::leak(Box::new(AddressMap::new()));
    let mut chunk = Chunk::closed(os, map);
    assert!(chunk.open(1 << 40));
    assert_eq!(chunk.window.span_bytes(), 4 * limit);
    assert!(os.reserved_bytes() < 2 * MIB, "{} bytes", os.reserved_bytes());
    // SAFETY: nobody took anything.
    unsafe { os.give_back() };
}

#[test]
#[cfg_attr(miri, ignore = "the portable back end cannot reserve at an address")]
fn what_is_free_is_left_to_others_where_address_space_is_limited() {
    let mut world = World::open(Space::Thrifty, PAGES[0]);
    let empty = world.os.reserved_bytes();
    let count = WINDOW / UNIT / 2;
    (0..count).for_each(|_| {
        world.take(1, false).expect("half of the limit");
    });
    let full = world.os.reserved_bytes();
    // Every second one, so that nothing merges.
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
    let mut world = World::open(Space::Thrifty, PAGES[0]);
    // More is reserved than committed, and the limit falls far below both.
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
    let mut world = World::open(Space::Thrifty, PAGES[0]);
    for _ in 0..3 {
        world.take(window::PIECE / 4, false).unwrap();
    }
    world.os.keep_whole(true);
    // The others, of which one may end a mapping, are in use to the last byte.
    for (which, run) in world.taken.iter().enumerate() {
        let used = if which == 1 { PAGES[0] } else { run.units * UNIT };
        world.map.record(run.unit).usable.store(used, Ordering::Relaxed);
    }
    assert!(!world.chunk.cut_tails());
    assert_eq!(scarce::usable(world.map.record(world.taken[1].unit)), PAGES[0]);
    let before = world.os.reserved_bytes();
    world.give(1, 0);
    world.chunk.purge_all(0);
    assert_eq!((world.os.reserved_bytes(), world.chunk.absent.units()), (before, 0));
    assert!(world.chunk.clean.units() >= window::PIECE / 4 && world.chunk.dirty.units() == 0);
    world.check();
    // Once it can be split again, all of it goes.
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
        let mut world = World::open(Space::Thrifty, PAGES[0]);
        for _ in 0..3 {
            world.take(4, false).unwrap();
        }
        let Taken { unit, units } = world.taken[1];
        let used = UNIT + PAGES[0];
        let record = world.map.record(unit);
        record.usable.store(used, Ordering::Relaxed);
        let at = world.map.address_of(unit).addr();
        // The others are in use to the last byte, and stay as they are.
        for other in [0, 2] {
            let run = world.taken[other];
            world.map.record(run.unit).usable.store(run.units * UNIT, Ordering::Relaxed);
        }
        assert!(world.chunk.cut_tails() && !world.chunk.cut_tails());
        assert_eq!(scarce::usable(record), used);
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
            // The second unit is half there.
            assert_eq!(whole, if keep == 0 && refused { 1 } else { 2 });
            assert_eq!(scarce::usable(record), used);
            world.fill(unit + 1, if keep < 2 && !refused { 1 } else { 0 });
            if keep < 2 {
                world.chunk.give(unit + keep, whole - keep, world.now);
                world.given_at[unit + keep..unit + whole].fill(world.now);
            }
            world.os.refuse_nothing();
            world.refusing = false;
            if keep == 2 {
                // The cut stays with what is kept.
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
    let mut world = World::open(Space::Thrifty, PAGES[0]);
    let theirs = world.map_foreign(hole, 10);
    assert!(!theirs.is_null(), "somebody else is behind the first piece");
    // SAFETY: the mapping was just made.
    assert!(unsafe { System.commit(theirs, 10 * UNIT) });
    // SAFETY: accessible, and the test's.
    unsafe { theirs.write_bytes(0x5a, 10 * UNIT) };
    // More than is left of the first piece: the window must hop.
    let run = world.take(100, true).expect("there is room behind the hole");
    assert!(run.unit >= hole + 10 && run.zero);
    world.check();
    // What was left of the first piece is handed out all the same.
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

/// A chunk in which runs of one unit were taken, at units 1 to `count`, and may
/// be given back without merging: every second one stays.
#[cfg(not(miri))]
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

/// Purges what has expired. Returns units.
#[cfg(not(miri))]
fn purge_expired_at(chunk: &mut Chunk<Fake>, now: u32, delay: i32) -> usize {
    let mut purged = 0;
    while let Some(run) = chunk.expire(now, delay) {
        purged += run.1;
        chunk.attach(run, true, now);
    }
    purged
}

#[test]
#[cfg(not(miri))]
fn what_nobody_needed_for_a_delay_goes_back_and_no_more() {
    let (os, mut chunk, _alone) = chunk_of_singles(400);
    (2..=200).step_by(2).for_each(|unit| chunk.give(unit, 1, 0));
    let purged = |chunk: &mut Chunk<Fake>, times: core::ops::RangeInclusive<u32>| -> usize {
        times.step_by(250).map(|now| purge_expired_at(chunk, now, 1000)).sum()
    };
    // The part of the delay in which they became dirty does not count.
    assert_eq!(purged(&mut chunk, 250..=1000), 0);
    // All but 30 are needed, for a moment.
    let busy: Vec<usize> = (0..70).map(|_| chunk.take(1, Want::Any).unwrap().unit).collect();
    assert_eq!(purged(&mut chunk, 1250..=1500), 30);
    busy.iter().for_each(|&unit| chunk.give(unit, 1, 1500));
    assert_eq!(chunk.dirty.units(), 70);
    // Nobody needs any of them: they go at the end of the first part after the delay.
    assert_eq!(purged(&mut chunk, 1750..=2500), 0);
    assert_eq!(purged(&mut chunk, 2750..=2750), 70);
    assert_eq!(purged(&mut chunk, 3000..=9000), 0);
    // SAFETY: nobody uses anything of it.
    unsafe { os.give_back() };
}

#[test]
#[cfg(not(miri))]
fn a_heap_that_grows_gives_back_what_it_cannot_use() {
    let (os, mut chunk, _alone) = chunk_of_singles(2000);
    (2..=2000).step_by(2).for_each(|unit| chunk.give(unit, 1, 0));
    let many = 1000 - FEW - chunk.taken / 4;
    // No dirty run is long enough, so the heap grows.
    let run = chunk.take(100, Want::Any).unwrap();
    assert!(run.zero);
    assert_eq!(purge_expired_at(&mut chunk, 1, 1000), 100);
    assert!(chunk.take(1000, Want::Any).is_some_and(|run| run.zero));
    let left = purge_expired_at(&mut chunk, 1, 1000);
    assert!(left < 1000 && left + 100 <= many, "{left} of {many}");
    // SAFETY: nobody uses anything of it.
    unsafe { os.give_back() };
}

#[test]
#[cfg(not(miri))]
fn too_much_does_not_wait_at_all() {
    let (os, mut chunk, _alone) = chunk_of_singles(1);
    let run = chunk.take(6000, Want::Any).unwrap();
    chunk.give(run.unit, 6000, 0);
    let most = ALLOWANCE + 2 * chunk.taken;
    assert_eq!(chunk.expire(1, 1000).map_or(0, |run| run.1), 6000 - most);
    assert_eq!(chunk.expire(1, 1000), None);
    // SAFETY: nobody uses anything of it.
    unsafe { os.give_back() };
}

#[test]
#[cfg(not(miri))]
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
    // Others get the padding first, and then nothing of the region.
    for _ in 0..=pad {
        let other = chunk.take(1, Want::Any).unwrap();
        assert!(other.unit < first.unit || other.unit >= first.unit + region);
    }
    for unit in first.unit + 1..first.unit + dense::HUGE / 2 {
        let next = chunk.take(1, Want::Dense).unwrap();
        assert_eq!((next.unit, next.zero, next.dense), (unit, true, false));
    }
    // What nobody wants for two delays waits with what is dirty.
    let delay = 10_u32;
    for now in [delay, 2 * delay] {
        assert_eq!((chunk.dirty.units(), chunk.waiting()), (0, dense::HUGE / 2));
        assert_eq!(chunk.expire(now, delay.cast_signed()), None);
    }
    assert_eq!((chunk.dirty.units(), chunk.waiting()), (dense::HUGE / 2, dense::HUGE / 2));
    assert!(chunk.expire(4 * delay, delay.cast_signed()).is_none_or(|(_, units)| units > 0));
    // What is not opened yet is nobody's, and is there where nothing else is.
    let clean = chunk.clean.units();
    chunk.end_region(0);
    assert_eq!(chunk.clean.units() - clean, region - dense::HUGE);
    // The next region is of what is clean, if as much lies in a row.
    let long = chunk.take(4 * dense::HUGE, Want::Any).unwrap();
    chunk.give_unused(long.unit, 4 * dense::HUGE);
    let (frontier, clean) = (chunk.window.frontier(), chunk.clean.units());
    let again = chunk.take_dense(Want::Dense).unwrap();
    assert!(again.dense && again.zero && (base + again.unit).is_multiple_of(dense::HUGE));
    assert!(again.unit >= long.unit && again.unit + dense::HUGE <= frontier);
    assert_eq!((chunk.window.frontier(), chunk.clean.units()), (frontier, clean - dense::HUGE));
    // SAFETY: nobody uses anything of it.
    unsafe { os.give_back() };
}

#[test]
#[cfg(not(miri))]
fn dense_regions_do_not_walk_on_while_clean_memory_waits() {
    let (os, mut chunk, _alone) = chunk_of_singles(4 * dense::MANY);
    chunk.huge_pages = true;
    (2..=2 * dense::MANY).step_by(2).for_each(|unit| chunk.give_unused(unit, 1));
    let frontier = chunk.window.frontier();
    let run = chunk.take(1, Want::Dense).unwrap();
    assert!(run.zero && !run.dense && chunk.window.frontier() == frontier);
    // SAFETY: nobody uses anything of it.
    unsafe { os.give_back() };
}
