//! A size class's slabs: extents that keep their class, random slots, and guards in between.
//!
//! ```text
//!   extent   | gap | slab | slab | ... 7 | guard | slab | ... | gap |      light
//!            | gap | slab | guard | slab | guard | ......... | gap |       full
//!              1 to 16 units at random       first slab at random, then in a circle
//!
//!   slab     bits: the free slots (`slab`)            words: the state of each slot (`slots`)
//! ```
//!
//! A slab's slots are *opened* a few pages at a time (light) or all at once (full), and drawn at
//! random among the free slots. Free slots read as zero. With `hardened:full`, a freed slot waits
//! among many: if fewer slots are free than an eighth of those that are out, a new slab is made.
//!
//! A slab gives its memory back to the kernel after it was unused for a while (`pass`). An eighth
//! of the class's slabs keep their memory, so a program that frees and allocates in turns does not
//! fault. A slab's addresses never serve another class, so a dangling pointer leads at worst to a
//! block of its own class.
//!
//! With `hardened:full`, calls with a token (`__alloc_token_*`) have their own classes, in four
//! groups. Blocks of two groups never share a slab, now or later. They use no ring: a freed slot
//! waits in its class. One more class serves blocks of size 0. All of its extents are guarded, so
//! every access fails.
//!
//! Invariants: the class's lock protects all of this state. A thread takes it with no other lock of
//! this heap, and before the chunk's. A slab is listed while it has free or unopened slots, unless
//! it is withdrawn. Called by `cache` and `mod`.

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
use crate::chunk::{self, Absent, Back, Want};
use crate::os::{self, Memory, SYSTEM, prefetch};
use crate::size_class::{self, CLASSES, UNIT};
use crate::slab::{Slab, WayBack};
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{self, Guard, Lock};
use crate::unit_list::{BySize, UnitList};

/// The class of blocks of size 0, with slots as in class 0.
pub(super) const EMPTY: usize = CLASSES;
/// The first grouped class. Each group has as many classes as there are without groups.
const GROUPED: usize = EMPTY + 1;
const GROUPS: usize = HARDENED_GROUPS as usize;
const ALL_CLASSES: usize = GROUPED + GROUPS * CLASSES;

pub(super) fn grouped(class: usize, group: usize) -> usize {
    GROUPED + group * CLASSES + class
}

/// Returns the class of slots that a class uses, and the owner of its slabs.
fn slots_of(class: usize) -> (usize, u32) {
    match class.checked_sub(GROUPED) {
        Some(at) => (at % CLASSES, HARDENED_GROUP + (at / CLASSES) as u32),
        None if class == EMPTY => (0, HARDENED_EMPTY),
        None => (class, HARDENED),
    }
}

/// Returns the group of the slab whose unit has this entry.
pub(super) fn group_of(entry: Entry) -> Option<usize> {
    let Kind::Slab(_) = entry.kind() else { return None };
    let group = entry.owner().checked_sub(HARDENED_GROUP)?;
    (group < HARDENED_GROUPS).then_some(group as usize)
}
const OPENED: usize = 8 << 10;
const LEAST_OPENED: usize = 8;
/// Units of a class's first and longest extents. `hardened:full` doubles them.
const FIRST_EXTENT: usize = 4;
const MOST_EXTENT: usize = 256;
const MOST_GAP: usize = 16;
/// One unit in this many is a guard.
const GUARD_EVERY_LIGHT: usize = 8;
const GUARD_EVERY_FULL: usize = 2;
/// One in this many of a class's slabs keeps its memory while unused.
const KEPT: usize = 8;
/// The other unused slabs keep their memory until no slab was needed for this many milliseconds.
const DELAY: u32 = 100;

/// The time of the next look at idle slabs, or [`NEVER`].
static DUE: AtomicU32 = AtomicU32::new(NEVER);
const NEVER: u32 = 0;

/// The most slabs released at a time, and the milliseconds until the next release.
const MOST_PURGED: usize = 64;
const SOON: u32 = 1;

fn after(now: u32, delay: u32) -> u32 {
    now.wrapping_add(delay).max(1)
}

/// Units taken for a class. Some are not slabs yet.
struct Extent {
    first: usize,
    units: usize,
    /// The place of the next slab, and the number of places left.
    next: usize,
    left: usize,
}

pub(super) struct Class {
    listed: UnitList<BySize>,
    last: usize,
    extent: Extent,
    units: usize,
    /// Free opened slots, and slots that are out.
    free: usize,
    out: usize,
    /// Idle slabs (with memory, without a slot out), and the least number since the last look.
    idle: usize,
    spared: usize,
    /// Withdrawn slabs: empty, without memory.
    withdrawn: UnitList<BySize>,
    random: Random,
    /// In a grouped class: a ring of freed slots that wait, or nulls, and the next place.
    waiting: [*mut u8; WAITING],
    waits: usize,
}

// SAFETY: only the holder of the lock accesses slots through these pointers.
unsafe impl Send for Class {}

/// Freed slots that wait in a grouped class, as many as in a new ring with `hardened:full`.
const WAITING: usize = 32;

