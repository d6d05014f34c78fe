//! Density: which slabs are worth being emptied, by a program that can move its blocks, and which ones are filled then.
//!
//! ```text
//!   slabs of a class with returned slots, by how many of their slots are out:
//!
//!     step    0   1   2   3   4   5   6   7   8   9  10  11  12  13  14  15
//!     slabs   2   9  30  41  60  50  22   7   1
//!             | sparse: as many as could ...|  dense: ... go into their free slots
//!                                       cut
//! ```
//!
//! Where `n` slabs of a class have `used` slots out, `used / capacity` slabs would do for them; the others can
//! be emptied, and to empty the sparsest is to move least. Slabs of the step that the cut goes through are told apart by
//! their addresses: the lower ones stay. A survey counts the slabs, two times in the order of addresses, when
//! the last one is [`INTERVAL_MS`] old and it takes no more than a hundredth of the time.
//!
//! What is moved goes into the next dense slab above the last one ([`find`]), lowest slot first, so the search goes
//! through the map once while all slabs are emptied.
//!
//! Not counted: slabs of first-class heaps, whose blocks must stay in them; slabs that are still being carved; classes of a page and
//! more, for the page of a free slot goes back to the kernel by itself.
//!
//! Everything here is advice, read from atomics without a lock. Who owns a slab looks again under its lock.
//!
//! The idea of moving blocks from sparse slabs into dense ones is redis's active defragmentation, which asks jemalloc's bins.
//!
//! Called by `cache`, `central` and `heap`.

#![forbid(unsafe_code)]

use super::{CACHES, Use};
use crate::address_map::{COMMON, Entry, Kind, MAP};
use crate::chunk;
use crate::os;
use crate::size_class::{self, CLASSES};
use crate::slab::{CARVE, Slab};
use crate::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Steps from empty to full.
const STEPS: usize = 16;
/// Milliseconds from one survey to the next, at least; and one of how many parts of the time they may take.
const INTERVAL_MS: u32 = 100;
const SHARE: u64 = 100;

/// Which slabs are sparse: those of a step below the upper half, and those of that step above the unit in the lower half.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Cut(u64);

impl Cut {
    /// None is.
    const NOTHING: Self = Self::new(0, u32::MAX);

    const fn new(step: usize, above: u32) -> Self {
        Self((step as u64) << 32 | above as u64)
    }

    fn has(self, step: usize, unit: usize) -> bool {
        let at = (self.0 >> 32) as usize;
        step < at || (step == at && unit > (self.0 as u32) as usize)
    }
}

static CUTS: [AtomicU64; CLASSES] = [const { AtomicU64::new(Cut::NOTHING.0) }; CLASSES];
/// Where [`find`] found the last one of each class, and the survey since which there is none.
static LAST: [AtomicUsize; CLASSES] = [const { AtomicUsize::new(0) }; CLASSES];
static NONE_SINCE: [AtomicU32; CLASSES] = [const { AtomicU32::new(0) }; CLASSES];
/// How many surveys there were, when the last one began, how many milliseconds must pass until the next, and up to which unit it looked.
static SURVEYS: AtomicU32 = AtomicU32::new(0);
static BEGAN_MS: AtomicU32 = AtomicU32::new(0);
static WAIT_MS: AtomicU32 = AtomicU32::new(0);
static FRONTIER: AtomicUsize = AtomicUsize::new(0);

/// The step of a slab of which `used` of `carved` slots are out, some of them but not all.
fn step(used: usize, carved: usize) -> usize {
    (used * STEPS / carved.max(1)).min(STEPS - 1)
}

/// The slabs of a class in a survey.
#[derive(Clone, Copy)]
struct Count {
    by_step: [u32; STEPS],
    /// Slots that are out of them.
    used: u64,
}

impl Count {
    const NONE: Self = Self { by_step: [0; STEPS], used: 0 };

