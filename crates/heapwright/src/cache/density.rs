//! Density: which slabs to empty for a program that can move its blocks, and where the blocks go.
//!
//! ```text
//!   slabs of one owner and class with returned slots, by the share of their slots in use:
//!
//!     step    0   1   2   3   4   5   6   7   8   9  10  11  12  13  14  15
//!     slabs   2   9  30  41  60  50  22   7   1
//!             | sparse: to be emptied       |  dense: their free slots take the blocks
//!                                       cut
//! ```
//!
//! If `n` slabs have `used` slots in use, `used / capacity` slabs suffice. The other slabs can be
//! emptied, and emptying the sparsest slabs moves the fewest blocks. In the step at the cut, the
//! slabs at lower addresses stay.
//!
//! All counts are for one owner (a thread's cache, or the common owner), whose *census* holds the
//! data. A *survey* walks the map twice, by address, and updates a census. Surveys are at least
//! [`INTERVAL_MS`] apart, and take at most a hundredth of the time. There are few censuses, because
//! programs move blocks in one thread. A census with an old survey is reused for another owner.
//!
//! Everything here is advice, read from atomics without a lock, and may be out of date. A thread
//! that takes or returns a slot checks the slab's entry again under the owner's lock.
//!
//! The idea is from redis's active defragmentation, which uses the counts of jemalloc's bins.
//!
//! Called by `slabs`, `central` and `heap::control`.

#![forbid(unsafe_code)]

use crate::address_map::{Entry, Kind, MAP};
use crate::chunk;
use crate::os::{self, Memory, SYSTEM};
use crate::size_class::{self, CLASSES};
use crate::slab::Slab;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::ticks::Kept;
use crate::unit_list::{BySize, UnitList};

const STEPS: usize = 16;
/// The fewest milliseconds between surveys. Surveys take at most one part in [`SHARE`] of the time.
const INTERVAL_MS: u32 = 100;
const SHARE: u64 = 100;
/// The longest survey in nanoseconds, plus a part for each unit. A longer one was interrupted.
const LONGEST_NS: u64 = 50_000;
const LONGEST_OF_UNIT_NS: u64 = 100;
/// Slabs that the search for one block checks.
const LOOKS: usize = 64;
const OWNERS: usize = 4;

/// Where sparse slabs end: a step (upper half) and a unit. Slabs of a lower step are sparse, and so
/// are slabs of this step above the unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Cut(u64);

impl Cut {
    /// No slab is sparse.
    const NOTHING: Self = Self::new(0, u32::MAX);

    const fn new(step: usize, above: u32) -> Self {
        Self((step as u64) << 32 | above as u64)
    }

    fn step(self) -> usize {
        (self.0 >> 32) as usize
    }

    fn has(self, step: usize, unit: usize) -> bool {
        step < self.step() || (step == self.step() && unit > (self.0 as u32) as usize)
    }
}

/// `used` is above 0 and below `carved`.
fn step(used: usize, carved: usize) -> usize {
    (used * STEPS / carved.max(1)).min(STEPS - 1)
}

#[derive(Clone, Copy)]
struct Count {
    by_step: [u32; STEPS],
    used: u64,
}

impl Count {
    const NONE: Self = Self { by_step: [0; STEPS], used: 0 };

    /// The cut's step, and how many of its slabs stay. `None` if no slab can be emptied.
    fn cut(&self, capacity: usize) -> Option<(usize, u32)> {
        let slabs: u32 = self.by_step.iter().sum();
        let needed = self.used.div_ceil(capacity as u64);
        let mut spare = u64::from(slabs).saturating_sub(needed);
        if spare == 0 {
            return None;
        }
        for (step, &here) in self.by_step.iter().enumerate() {
            if spare <= u64::from(here) {
                return Some((step, here - spare as u32));
            }
            spare -= u64::from(here);
        }
        None
    }
}

/// A counted slab. Slabs with untouched slots do not count. Nor do slabs of classes of whole pages:
/// the pages of their free slots go back to the kernel without this.
struct Place {
    used: usize,
    step: usize,
}

impl Place {
    /// Returns `None` if the slab is not counted.
    fn of(unit: usize, class: usize) -> Option<Self> {
        let slab = Slab::at(&MAP, unit, class);
        let (carved, free) = (slab.carved(), slab.free());
        let is_partial = free > 0 && free < carved && !slab.has_untouched();
        let counts = is_partial && !size_class::size(class).is_multiple_of(SYSTEM.page_size());
        let used = carved.saturating_sub(free);
        counts.then(|| Self { used, step: step(used, carved) })
    }
}

struct Census {
    /// The owner's id, or 0.
    owner: AtomicU32,
    /// Held for a survey, or to take the census for another owner.
    turn: Kept<()>,
    /// Whether there was a survey, and when the next is due.
    is_surveyed: AtomicBool,
    again_ms: AtomicU32,
    cuts: [AtomicU64; CLASSES],
    /// For each class, the slab that was found last or is next, and how many failed since.
    last: [AtomicU32; CLASSES],
    missed: [AtomicU32; CLASSES],
}

