//! A size class's slabs: extents that never change their class, slots drawn at random, guards
//! between.
//!
//! ```text
//!   extent   | gap | slab | slab | ... 7 | guard | slab | ... | gap |      light
//!            | gap | slab | guard | slab | guard | ......... | gap |       full
//!              1 to 16 units at random       the first slab of an extent is a random one, and then in a circle
//!
//!   slab     bits: which slots are free (`slab`)      words: what each slot is (`slots`)
//! ```
//!
//! A slab's slots are *opened* a few pages at a time (light) or all at once (full), and drawn at
//! random among those that are free. What is free reads as zero. With `hardened:full` slots are
//! drawn from slabs only while an eighth as many are free as are out: else from a new slab. So a
//! freed slot waits among many before it comes again.
//!
//! The memory of a slab without a slot out goes back to the kernel when as many were idle for a
//! while, but for an eighth of the class's slabs (`pass`): a program that frees and allocates in
//! turns does not fault it in each time. Its addresses are never used for another class, so a
//! pointer that is left over leads at worst to a block of its own class.
//!
//! With `hardened:full` calls that come with a token (`__alloc_token_*`) have classes of their own,
//! in four groups: blocks of two groups never lie in one slab, nor in one another's place later.
//! They come from no ring: a freed slot waits with its class.
//!
//! One more class has the blocks of no bytes: all of its extents are guarded, so that no access of
//! one succeeds.
//!
//! Invariants: everything here is touched with the class's lock, which is taken with no other lock
//! of this heap and before the chunk's. A slab is listed while it has free slots, or slots that
//! were never opened.
//!
//! Called by `cache` and `mod`.

use core::iter;
use core::ptr;

use super::judge::{self, Wrong};
use super::random::Random;
use super::settings;
use super::slots::{self, Free, Slot};
use super::word::{IN_RING, IN_SLAB};
use crate::address_map::{
    Entry, HARDENED, HARDENED_EMPTY, HARDENED_GROUP, HARDENED_GROUPS, Kind, MAP,
};
use crate::chunk::{self, Want};
use crate::os::{self, Memory, SYSTEM, prefetch};
use crate::size_class::{self, CLASSES, UNIT};
use crate::slab::{Slab, WayBack};
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{self, Guard, Lock};
use crate::unit_list::{BySize, UnitList};

/// The class of blocks of no bytes; its slots are those of class 0.
pub(super) const EMPTY: usize = CLASSES;
/// The classes of the first group: as many as there are without groups. Those of the others follow.
const GROUPED: usize = EMPTY + 1;
const GROUPS: usize = HARDENED_GROUPS as usize;
const ALL_CLASSES: usize = GROUPED + GROUPS * CLASSES;

/// The class of a group's slots of a class.
pub(super) fn grouped(class: usize, group: usize) -> usize {
    GROUPED + group * CLASSES + class
}

/// The class that the slots of a class of any group, or of no bytes, are of, and the owner of its
/// slabs.
fn slots_of(class: usize) -> (usize, u32) {
    match class.checked_sub(GROUPED) {
        Some(at) => (at % CLASSES, HARDENED_GROUP + (at / CLASSES) as u32),
        None if class == EMPTY => (0, HARDENED_EMPTY),
        None => (class, HARDENED),
    }
}

/// The group that a slab belongs to, by its unit's entry. `None`: it is no slab, or of none.
pub(super) fn group_of(entry: Entry) -> Option<usize> {
    let Kind::Slab(_) = entry.kind() else { return None };
    let group = entry.owner().checked_sub(HARDENED_GROUP)?;
    (group < HARDENED_GROUPS).then_some(group as usize)
}
/// Bytes of slots that are opened at a time.
const OPENED: usize = 8 << 10;
/// And how many they are at least.
const LEAST_OPENED: usize = 8;
/// Units of a class's first extent, and of the largest.
const FIRST_EXTENT: usize = 4;
const MOST_EXTENT: usize = 256;
/// A gap is so many units at most.
const MOST_GAP: usize = 16;
/// Of so many units one is a guard.
const GUARD_EVERY_LIGHT: usize = 8;
const GUARD_EVERY_FULL: usize = 2;
/// Slabs without a slot out keep their memory up to one of so many.
const KEPT: usize = 8;
/// The others keep it until none of them was needed for so many milliseconds.
const DELAY: u32 = 100;

