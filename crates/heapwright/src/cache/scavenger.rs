//! The scavenger: pages of partial slabs that nobody has wanted for a while.
//!
//! A slab with one slot out keeps its unit, but not the pages in which every
//! slot was returned. One pass over the partial slabs begins every purge delay;
//! each slow operation of the cache does a bounded step of it, so there is no
//! background thread and no long pause.
//!
//! ```text
//!   classes   0 .. done .. [this one] .. left ..  79
//!   its partial slabs      s -> s -> [next] -> s        purge if left alone
//! ```
//!
//! Before either, a few runs of the chunk that have waited too long are purged:
//! nobody else may be coming by there.
//!
//! Invariants: `next` is 0 or a slab of this class's partial list; whoever takes
//! a slab out of that list moves `next` on first (`Cache::unlist`).
//!
//! Called by the slow paths of `cache`.

use core::cell::Cell;

use super::Cache;
use crate::address_map::MAP;
use crate::chunk;
use crate::os;
use crate::size_class::CLASSES;
use crate::slab::{SYSTEM, Slab};

/// Slabs that the scavenger looks at in one step, and purges.
const LOOKS: usize = 64;
const PURGES: usize = 8;

/// A slow walk over the partial slabs, that gives pages back which nobody has
/// wanted for a while. One pass begins every purge delay; each slow operation
/// of the cache does a bounded step of it.
pub(super) struct Scavenger {
    /// The time of the last step, in milliseconds: the clock of all slow paths.
    pub(super) now: Cell<u32>,
    /// When it last looked for runs of the chunk that have waited too long.
    looked: Cell<u32>,
    /// When the last pass began.
    pub(super) began: Cell<u32>,
    /// Classes still to be walked, this one included; 0 between passes.
    pub(super) classes_left: Cell<usize>,
    /// The next slab, or 0.
    pub(super) next: Cell<usize>,
}

impl Cache {
    /// A bounded step towards giving back the pages of partial slabs that have
    /// been left alone for a purge delay. Called by the slow paths.
    pub(crate) fn scavenge(&self) {
        let scavenger = &self.scavenger;
        let now = os::coarse_ms();
        scavenger.now.set(now);
        let Some(delay) = chunk::purge_delay() else { return };
        if chunk::waited(scavenger.looked.get(), now) > delay / 8 {
            scavenger.looked.set(now);
            chunk::purge_waiting(now);
        }
        if scavenger.classes_left.get() == 0 {
            if chunk::waited(scavenger.began.get(), now) < delay {
                return;
            }
            scavenger.began.set(now);
            self.stash.pass();
            super::cool_resting(now, delay);
            scavenger.classes_left.set(CLASSES);
            scavenger.next.set(self.bins[0].partial.first().unwrap_or(0));
        }
        let mut purges = 0;
        for _ in 0..LOOKS {
            let class = CLASSES - scavenger.classes_left.get();
            let unit = scavenger.next.get();
            if unit == 0 {
                scavenger.classes_left.set(scavenger.classes_left.get() - 1);
                let Some(bin) = self.bins.get(class + 1) else { return };
                scavenger.next.set(bin.partial.first().unwrap_or(0));
                continue;
            }
            scavenger.next.set(self.bins[class].partial.after(&MAP, unit).unwrap_or(0));
            let slab = Slab::at(&MAP, unit, class);
            if chunk::waited(slab.stamp(), now) >= delay {
                let given = slab.purge(&SYSTEM);
                chunk::note_purged(given);
                purges += usize::from(given > 0);
                if purges == PURGES {
                    return;
                }
            }
        }
    }
}