static CENSUSES: [Census; OWNERS] = [const {
    Census {
        owner: AtomicU32::new(0),
        turn: Kept::new(()),
        is_surveyed: AtomicBool::new(false),
        again_ms: AtomicU32::new(0),
        cuts: [const { AtomicU64::new(Cut::NOTHING.0) }; CLASSES],
        last: [const { AtomicU32::new(0) }; CLASSES],
        missed: [const { AtomicU32::new(0) }; CLASSES],
    }
}; OWNERS];

impl Census {
    fn existing(owner: u32) -> Option<&'static Self> {
        CENSUSES.iter().find(|census| census.owner.load(Ordering::Relaxed) == owner)
    }

    /// An owner's census, or an unused one, or one with an old survey. `None` if all are in use.
    fn of(owner: u32, now: u32) -> Option<&'static Self> {
        if let Some(census) = Self::existing(owner) {
            return Some(census);
        }
        let is_old = |census: &&Self| census.is_due(now.wrapping_sub(INTERVAL_MS));
        let unused = CENSUSES.iter().find(|census| census.owner.load(Ordering::Relaxed) == 0);
        let census = unused.or_else(|| CENSUSES.iter().find(is_old))?;
        // No thread makes a survey for the census in the meantime.
        let is_taken = census.turn.with(|()| {
            for cut in &census.cuts {
                cut.store(Cut::NOTHING.0, Ordering::Relaxed);
            }
            census.is_surveyed.store(false, Ordering::Relaxed);
            census.owner.store(owner, Ordering::Relaxed);
        });
        is_taken.map(|()| census)
    }

    fn is_due(&self, now: u32) -> bool {
        let again = self.again_ms.load(Ordering::Relaxed);
        !self.is_surveyed.load(Ordering::Relaxed) || now.wrapping_sub(again).cast_signed() >= 0
    }

    /// Makes a survey, if the last one is too old and no other thread makes one now.
    fn look(&self, now: u32) {
        if !self.is_due(now) {
            return;
        }
        self.turn.with(|()| {
            // Another survey may have just ended. If the chunk is locked, the frontier is unknown.
            if self.is_due(now)
                && let Some(usage) = chunk::usage_now()
            {
                let began = os::now_ns();
                self.survey(usage.frontier);
                let longest = LONGEST_NS + LONGEST_OF_UNIT_NS * usage.frontier as u64;
                let took_ms = (os::now_ns() - began).min(longest) * SHARE / 1_000_000;
                let wait = INTERVAL_MS.max(took_ms as u32);
                self.again_ms.store(os::coarse_ms().wrapping_add(wait), Ordering::Relaxed);
                self.is_surveyed.store(true, Ordering::Relaxed);
            }
        });
    }

    fn survey(&self, frontier: usize) {
        let owner = self.owner.load(Ordering::Relaxed);
        let mut counts = [Count::NONE; CLASSES];
        each_slab(owner, frontier, |unit, class| {
            if let Some(place) = Place::of(unit, class) {
                counts[class].by_step[place.step] += 1;
                counts[class].used += place.used as u64;
            }
        });
        // Each class's cut, and how many slabs of its step may still stay.
        let mut cuts = [(Cut::NOTHING, 0); CLASSES];
        for (class, count) in counts.iter().enumerate() {
            if let Some((step, stay)) = count.cut(size_class::capacity(class)) {
                cuts[class] = (Cut::new(step, 0), stay);
            }
        }
        each_slab(owner, frontier, |unit, class| {
            let (cut, stay) = &mut cuts[class];
            if *stay > 0
                && let Some(place) = Place::of(unit, class)
                && cut.step() == place.step
            {
                (*cut, *stay) = (Cut::new(place.step, unit as u32), *stay - 1);
            }
        });
        for (class, (cut, _)) in cuts.iter().enumerate() {
            self.cuts[class].store(cut.0, Ordering::Relaxed);
            self.missed[class].store(0, Ordering::Relaxed);
        }
    }

    fn cut(&self, class: usize) -> Cut {
        Cut(self.cuts[class].load(Ordering::Relaxed))
    }

    fn is_sparse(&self, unit: usize, class: usize) -> bool {
        Place::of(unit, class).is_some_and(|place| self.cut(class).has(place.step, unit))
    }
}

/// Visits the owner's slabs with their classes, by address.
fn each_slab(owner: u32, frontier: usize, mut visit: impl FnMut(usize, usize)) {
    let mut unit = 0;
    while unit < frontier {
        let (_, entry) = MAP.lookup(MAP.address_of(unit).addr());
        let mut units = 1;
        match entry.kind() {
            Kind::Slab(class) if entry.owner() == owner => visit(unit, class),
            Kind::LargeHead => {
                units = (MAP.record(unit).units.load(Ordering::Relaxed) as usize).max(1);
            }
            _ => {}
        }
        unit += units;
    }
}