/// When idle slabs are looked at next, in milliseconds, or [`NEVER`].
static DUE: AtomicU32 = AtomicU32::new(NEVER);
const NEVER: u32 = 0;

/// Slabs whose memory goes back at a time, and milliseconds until more goes.
const MOST_PURGED: usize = 64;
const SOON: u32 = 1;

fn after(now: u32, delay: u32) -> u32 {
    now.wrapping_add(delay).max(1)
}

/// Units taken for a class, some of which are not slabs yet.
struct Extent {
    first: usize,
    units: usize,
    /// The place of the slab that comes next, and how many places are left.
    next: usize,
    left: usize,
}

/// What a class has.
pub(super) struct Class {
    /// Slabs from which slots can be drawn.
    listed: UnitList<BySize>,
    last: usize,
    extent: Extent,
    /// Units of slabs.
    units: usize,
    /// Slots that are free and opened, and slots that are out.
    free: usize,
    out: usize,
    /// Slabs that have no slot out, and memory; and the fewest that there were since they were
    /// looked at last.
    idle: usize,
    spared: usize,
    random: Random,
    /// Of a group's class: freed slots that wait, in a circle, and where the next one goes. Null:
    /// none is there.
    waiting: [*mut u8; WAITING],
    waits: usize,
}

// SAFETY: the pointers lead to slots, which nobody accesses by them but the holder of the lock.
unsafe impl Send for Class {}

/// Freed slots of a group's class that wait, as many as stay in a thread's ring with
/// `hardened:full`.
const WAITING: usize = 32;

static ALL: [Lock<Class>; ALL_CLASSES] = [const { Lock::new(Class::new()) }; ALL_CLASSES];

/// The class, locked. `None`: this is a signal handler that may have interrupted the holder.
fn lock(class: usize) -> Option<Guard<'static, Class>> {
    if sync::is_interrupted() { ALL[class].try_lock() } else { Some(ALL[class].lock()) }
}

/// Draws up to `most` slots of a class, and gives them to `sink`: they are in a ring from then on.
/// Returns how many; 0: there is no memory, or the lock cannot be waited for.
pub(super) fn draw(class: usize, most: usize, mut sink: impl FnMut(Slot)) -> usize {
    // The chunk's lock, too, is one that a signal handler does not wait for.
    let may_grow = !sync::is_interrupted();
    let Some(mut it) = lock(class) else { return 0 };
    let it = &mut *it;
    let mut drawn = 0;
    while drawn < most {
        let Some(unit) = it.slab_to_draw_from(class, may_grow) else { break };
        drawn += it.draw_from(class, unit, most - drawn, &mut sink);
    }
    it.out += drawn;
    drawn
}

/// Takes slots back that are in a ring. False: the lock cannot be waited for, and they are where
/// they were.
pub(super) fn put(class: usize, slots: impl Iterator<Item = Free>) -> bool {
    let Some(mut it) = lock(class) else { return false };
    it.put(class, slots);
    true
}

/// Takes a slot of a group's class, that was just freed. It waits until as many others were. False:
/// the lock cannot be waited for.
pub(super) fn put_to_wait(class: usize, slot: Slot) -> bool {
    let Some(mut it) = lock(class) else { return false };
    let at = it.waits;
    it.waits = (at + 1) % WAITING;
    let out = core::mem::replace(&mut it.waiting[at], slot.block);
    if let Some((oldest, _)) = Slot::of(out.addr()) {
        it.put(class, iter::once(oldest.as_free()));
    }
    true
}

