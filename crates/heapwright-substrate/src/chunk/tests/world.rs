//! The model, the operations on it and the chunk, and the checks after each step.

extern crate std;

use std::boxed::Box;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;
use proptest::sample::Index;

use super::super::*;
use crate::address_map::SIDE_BITMAP;
use crate::os::System;
use crate::os::fake::Fake;
use crate::unit_record::Record;

pub(super) const MIB: usize = 1 << 20;
pub(super) const WINDOW: usize = if cfg!(miri) { 4 * MIB } else { 16 * MIB };
/// Under Miri there are only large pages, because the fake counts every page.
pub(super) const PAGES: [usize; 3] =
    if cfg!(miri) { [64 << 10; 3] } else { [4 << 10, 16 << 10, 64 << 10] };
pub(super) const MARKED: usize = if cfg!(miri) { UNIT } else { 4096 };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    /// Reserved all at once.
    Generous,
    /// Reserved in pieces, under a limit of address space.
    Piecewise,
}

#[derive(Clone, Debug)]
pub(super) enum Op {
    /// Takes a run; `hard`: purges and tries again, as `chunk::take` does.
    Take { units: usize, want_zero: bool, hard: bool },
    /// Takes a run and gives it back untouched.
    Unused { units: usize },
    /// Gives the end of a taken run back, or all of it.
    Give { which: Index, keep: Index, all: bool },
    /// Lengthens a taken run in place.
    Extend { which: Index, more: usize },
    /// Lets time pass, and detaches an expired run.
    Expire { wait: u32, delay: i32 },
    /// Puts a detached run back, purged or not.
    Attach { which: Index, purge: bool },
    /// Purges all but this number of units.
    PurgeAll { keep: usize },
    /// Makes all free runs inaccessible, as under a limit of writable memory.
    Retract,
    /// Sets a limit of address space in units.
    GiveUp { most: usize },
    /// Maps foreign memory, if the place is free.
    Foreign { at: usize, units: usize },
}

pub(super) fn op() -> impl Strategy<Value = Op> {
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
        1 => Just(Op::Retract),
        1 => (0..=WINDOW / UNIT).prop_map(|most| Op::GiveUp { most }),
        1 => (1..WINDOW / UNIT, 1..32usize).prop_map(|(at, units)| Op::Foreign { at, units }),
    ]
}

pub(super) fn ops(most: usize) -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 1..if cfg!(miri) { most / 4 } else { most })
}

#[derive(Clone, Copy)]
pub(super) struct Taken {
    pub(super) unit: usize,
    pub(super) units: usize,
}

impl Taken {
    pub(super) fn end(self) -> usize {
        self.unit + self.units
    }
}

/// Piecewise windows may lie close together (see `os::fake`). So tests open windows one at a time.
pub(super) static ALONE: Mutex<()> = Mutex::new(());

pub(super) fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) struct World {
    _alone: MutexGuard<'static, ()>,
    pub(super) os: Fake,
    pub(super) space: Space,
    pub(super) map: &'static AddressMap,
    pub(super) chunk: Chunk<Fake>,
    pub(super) taken: Vec<Taken>,
    pub(super) detached: Vec<(usize, usize)>,
    pub(super) foreign: Vec<(*mut u8, usize)>,
    pub(super) given_at: Vec<u32>,
    pub(super) now: u32,
    pub(super) refusing: bool,
}

pub(super) fn marks(
    map: &AddressMap,
    unit: usize,
    units: usize,
) -> impl Iterator<Item = *mut usize> {
    let base = map.address_of(unit);
    (0..units * UNIT / MARKED)
        .flat_map(move |page| [page * MARKED, (page + 1) * MARKED - size_of::<usize>()])
        .map(move |at| base.wrapping_add(at).cast())
}