    /// The step through which the cut goes, and how many slabs of it stay. `None`: nothing can be emptied.
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

/// The class and step of a slab that counts.
fn place(unit: usize) -> Option<(usize, usize, usize)> {
    let (_, entry) = MAP.lookup(MAP.address_of(unit).addr());
    let Kind::Slab(class) = entry.kind() else { return None };
    let slab = Slab::at(&MAP, unit, class);
    let (carved, free) = (slab.carved(), slab.free());
    let counts = free > 0
        && free < carved
        && size_class::size(class) < CARVE
        && !slab.has_untouched()
        && may_move(entry.owner());
    counts.then(|| (class, step(carved - free, carved), carved - free))
}

/// Whether blocks of an owner's may be replaced by another's: not those of a first-class heap.
fn may_move(owner: u32) -> bool {
    owner == COMMON || CACHES.get(owner).is_some_and(|cache| cache.owned_by() == Use::Thread)
}

/// Finds out which slabs are sparse, if that was found out too long ago.
pub(crate) fn look() {
    let now = os::coarse_ms();
    let began = BEGAN_MS.load(Ordering::Relaxed);
    if SURVEYS.load(Ordering::Relaxed) != 0
        && now.wrapping_sub(began) < WAIT_MS.load(Ordering::Relaxed)
    {
        return;
    }
    let takes = BEGAN_MS.compare_exchange(began, now, Ordering::Relaxed, Ordering::Relaxed);
    // Another thread is at it; or one that this handler interrupted has the lock.
    let Some(usage) = takes.ok().and_then(|_| chunk::usage_now()) else { return };
    let from = os::now_ns();
    survey(usage.frontier);
    let took_ms = (os::now_ns() - from) / 1_000_000;
    let wait = (took_ms * SHARE).clamp(INTERVAL_MS.into(), u32::MAX.into());
    WAIT_MS.store(wait as u32, Ordering::Relaxed);
    SURVEYS.store(SURVEYS.load(Ordering::Relaxed).wrapping_add(1).max(1), Ordering::Relaxed);
}

fn survey(frontier: usize) {
    let mut counts = [Count::NONE; CLASSES];
    for unit in 0..frontier {
        if let Some((class, step, used)) = place(unit) {
            counts[class].by_step[step] += 1;
            counts[class].used += used as u64;
        }
    }
    // How many slabs of the step that is cut still stay.
    let mut stay = [None; CLASSES];
    for (class, count) in counts.iter().enumerate() {
        stay[class] = count.cut(size_class::capacity(class));
        let cut = stay[class].map_or(Cut::NOTHING, |(step, _)| Cut::new(step, 0));
        CUTS[class].store(cut.0, Ordering::Relaxed);
    }
    for unit in 0..frontier {
        if let Some((class, step, _)) = place(unit)
            && let Some((at, left @ 1..)) = &mut stay[class]
            && *at == step
        {
            *left -= 1;
            CUTS[class].store(Cut::new(step, unit as u32).0, Ordering::Relaxed);
        }
    }
    FRONTIER.store(frontier, Ordering::Relaxed);
}

fn cut(class: usize) -> Cut {
    Cut(CUTS[class].load(Ordering::Relaxed))
}

/// Whether the slab at `unit` is one of those to be emptied.
pub(crate) fn is_sparse(unit: usize) -> bool {
    place(unit).is_some_and(|(class, step, _)| cut(class).has(step, unit))
}

/// Whether a slab is `mine`, has returned slots, and is not to be emptied.
fn is_dense(unit: usize, mine: Entry) -> bool {
    if MAP.lookup(MAP.address_of(unit).addr()).1 != mine {
        return false;
    }
    let Kind::Slab(class) = mine.kind() else { return false };
    let slab = Slab::at(&MAP, unit, class);
    slab.free() > 0 && slab.is_listed() && !is_sparse(unit)
}

/// The slab of `class` into which moved blocks go, of those whose entry is `mine`. The caller keeps others from
/// changing these. `None`: no slab of this kind has free slots and stays.
pub(super) fn find(mine: Entry, class: usize) -> Option<usize> {
    let last = LAST[class].load(Ordering::Relaxed);
    if is_dense(last, mine) {
        return Some(last);
    }
    let surveys = SURVEYS.load(Ordering::Relaxed);
    if NONE_SINCE[class].load(Ordering::Relaxed) == surveys {
        return None;
    }
    let frontier = FRONTIER.load(Ordering::Relaxed);
    let last = last.min(frontier);
    let found = (last..frontier).chain(0..last).find(|&unit| is_dense(unit, mine));
    match found {
        Some(unit) => LAST[class].store(unit, Ordering::Relaxed),
        None => NONE_SINCE[class].store(surveys, Ordering::Relaxed),
    }
    found
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;

    /// Slabs of `capacity` slots, of which so many are out.
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
        // Ten slabs at a half: five would do.
        assert_eq!(count(&[50; 10], 100).cut(100), Some((8, 5)));
        // 10 + 90 + 95 fit into two.
        assert_eq!(count(&[10, 90, 95], 100).cut(100), Some((1, 0)));
        // Together they need all three.
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
            // In the order of addresses.
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