/// Gives the memory of slabs back that were not needed for a while, if it is time, of
/// [`MOST_PURGED`] at most. A slow path calls this, which holds no lock.
pub(super) fn pass(now: u32) {
    let due = DUE.load(Ordering::Relaxed);
    let is_time = due != NEVER && now.wrapping_sub(due) < u32::MAX / 2;
    let order = Ordering::Relaxed;
    if !is_time || DUE.compare_exchange(due, NEVER, order, order).is_err() {
        return;
    }
    let (mut most, mut is_more_idle) = (MOST_PURGED, false);
    for class in (0..ALL_CLASSES).filter(|&class| class != EMPTY) {
        is_more_idle |= ALL[class].try_lock().is_none_or(|mut it| it.purge_idle(class, &mut most));
    }
    if is_more_idle {
        let delay = if most == 0 { SOON } else { DELAY };
        DUE.store(after(now, delay), Ordering::Relaxed);
    }
}

/// Gives the memory of all slabs without a slot out back. Returns bytes.
pub(super) fn trim() -> usize {
    let mut given = 0;
    for class in (0..ALL_CLASSES).filter(|&class| class != EMPTY) {
        let Some(mut it) = lock(class) else { continue };
        let mut at = it.listed.first();
        while let Some(unit) = at {
            at = it.listed.after(&MAP, unit);
            let slab = Slab::at(&MAP, unit, slots_of(class).0);
            if slab.is_empty() && slab.carved() > 0 {
                it.idle -= 1;
                it.spared = it.spared.min(it.idle);
                given += it.purge(slab);
            } else {
                let bytes = slab.purge(&SYSTEM);
                chunk::note_purged(bytes);
                given += bytes;
            }
        }
    }
    given
}

/// Holds all locks across a fork.
pub(super) fn before_fork() {
    for class in &ALL {
        class.acquire();
    }
}

/// Gives the locks back on either side of a fork.
///
/// # Safety
///
/// Follows [`before_fork`] in the forking thread or its copy in the child.
pub(super) unsafe fn after_fork() {
    for class in &ALL {
        // SAFETY: by the contract this thread (or the one it is a copy of) holds it.
        unsafe { class.release() };
    }
}

impl Class {
    const fn new() -> Self {
        Self {
            listed: UnitList::new(),
            last: 0,
            extent: Extent { first: 0, units: 0, next: 0, left: 0 },
            units: 0,
            free: 0,
            out: 0,
            idle: 0,
            spared: 0,
            random: Random::new(),
            waiting: [ptr::null_mut(); WAITING],
            waits: 0,
        }
    }

    /// A slab that has a free slot, or one to open; a new one if it `may_grow`.
    fn slab_to_draw_from(&mut self, class: usize, may_grow: bool) -> Option<usize> {
        let first = self.listed.first();
        if first.is_some() && !(settings::get().full && self.free < self.out / 8) {
            return first;
        }
        match self.new_slab(class, may_grow) {
            Some(unit) => {
                self.list(unit, false);
                Some(unit)
            }
            None => first,
        }
    }

    /// Draws up to `most` slots of the slab at `unit`, which is listed.
    fn draw_from(
        &mut self,
        class: usize,
        unit: usize,
        most: usize,
        sink: &mut impl FnMut(Slot),
    ) -> usize {
        let (slots_class, is_empty) = (slots_of(class).0, class == EMPTY);
        let slab = Slab::at(&MAP, unit, slots_class);
        if slab.is_empty() && slab.carved() > 0 && !is_empty {
            self.idle -= 1;
            self.spared = self.spared.min(self.idle);
        }
        if slab.free() == 0 {
            let size = size_class::size(slots_class);
            let more = if settings::get().full || is_empty {
                size_class::capacity(slots_class)
            } else {
                (OPENED / size).max(LEAST_OPENED)
            };
            let before = slab.carved();
            slab.open_slots(before + more);
            self.free += slab.carved() - before;
        }
        let random = self.random.next();
        let (first, size) =
            (Slot::at(unit, slots_class, 0, is_empty), size_class::size(slots_class));
        let drawn = slab.draw(most, random, |index| {
            let (block, word) =
                (first.block.wrapping_add(index * size), first.word.wrapping_add(index));
            let slot = Slot { block, word, ..first };
            slot.write(IN_RING);
            // It is verified when it is handed out, and most of those that are drawn were freed
            // long ago.
            prefetch(slot.block);
            sink(slot);
        });
        self.free -= drawn;
        if slab.free() == 0 && !slab.has_untouched() {
            self.unlist(unit);
        }
        drawn
    }