/// Whether the slab should be emptied.
pub(crate) fn is_sparse(owner: u32, unit: usize, class: usize) -> bool {
    let now = os::coarse_ms();
    Census::of(owner, now).is_some_and(|census| {
        census.look(now);
        census.is_sparse(unit, class)
    })
}

/// Takes a returned slot for a moved block, in a dense slab with the entry `mine`. `partial` has
/// all slabs with returned slots. The owner has `slabs` slabs of the class. `unlist` removes a slab
/// without more such slots. The caller must hold the owner's lock. `None` if no slab was found.
pub(super) fn take(
    mine: Entry,
    partial: &UnitList<BySize>,
    slabs: usize,
    unlist: impl FnOnce(Slab<'_>),
) -> Option<*mut u8> {
    let census = Census::existing(mine.owner())?;
    let Kind::Slab(class) = mine.kind() else { return None };
    let unit = find(census, mine, class, partial, slabs)?;
    let slab = Slab::at(&MAP, unit, class);
    let block = slab.take(1, os::coarse_ms())?.head;
    if slab.free() == 0 {
        let next = partial.after(&MAP, unit).unwrap_or(0);
        census.last[class].store(next as u32, Ordering::Relaxed);
        unlist(slab);
    }
    Some(block.cast())
}

/// The next dense slab in `partial`, among at most [`LOOKS`] slabs. After a whole round in vain,
/// finds nothing until the next survey.
fn find(
    census: &Census,
    mine: Entry,
    class: usize,
    partial: &UnitList<BySize>,
    slabs: usize,
) -> Option<usize> {
    let (last, missed) = (&census.last[class], &census.missed[class]);
    if missed.load(Ordering::Relaxed) as usize > slabs {
        return None;
    }
    let mut at = Some(last.load(Ordering::Relaxed) as usize).filter(|&unit| {
        MAP.lookup(MAP.address_of(unit).addr()).1 == mine && Slab::at(&MAP, unit, class).is_listed()
    });
    for looked in 0..LOOKS {
        let unit = at.or_else(|| partial.first())?;
        if !census.is_sparse(unit, class) {
            last.store(unit as u32, Ordering::Relaxed);
            missed.store(0, Ordering::Relaxed);
            return Some(unit);
        }
        at = partial.after(&MAP, unit);
        missed.store(missed.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
        if looked + 1 == LOOKS {
            last.store(at.unwrap_or(0) as u32, Ordering::Relaxed);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;

    /// Slabs with these numbers of slots in use.
    fn count(used: &[usize], capacity: usize) -> Count {
        let mut count = Count::NONE;
        for &used in used {
            count.by_step[step(used, capacity)] += 1;
            count.used += used as u64;
        }
        count
    }

    #[test]
    fn the_sparsest_slabs_are_emptied_and_as_few_stay_as_hold_all() {
        // Ten slabs at a half: five suffice.
        assert_eq!(count(&[50; 10], 100).cut(100), Some((8, 5)));
        // 10 + 90 + 95 fit into two slabs.
        assert_eq!(count(&[10, 90, 95], 100).cut(100), Some((1, 0)));
        // 60 + 90 + 95 need all three slabs.
        assert_eq!(count(&[60, 90, 95], 100).cut(100), None);
        assert_eq!(count(&[], 100).cut(100), None);
        assert_eq!(count(&[1], 100).cut(100), None);
    }

    #[test]
    fn what_stays_has_room_for_what_is_moved() {
        let mut seed = 1u64;
        let mut random = |below: usize| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % below
        };
        for _ in 0..2000 {
            let capacity = 16 + random(2000);
            let slabs: Vec<usize> = (0..1 + random(60)).map(|_| 1 + random(capacity - 1)).collect();
            let Some((at, stays)) = count(&slabs, capacity).cut(capacity) else { continue };
            let mut stays = stays as usize;
            let (mut moved, mut room, mut emptied) = (0, 0, 0);
            // (In the order of addresses.)
            for &used in &slabs {
                let step = step(used, capacity);
                let is_emptied = step < at
                    || (step == at && {
                        let goes = stays == 0;
                        stays = stays.saturating_sub(1);
                        goes
                    });
                if is_emptied {
                    moved += used;
                    emptied += 1;
                } else {
                    room += capacity - used;
                }
            }
            let total: usize = slabs.iter().sum();
            assert_eq!(emptied, slabs.len() - total.div_ceil(capacity), "{slabs:?} of {capacity}");
            assert!(moved <= room, "{moved} in {room}");
        }
    }

    #[test]
    fn a_cut_tells_slabs_of_its_step_apart_by_address() {
        let cut = Cut::new(5, 40);
        assert!(cut.has(4, 1) && cut.has(4, 90) && cut.has(5, 41));
        assert!(!cut.has(5, 40) && !cut.has(6, 90) && !Cut::NOTHING.has(0, 7));
    }
}