static ALL: [Lock<Class>; ALL_CLASSES] = [const { Lock::new(Class::new()) }; ALL_CLASSES];

/// Returns the locked class, or `None` in a signal handler that may have interrupted the holder.
fn lock(class: usize) -> Option<Guard<'static, Class>> {
    if sync::is_interrupted() { ALL[class].try_lock() } else { Some(ALL[class].lock()) }
}

/// Draws up to `most` slots of a class for `sink`, marks them as in a ring, and returns their
/// number. The number is 0 without memory, or in a handler that cannot wait for the lock.
pub(super) fn draw(class: usize, most: usize, mut sink: impl FnMut(Slot)) -> usize {
    // A signal handler does not wait for the chunk's lock either.
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

/// Takes back slots. Returns false, and takes none, in a handler that cannot wait for the lock.
pub(super) fn put(class: usize, slots: impl Iterator<Item = Free>) -> bool {
    let Some(mut it) = lock(class) else { return false };
    it.put(class, slots);
    true
}

/// Takes a freed slot of a grouped class. The slot waits until [`WAITING`] more were freed.
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

/// Releases up to [`MOST_PURGED`] idle slabs, if it is time. The caller must hold no lock.
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

/// Calls `visit` with each listed slab and its locked class. `visit` may change the slab.
fn each_listed(mut visit: impl FnMut(&mut Class, Slab<'_>)) {
    for class in (0..ALL_CLASSES).filter(|&class| class != EMPTY) {
        let Some(mut it) = lock(class) else { continue };
        let mut at = it.listed.first();
        while let Some(unit) = at {
            at = it.listed.after(&MAP, unit);
            visit(&mut it, Slab::at(&MAP, unit, slots_of(class).0));
        }
    }
}

pub(super) fn trim() -> usize {
    let mut given = 0;
    each_listed(|class, slab| {
        if slab.is_empty() && slab.carved() > 0 {
            given += class.purge(slab);
        } else {
            let bytes = slab.purge(&SYSTEM);
            chunk::note_purged(bytes);
            given += bytes;
        }
    });
    given
}

/// Gives all memory of empty slabs to the kernel, because memory ran out: it no longer counts
/// against a limit (see [`chunk::withdraw`]). Returns whether any slab had memory.
pub(super) fn withdraw() -> bool {
    let mut any = false;
    each_listed(|class, slab| any |= class.withdraw(slab));
    any
}

pub(super) fn before_fork() {
    for class in &ALL {
        class.acquire();
    }
}

/// # Safety
///
/// The call follows [`before_fork`] in the forking thread or its copy in the child.
pub(super) unsafe fn after_fork() {
    for class in &ALL {
        // SAFETY: this thread, or the thread that it is a copy of, took the lock before the fork.
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
            withdrawn: UnitList::new(),
            random: Random::new(),
            waiting: [ptr::null_mut(); WAITING],
            waits: 0,
        }
    }

    fn slab_to_draw_from(&mut self, class: usize, may_grow: bool) -> Option<usize> {
        let first = self.listed.first();
        if first.is_some() && !(settings::get().full && self.free < self.out / 8) {
            return first;
        }
        // A withdrawn slab is as good as a new one.
        let back = if may_grow { self.put_back() } else { None };
        match back.or_else(|| self.new_slab(class, may_grow)) {
            Some(unit) => {
                self.list(unit, false);
                Some(unit)
            }
            None => first,
        }
    }

    /// Gives a withdrawn slab its memory back. The slab is in no list then.
    fn put_back(&mut self) -> Option<usize> {
        loop {
            let unit = self.withdrawn.first()?;
            let absent = &MAP.record(unit).absent;
            let was_shut = absent.load(Ordering::Relaxed) == Absent::Shut as u8;
            let how = if was_shut { Absent::Shut } else { Absent::Unmapped };
            let back = chunk::put_back(unit, how);
            if back == Back::NoMemory {
                return None;
            }
            self.withdrawn.remove(&MAP, unit);
            if back == Back::Done {
                return Some(unit);
            }
            // Memory of the program lies there.
            MAP.set_entry(unit, Entry::FOREIGN);
            self.units -= 1;
        }
    }

    fn draw_from(
        &mut self,
        class: usize,
        unit: usize,
        most: usize,
        sink: &mut impl FnMut(Slot),
    ) -> usize {
        let (slots_class, is_empty) = (slots_of(class).0, class == EMPTY);
        let slab = Slab::at(&MAP, unit, slots_class);
        if slab.is_empty() && !is_empty {
            self.note_use(slab);
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
            // Most drawn slots were freed long ago, so the processor's caches have lost them.
            prefetch(slot.block);
            sink(slot);
        });
        self.free -= drawn;
        if slab.free() == 0 && !slab.has_untouched() {
            self.unlist(unit);
        }
        drawn
    }

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
                // SAFETY: the words of a slab are committed, and only atomics write them.
                let word = unsafe { &*slot.word };
                let offset = slot.block.addr() & (UNIT - 1);
                if word.load(Ordering::Relaxed) == IN_RING && visit.put(offset) {
                    word.store(IN_SLAB, Ordering::Relaxed);
                    count += 1;
                } else {
                    // Two threads freed the slot at once, and each put it into its ring.
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

    /// Updates a slab after frees: it may become listed, or idle.
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

    fn kept(&self) -> usize {
        self.units / KEPT
    }

    /// Releases at most `most` slabs that were idle for a whole delay, except the kept slabs.
    /// Subtracts their number from `most`. Returns whether more slabs are idle than are kept.
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
                self.purge(slab);
                goes -= 1;
                *most -= 1;
            }
        }
        // The slabs to release the next time, or to watch from now on.
        self.spared = if goes > 0 { self.kept() + goes } else { self.idle };
        self.idle > self.kept()
    }

    /// Withdraws a listed slab if it is empty and the kernel takes its memory.
    fn withdraw(&mut self, slab: Slab<'_>) -> bool {
        if !slab.is_empty() {
            return false;
        }
        self.close(slab);
        // SAFETY: no slot of the slab is out, and listed slabs are committed.
        let how = unsafe { chunk::withdraw(slab.unit) };
        match how {
            Some(how) => {
                MAP.record(slab.unit).absent.store(how as u8, Ordering::Relaxed);
                self.unlist(slab.unit);
                self.withdrawn.push(&MAP, slab.unit);
            }
            // SAFETY: no slot of the slab is out. (Locked memory stays.)
            None => unsafe { SYSTEM.make_zero(MAP.address_of(slab.unit), UNIT) },
        }
        how.is_some()
    }

    /// Counts an empty slab as idle no more.
    fn note_use(&mut self, slab: Slab<'_>) {
        if slab.carved() > 0 {
            self.idle -= 1;
            self.spared = self.spared.min(self.idle);
        }
    }

    /// Makes an empty slab one without opened slots.
    fn close(&mut self, slab: Slab<'_>) {
        self.note_use(slab);
        self.free -= slab.free();
        slab.clear();
        slab.open(true);
        slab.set_listed(true);
    }

    fn purge(&mut self, slab: Slab<'_>) -> usize {
        self.close(slab);
        // SAFETY: no slot of the slab is out, and its memory is committed.
        if unsafe { SYSTEM.decommit(MAP.address_of(slab.unit), UNIT) } {
            chunk::note_purged(UNIT);
            UNIT
        } else {
            // Locked memory stays, but was made zero.
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

    /// Makes a unit of the extent a slab, or of a new extent if the class `may_grow`.
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

    fn new_extent(&mut self, class: usize) -> bool {
        let limits = (chunk::is_limited(), os::has_data_limit());
        let is_limited = limits.0 || limits.1;
        let first = if is_limited { 1 } else { FIRST_EXTENT };
        let mut units = (self.units / 2).clamp(first, MOST_EXTENT);
        if settings::get().full {
            units *= GUARD_EVERY_FULL;
        }
        // A smaller extent is better than none.
        let least = if settings::get().full { GUARD_EVERY_FULL } else { 1 };
        self.new_extent_of(class, units, is_limited, limits)
            || (units > least && self.new_extent_of(class, least, true, limits))
    }

    /// Takes an extent of `units` units, with the shortest gaps if `is_short`.
    fn new_extent_of(
        &mut self,
        class: usize,
        units: usize,
        is_short: bool,
        (unmaps, shuts): (bool, bool),
    ) -> bool {
        let random = &mut self.random;
        let (before, after) = if is_short {
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
            // SAFETY: the new run is committed, and no other code knows it.
            unsafe { SYSTEM.make_zero(at(first), units * UNIT) };
        }
        // Guards of slabs stay for good. Under a limit they must not count.
        let guard = |first: usize, count: usize| {
            // SAFETY: the units belong to the new run, and no code uses them.
            if shuts && unsafe { os::shut(at(first), count * UNIT) } {
                return;
            }
            // SAFETY: the units belong to the new run, and no code uses them.
            let is_gone = |unit| unmaps && unsafe { chunk::withdraw(unit) }.is_some();
            let rest = (first..first + count).find(|&unit| !is_gone(unit));
            if let Some(rest) = rest {
                // SAFETY: the units belong to the new run, and no code uses them.
                unsafe { os::guard(at(rest), (first + count - rest) * UNIT) };
            }
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

fn is_guard(place: usize) -> bool {
    let every = if settings::get().full { GUARD_EVERY_FULL } else { GUARD_EVERY_LIGHT };
    place % every == every - 1
}

/// Returns the class of a unit that is a slab of this heap, and whether its blocks have size 0.
pub(super) fn class_of(unit: usize) -> Option<(usize, bool)> {
    // SAFETY: callers pass units below the frontier, which is below the map's limit.
    let entry = unsafe { MAP.entry(unit) };
    match (entry.kind(), entry.owner()) {
        (Kind::Slab(class), HARDENED) => Some((class, false)),
        (Kind::Slab(class), HARDENED_EMPTY) => Some((class, true)),
        (Kind::Slab(class), _) => group_of(entry).map(|_| (class, false)),
        _ => None,
    }
}
