//! Finalizers: functions of the runtime, called for objects that have become inaccessible.
//!
//! ```text
//!   waiting   | object, run, context, priority | ...      not roots: judged when marking ends
//!                 |  unmarked: inaccessible
//!                 v
//!   due       | object, run, context | ...   one for each priority      roots, until they have run
//! ```
//!
//! When a finalizer runs, its object is whole, with all that it leads to, because due objects are
//! marked. A mutator runs finalizers on request ([`run`](super::raw::Mutator::run_finalizers)),
//! never during an allocation. A finalizer does not run before the marking that made it due has
//! ended. Until that end, weak slots of objects that the finalizer keeps may still lead to the
//! object (see `weak`). After the finalizer has run, the object is like any other. If the finalizer
//! stored the object somewhere, the object lives on, without a finalizer.
//!
//! **The context** is an address that the heap does not read, or an object of the heap. Such a
//! context is kept while the finalizer's object lives or the finalizer is due, as the value of an
//! ephemeron. So a context that leads to the object does not keep the object.
//!
//! **Priorities.** Priority 0, the highest, is judged first. All objects that its due objects lead
//! to are marked before the next one is judged. So an object is not due yet if a due object of
//! higher priority leads to it. Finalizers run in the order of priority, collection, registration.
//!
//! **In steps.** A collection visits a few entries at a time (see `settling`). If an object is
//! marked after its visit, the contexts of its finalizers are marked, too. Minor collections visit
//! only young entries (see `by_object`).
//!
//! Entries are found by their objects (`by_object`), under a lock.

use core::ffi::c_void;

pub use super::abi::GC_PRIORITIES as PRIORITIES;
use super::array::Array;
use super::by_object::{ByObject, Linked, Node};
use super::kept::Kept;

/// A function that is called with the object and the context.
pub type Finalizer = unsafe extern "C" fn(object: *mut c_void, context: *mut c_void);

#[derive(Clone, Copy)]
pub(super) struct Entry {
    node: Node,
    pub(super) run: Finalizer,
    pub(super) context: *mut c_void,
    /// The lowest byte has the priority and `TRACED`. The others have the order of registration.
    serial: u64,
}

/// A bit in the lowest byte of a serial, above the priority. If set, the context is an object.
const TRACED: u64 = 128;

impl Entry {
    /// Makes a finalizer. `traced` says whether its context is an object of the heap.
    pub(super) fn new(
        object: *mut u8,
        run: Finalizer,
        context: *mut c_void,
        traced: bool,
        priority: u8,
    ) -> Self {
        let serial = u64::from(priority & 127) | if traced { TRACED } else { 0 };
        Self { node: Node::of(object), run, context, serial }
    }

    pub(super) fn object(&self) -> *mut u8 {
        self.node.object()
    }

    fn priority(&self) -> usize {
        (self.serial & (TRACED - 1)) as usize
    }

    pub(super) fn traced_context(&self) -> Option<*mut u8> {
        (self.serial & TRACED != 0).then(|| self.context.cast())
    }
}

impl Linked for Entry {
    fn node(&mut self) -> &mut Node {
        &mut self.node
    }

    fn change(&mut self, with: &dyn Fn(*mut u8) -> *mut u8) {
        if let Some(context) = self.traced_context() {
            self.context = with(context).cast();
        }
    }
}

struct Level {
    waiting: usize,
    due: Array<Entry>,
    /// How many due finalizers were taken.
    taken: usize,
    /// Due finalizers that may be taken. The others became due in the marking under way.
    ready: usize,
    /// How many due finalizers were marked, or became due earlier.
    marked: usize,
}

impl Level {
    const NONE: Self = Self { waiting: 0, due: Array::new(), taken: 0, ready: 0, marked: 0 };

    fn left(&self) -> &[Entry] {
        &self.due[self.taken..]
    }

    /// Returns the due finalizers whose objects are roots. The object of a newly due finalizer is
    /// no root before `mark_due` marks it. So finalizers of objects that it leads to become due.
    fn roots(&self) -> &[Entry] {
        &self.due[self.taken..self.ready.max(self.marked)]
    }

    fn fresh(&self) -> &[Entry] {
        &self.due[self.ready..]
    }
}

pub(super) struct Finalizers {
    waiting: ByObject<Entry>,
    levels: [Level; PRIORITIES],
    /// How many of the waiting finalizers have a context that is an object.
    traced: usize,
    serial: u64,
}

// SAFETY: objects are memory of the heap. A lock around this orders all accesses.
unsafe impl Send for Finalizers {}

impl Finalizers {
    pub(super) const fn new() -> Self {
        let levels = [const { Level::NONE }; PRIORITIES];
        Self { waiting: ByObject::NONE, levels, traced: 0, serial: 0 }
    }

    /// Adds a finalizer. Returns false without memory, for an unknown priority, or for no object.
    /// Also reserves room in `due`, so that a collection never fails.
    pub(super) fn add(&mut self, mut entry: Entry) -> bool {
        let Some(level) = self.levels.get_mut(entry.priority()) else { return false };
        entry.serial |= self.serial << 8;
        let added = !entry.object().is_null()
            && level.due.reserve(level.waiting + 1)
            && self.waiting.add(entry).is_some();
        level.waiting += usize::from(added);
        self.traced += usize::from(added && entry.traced_context().is_some());
        self.serial += u64::from(added);
        added
    }

    fn remove(&mut self, number: u32) -> Option<Entry> {
        let entry = self.waiting.remove(number)?;
        self.levels[entry.priority()].waiting -= 1;
        self.traced -= usize::from(entry.traced_context().is_some());
        Some(entry)
    }