    /// Takes slots back. Those of one slab that come one after another are one visit to it.
    fn put(&mut self, class: usize, mut slots: impl Iterator<Item = Free>) {
        let (slots_class, _) = slots_of(class);
        let way = WayBack::of(&MAP, slots_class, 0);
        let mut next = slots.next();
        while let Some(mut slot) = next {
            let unit = MAP.unit_of(slot.block.addr());
            // SAFETY: slots of the class lie in its slabs, and the class's lock is held.
            let mut visit = unsafe { way.visit(unit) };
            let mut count = 0;
            next = loop {
                // SAFETY: the words of a slab are committed, and nothing is written there but by
                // atomics.
                let word = unsafe { &*slot.word };
                let offset = slot.block.addr() & (UNIT - 1);
                if word.load(Ordering::Relaxed) == IN_RING && visit.put(offset) {
                    word.store(IN_SLAB, Ordering::Relaxed);
                    count += 1;
                } else {
                    // Two threads freed it at once, and each has put it into its ring.
                    let size = size_class::size(slots_class);
                    judge::report(Wrong::DoubleFree, "free", slot.block.addr(), size);
                }
                match slots.next() {
                    Some(one) if (one.block.addr() ^ slot.block.addr()) < UNIT => slot = one,
                    other => break other,
                }
            };
            self.out -= count;
            self.free += count;
            if visit.finish() && count > 0 {
                self.settle(class, Slab::at(&MAP, unit, slots_class));
            }
        }
    }

    /// Slots have come back to a slab that is not listed, or has no slot out any more.
    fn settle(&mut self, class: usize, slab: Slab<'_>) {
        if !slab.is_listed() {
            self.list(slab.unit, settings::get().full);
        }
        if slab.is_empty() && class != EMPTY {
            self.idle += 1;
            if self.idle > self.kept() && DUE.load(Ordering::Relaxed) == NEVER {
                DUE.store(after(os::coarse_ms(), DELAY), Ordering::Relaxed);
            }
        }
    }

    /// Slabs without a slot out that keep their memory in any case.
    fn kept(&self) -> usize {
        self.units / KEPT
    }

    /// Gives the memory of slabs back that were idle for the whole of a delay, but for what is
    /// kept, and of `most` at most, which becomes fewer by so many. Returns whether more is idle
    /// than what is kept.
    fn purge_idle(&mut self, class: usize, most: &mut usize) -> bool {
        let mut goes = self.spared.saturating_sub(self.kept());
        let mut at = self.listed.first();
        while goes > 0
            && *most > 0
            && let Some(unit) = at
        {
            at = self.listed.after(&MAP, unit);
            let slab = Slab::at(&MAP, unit, slots_of(class).0);
            if slab.is_empty() && slab.carved() > 0 {
                self.idle -= 1;
                self.purge(slab);
                goes -= 1;
                *most -= 1;
            }
        }
        // What goes the next time, or is watched from now on.
        self.spared = if goes > 0 { self.kept() + goes } else { self.idle };
        self.idle > self.kept()
    }

    /// Gives the memory of a slab without a slot out back. Returns bytes.
    fn purge(&mut self, slab: Slab<'_>) -> usize {
        self.free -= slab.free();
        slab.clear();
        slab.open(true);
        slab.set_listed(true);
        // SAFETY: no slot of the slab is out, and its memory is committed.
        if unsafe { SYSTEM.decommit(MAP.address_of(slab.unit), UNIT) } {
            chunk::note_purged(UNIT);
            UNIT
        } else {
            // Locked memory: it is zero all the same.
            0
        }
    }

    fn list(&mut self, unit: usize, last: bool) {
        let before = if last && self.last != 0 { Some(self.last) } else { None };
        let was_empty = self.listed.first().is_none();
        self.listed.insert_after(&MAP, before, unit);
        if was_empty || before.is_some() {
            self.last = unit;
        }
        Slab::at(&MAP, unit, 0).set_listed(true);
    }