impl World {
    pub(super) fn closed(space: Space, page: usize) -> Self {
        let limit = (space == Space::Piecewise).then_some(WINDOW);
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
            // Times wrap around in the middle of a test.
            now: u32::MAX - 200,
            refusing: false,
        }
    }

    pub(super) fn open(space: Space, page: usize) -> Self {
        let mut world = Self::closed(space, page);
        assert!(world.chunk.open(WINDOW));
        world
    }

    pub(super) fn frontier(&self) -> usize {
        self.chunk.window.frontier()
    }

    pub(super) fn span(&self) -> usize {
        self.chunk.window.span_bytes() / UNIT
    }

    pub(super) fn kind(&self, unit: usize) -> Kind {
        self.map.lookup(self.map.address_of(unit).addr()).1.kind()
    }

    pub(super) fn is_zero(&self, unit: usize, units: usize) -> bool {
        // SAFETY: callers pass only runs below the frontier, which are committed.
        marks(self.map, unit, units).all(|word| unsafe { word.read() } == 0)
    }

    pub(super) fn fill(&self, unit: usize, units: usize) {
        for word in marks(self.map, unit, units) {
            // SAFETY: the run was handed out, so it is committed and ours.
            unsafe { word.write(!word.addr()) };
        }
    }

    pub(super) fn is_filled(&self, unit: usize, units: usize) -> bool {
        // SAFETY: the run was handed out, so it is committed and ours.
        marks(self.map, unit, units).all(|word| unsafe { word.read() } == !word.addr())
    }

    pub(super) fn receive(&self, unit: usize, units: usize, zero: bool) {
        assert!(unit > 0 && unit + units <= self.frontier());
        assert!((unit..unit + units).all(|at| self.kind(at) == Kind::Free));
        assert!(self.os.is_committed(self.map.address_of(unit), units * UNIT), "not committed");
        for taken in &self.taken {
            assert!(unit + units <= taken.unit || unit >= taken.end(), "handed out twice");
        }
        assert!(!zero || self.is_zero(unit, units), "does not read as zero");
        self.fill(unit, units);
    }

    pub(super) fn take(&mut self, units: usize, want_zero: bool) -> Option<Run> {
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

    pub(super) fn give(&mut self, which: usize, keep: usize) {
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

    pub(super) fn extend(&mut self, which: usize, more: usize) {
        let run = self.taken[which];
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

    pub(super) fn expire(&mut self, wait: u32, delay: i32) {
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

    pub(super) fn attach(&mut self, which: usize, purge: bool) {
        let run = self.detached.swap_remove(which);
        let purged = purge && Chunk::<Fake>::purge_run(self.map, &self.os, run);
        if !purged {
            self.given_at[run.0..run.0 + run.1].fill(self.now);
        }
        self.chunk.attach(run, purged, self.now);
    }

    pub(super) fn purge_all(&mut self, keep: usize) {
        let before = self.chunk.dirty.units();
        let purged = self.chunk.purge_all(keep);
        let left = self.chunk.dirty.units();
        assert_eq!(before - left, purged);
        assert!(left <= keep || self.refusing);
    }

    pub(super) fn retract(&mut self) {
        let free = self.chunk.dirty.units() + self.chunk.clean.units();
        let retracted = self.chunk.retract_free();
        let left = self.chunk.dirty.units() + self.chunk.clean.units();
        assert_eq!(left < free, retracted);
        assert!(left == 0 || self.refusing || !self.chunk.window.is_generous());
        for (unit, units) in self.chunk.dirty.all() {
            let stamp = self.map.record(unit).stamp.load(Ordering::Relaxed);
            self.given_at[unit..unit + units].fill(stamp);
        }
    }

    pub(super) fn give_up(&mut self, most: usize) {
        self.chunk.become_piecewise(|window| window.set_limit(most * UNIT));
        if os::TABLE_ADJACENT && self.space == Space::Generous {
            self.space = Space::Piecewise;
            let committed = self.chunk.window.committed_bytes();
            let units = most.next_power_of_two().max(committed / UNIT);
            let sides = units * (size_of::<Record>() + SIDE_BITMAP + size_of::<u32>());
            let kept = self.os.reserved_bytes();
            assert!(kept <= committed + sides + 4 * self.os.page_size(), "{kept} of {committed}");
        }
    }

    pub(super) fn apply(&mut self, op: &Op) {
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
            Op::Retract => self.retract(),
            Op::GiveUp { most } => self.give_up(most),
            Op::Foreign { at, units } if at + units <= self.span() => {
                self.map_foreign(at, units);
            }
            _ => {}
        }
        self.check();
    }

    pub(super) fn map_foreign(&mut self, unit: usize, units: usize) -> *mut u8 {
        let at = System.reserve_at(self.map.address_of(unit).addr(), units * UNIT);
        if !at.is_null() {
            self.foreign.push((at, units * UNIT));
        }
        at
    }

    /// Every unit below the frontier is in exactly one place.
    pub(super) fn check(&self) {
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
                    let stay = self.chunk.window.is_generous();
                    let mut all = (0..units).map(|unit| at.addr() + unit * UNIT);
                    assert!(
                        all.all(|at| self.os.is_reserved(at) == stay),
                        "absent, and still here"
                    );
                    assert!(!self.os.is_committed(at, UNIT));
                } else {
                    assert!(self.os.is_committed(at, units * UNIT));
                }
                for tag in [unit, unit + units - 1] {
                    let record = self.map.record(tag);
                    assert_eq!(record.units.load(Ordering::Relaxed) as usize, units, "tags");
                    assert_eq!(record.state.load(Ordering::Relaxed), state as u8, "tags");
                }
            }
            // Halves of an absent run with a foreign mapping stay apart.
            let halved = state == State::Absent && !self.foreign.is_empty();
            let apart = runs.windows(2).all(|pair| pair[0].0 + pair[0].1 < pair[1].0);
            assert!(apart || halved, "neighbours that were not merged: {runs:?}");
        }
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

    pub(super) fn check_queue(&self, dirty: Vec<(usize, usize)>) {
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

    pub(super) fn finish(mut self) {
        self.os.refuse_nothing();
        self.refusing = false;
        while !self.detached.is_empty() {
            self.attach(0, true);
        }
        while !self.taken.is_empty() {
            self.give(0, 0);
        }
        self.purge_all(0);
        if self.chunk.absent.units() > 0 {
            self.retract();
        }
        self.check();
        let mut clean = self.chunk.clean.all();
        assert!(clean.is_empty() || !self.chunk.window.is_limited());
        clean.extend(self.chunk.absent.all());
        clean.sort_unstable();
        let foreign = (1..self.frontier()).filter(|&unit| self.kind(unit) == Kind::Foreign);
        let pieces = 1 + foreign.clone().filter(|&at| self.kind(at - 1) != Kind::Foreign).count();
        let merged = clean.len() <= pieces || !self.foreign.is_empty();
        assert!(merged, "free runs that did not merge: {clean:?}");
        let units = clean.iter().map(|run| run.1).sum::<usize>();
        assert_eq!(units, self.frontier() - 1 - foreign.count());
        // A foreign mapping may lie in an absent run, which comes back only without the mapping.
        for &(at, size) in &self.foreign {
            // SAFETY: the test mapped it, and only the test knows of it.
            unsafe { System.release(at, size) };
        }
        // If two pieces have the same length, `take` may find either.
        let absent = self.chunk.absent.units() > 0;
        assert!(absent || clean.iter().all(|&(unit, units)| self.is_zero(unit, units)));
        for &(_, units) in clean.iter().rev() {
            let found = self.take(units, true).expect("a free run of this size");
            assert!(found.zero);
        }
        assert_eq!(self.chunk.clean.units() + self.chunk.absent.units(), 0);
        // SAFETY: the world ends here, and with it all users of the window.
        unsafe { self.os.give_back() };
    }
}