    /// Removes all finalizers of an object, except due ones. Returns how many.
    pub(super) fn cancel(&mut self, object: *mut u8) -> usize {
        let mut count = 0;
        while let number @ 1.. = self.waiting.first(object) {
            self.remove(number);
            count += 1;
        }
        count
    }

    pub(super) fn has_contexts(&self) -> bool {
        self.traced > 0
    }

    /// Visits up to `most` waiting finalizers behind the number `at`, and advances `at`. A minor
    /// collection visits only young ones. Returns whether none is left.
    pub(super) fn visit(
        &mut self,
        at: &mut u32,
        minor: bool,
        most: usize,
        mut with: impl FnMut(&mut Self, u32, Entry),
    ) -> bool {
        for _ in 0..most {
            let Some(number) = self.waiting.next(*at, minor) else { return true };
            *at = number;
            if let Some(&mut entry) = self.waiting.get(number) {
                with(self, number, entry);
            }
        }
        false
    }

    pub(super) fn has_priority(&self, priority: usize) -> bool {
        self.levels[priority].waiting > 0
    }

    /// Makes a waiting finalizer of this priority due, because its object is dead.
    pub(super) fn make_due(&mut self, number: u32, priority: usize) {
        if let Some(&mut entry) = self.waiting.get(number)
            && entry.priority() == priority
            && let Some(entry) = self.remove(number)
        {
            // There is room: `add` made it.
            _ = self.levels[priority].due.push(entry);
        }
    }

    /// Sorts the newly due finalizers of this priority by their order of registration. Call this
    /// after all finalizers of this priority were judged. Returns whether any became due.
    pub(super) fn end_priority(&mut self, priority: usize) -> bool {
        let level = &mut self.levels[priority];
        let fresh = &mut level.due[level.ready..];
        if !fresh.is_sorted_by_key(|entry| entry.serial) {
            fresh.sort_unstable_by_key(|entry| entry.serial);
        }
        level.marked = level.ready;
        !fresh.is_empty()
    }

    /// Calls `mark` for the objects and contexts of up to `most` finalizers that became due.
    /// Returns whether none is left.
    pub(super) fn mark_due(
        &mut self,
        priority: usize,
        most: usize,
        mut mark: impl FnMut(*mut u8),
    ) -> bool {
        let level = &mut self.levels[priority];
        let end = level.due.len().min(level.marked + most);
        for entry in &level.due[level.marked..end] {
            mark(entry.object());
            entry.traced_context().into_iter().for_each(&mut mark);
        }
        level.marked = end;
        end == level.due.len()
    }

    /// Calls `with` for each object whose finalizer became due in the marking under way.
    pub(super) fn each_fresh(&self, mut with: impl FnMut(*mut u8)) {
        self.levels.iter().flat_map(Level::fresh).for_each(|entry| with(entry.object()));
    }

    /// Ends marking: finalizers that became due may be taken. Returns whether any became due.
    pub(super) fn end_marking(&mut self) -> bool {
        let mut any = false;
        for level in &mut self.levels {
            any |= !level.fresh().is_empty();
            level.ready = level.due.len();
        }
        any
    }

    pub(super) fn contexts_of(&mut self, object: *mut u8, mut with: impl FnMut(*mut u8)) {
        if self.traced == 0 {
            return;
        }
        let mut number = self.waiting.first(object);
        while let Some(entry) = self.waiting.get(number) {
            entry.traced_context().into_iter().for_each(&mut with);
            number = self.waiting.behind(number);
        }
    }

    /// Makes minor collections pass over a waiting finalizer.
    pub(super) fn make_old(&mut self, number: u32) {
        self.waiting.make_old(number);
    }

    pub(super) fn each_due(&self, mut with: impl FnMut(*mut u8)) {
        for entry in self.levels.iter().flat_map(Level::roots) {
            with(entry.object());
            entry.traced_context().into_iter().for_each(&mut with);
        }
    }

    /// Returns how many visits to waiting finalizers collections have made.
    #[cfg(test)]
    pub(super) fn visited(&self) -> usize {
        self.waiting.visited
    }

    pub(super) fn each_kept(&mut self, with: &mut impl FnMut(Kept)) {
        self.waiting.each(|entry| {
            if let Some(object) = entry.traced_context() {
                with(Kept { by: entry.object(), and: core::ptr::null_mut(), object });
            }
        });
    }

    /// Changes the address of each object, due or not, to the result of `with`.
    pub(super) fn each_object(&mut self, with: impl Fn(*mut u8) -> *mut u8) {
        self.waiting.each_object(&with);
        for level in &mut self.levels {
            for entry in level.due[level.taken..].iter_mut() {
                entry.node = Node::of(with(entry.object()));
                entry.change(&with);
            }
        }
    }

    pub(super) fn next(&mut self) -> Option<Entry> {
        let level = self.levels.iter_mut().find(|level| level.taken < level.ready)?;
        let entry = *level.left().first()?;
        level.taken += 1;
        if level.left().is_empty() {
            level.due.truncate(0);
            (level.taken, level.ready, level.marked) = (0, 0, 0);
        }
        Some(entry)
    }

    pub(super) fn pending(&self) -> usize {
        self.levels.iter().map(|level| level.ready - level.taken).sum()
    }

    pub(super) fn end(&mut self) {
        self.waiting.end();
        self.levels.iter_mut().for_each(|level| level.due.end());
        *self = Self::new();
    }
}