    fn unlist(&mut self, unit: usize) {
        if self.last == unit {
            self.last = self.listed.before(&MAP, unit).unwrap_or(0);
        }
        self.listed.remove(&MAP, unit);
        Slab::at(&MAP, unit, 0).set_listed(false);
    }

    /// Makes the next unit of the class's extent a slab; of another extent if it `may_grow`.
    fn new_slab(&mut self, class: usize, may_grow: bool) -> Option<usize> {
        loop {
            if self.extent.left == 0 && !(may_grow && self.new_extent(class)) {
                return None;
            }
            let extent = &mut self.extent;
            let place = extent.next;
            extent.next = (extent.next + 1) % extent.units;
            extent.left -= 1;
            if is_guard(place) {
                continue;
            }
            let unit = extent.first + place;
            let (slots_class, owner) = slots_of(class);
            Slab::at(&MAP, unit, slots_class).open(true);
            MAP.set_entry(unit, Entry::slab(owner, slots_class));
            self.units += 1;
            return Some(unit);
        }
    }

    /// Takes an extent. False: there is no memory.
    fn new_extent(&mut self, class: usize) -> bool {
        let is_limited = chunk::is_limited();
        let mut units =
            (self.units / 2).clamp(if is_limited { 1 } else { FIRST_EXTENT }, MOST_EXTENT);
        if settings::get().full {
            units *= GUARD_EVERY_FULL;
        }
        // A smaller one is better than none.
        let least = if settings::get().full { GUARD_EVERY_FULL } else { 1 };
        self.new_extent_of(class, units, is_limited)
            || (units > least && self.new_extent_of(class, least, true))
    }

    /// Takes an extent of so many units, with the shortest gaps if address space `is_limited`.
    /// False: there is no memory.
    fn new_extent_of(&mut self, class: usize, units: usize, is_limited: bool) -> bool {
        let random = &mut self.random;
        let (before, after) = if is_limited {
            (1, 1)
        } else {
            (1 + random.below(MOST_GAP), 1 + random.below(MOST_GAP))
        };
        let start = random.below(units);
        let all = before + units + after;
        let Some(run) = chunk::take(all, 1, Want::Zero, Entry::GUARD, |_| Entry::GUARD) else {
            return false;
        };
        let first = run.unit + before;
        if !slots::commit(first, units) {
            chunk::give(run.unit, all);
            return false;
        }
        let at = |unit: usize| MAP.address_of(unit);
        if !run.zero {
            // SAFETY: the run was just taken, is committed, and nobody knows it.
            unsafe { SYSTEM.make_zero(at(first), units * UNIT) };
        }
        let guard = |unit: usize, count: usize| {
            // SAFETY: units of the run that was just taken, and that nobody uses.
            unsafe { os::guard(at(unit), count * UNIT) };
        };
        guard(run.unit, before);
        guard(first + units, after);
        if class == EMPTY {
            guard(first, units);
        } else {
            for place in (0..units).filter(|&place| is_guard(place)) {
                guard(first + place, 1);
            }
        }
        self.extent = Extent { first, units, next: start, left: units };
        true
    }
}

/// Whether the unit at a place in an extent is a guard.
fn is_guard(place: usize) -> bool {
    let every = if settings::get().full { GUARD_EVERY_FULL } else { GUARD_EVERY_LIGHT };
    place % every == every - 1
}

/// Whether a unit is a slab of this heap's; then its class.
pub(super) fn class_of(unit: usize) -> Option<(usize, bool)> {
    // SAFETY: callers look at units below the frontier, which are below the map's limit.
    let entry = unsafe { MAP.entry(unit) };
    match (entry.kind(), entry.owner()) {
        (Kind::Slab(class), HARDENED) => Some((class, false)),
        (Kind::Slab(class), HARDENED_EMPTY) => Some((class, true)),
        (Kind::Slab(class), _) => group_of(entry).map(|_| (class, false)),
        _ => None,
    }
}
