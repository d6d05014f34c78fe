//! Finalizers: functions that the runtime has called for objects that have become inaccessible.
//!
//! ```text
//!   waiting   | object, run, context, priority | ...      not roots: judged when marking ends
//!                 |  unmarked: inaccessible
//!                 v
//!   due       | object, run, context | ...   one for each priority      roots, until a mutator has run them
//! ```
//!
//! The object is whole when its finalizer runs, with all it leads to, because due objects are
//! marked. The mutator runs it on request ([`run`](super::raw::Mutator::run_finalizers)), never
//! during an allocation, and not before the marking that made it due has ended. Until then weak
//! slots of objects that the finalizer keeps may still lead to the object (see `weak`). Afterwards
//! the object is like any other: if the finalizer stored it somewhere, it lives on, without a
//! finalizer.
//!
//! **The context** is an address that the heap does not look at, or an object of the heap. Such an
//! object is kept as an ephemeron's value is: for as long as the finalizer's object lives, or the
//! finalizer is due. So a context that leads to the object does not keep it.
//!
//! **Priorities.** The highest priority, 0, is judged first. All objects that its due objects lead
//! to are marked before the next priority is judged. So an object that a due object of higher
//! priority leads to is not due yet. Due finalizers run by priority, then in the order of
//! registration.
//!
//! Arrays under a lock of their own.

use core::ffi::c_void;

pub use super::abi::GC_PRIORITIES as PRIORITIES;
use super::array::Array;
use super::kept::Kept;

/// A function that is called with the object and the context.
pub type Finalizer = unsafe extern "C" fn(object: *mut c_void, context: *mut c_void);

/// A registered finalizer.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) object: *mut u8,
    pub(super) run: Finalizer,
    pub(super) context: *mut c_void,
    /// Whether the context is an object of the heap.
    pub(super) traced: bool,
    pub(super) priority: u8,
}

impl Entry {
    /// Its context, if that is an object of the heap.
    fn traced_context(&self) -> Option<*mut u8> {
        self.traced.then(|| self.context.cast())
    }

    fn each_object(&mut self, with: &impl Fn(*mut u8) -> *mut u8) {
        self.object = with(self.object);
        if let Some(context) = self.traced_context() {
            self.context = with(context).cast();
        }
    }
}

/// The finalizers of one priority.
struct Level {
    /// How many wait.
    waiting: usize,
    due: Array<Entry>,
    /// How many of the due ones were taken.
    taken: usize,
    /// How many of the due ones may be taken. The others became due in the marking under way.
    ready: usize,
}

impl Level {
    const NONE: Self = Self { waiting: 0, due: Array::new(), taken: 0, ready: 0 };

    fn left(&self) -> &[Entry] {
        &self.due[self.taken..]
    }

    fn fresh(&self) -> &[Entry] {
        &self.due[self.ready..]
    }
}

/// A heap's finalizers.
pub(super) struct Finalizers {
    waiting: Array<Entry>,
    levels: [Level; PRIORITIES],
    /// How many of the waiting ones have a context that is an object.
    traced: usize,
}

// SAFETY: objects are memory of the heap that this is part of. The lock around this orders all
// else.
unsafe impl Send for Finalizers {}

impl Finalizers {
    /// No finalizers.
    pub(super) const fn new() -> Self {
        Self { waiting: Array::new(), levels: [const { Level::NONE }; PRIORITIES], traced: 0 }
    }

    /// Adds one. Returns false without memory, or for an unknown priority. Reserves room in `due`
    /// as well, so that a collection never fails.
    pub(super) fn add(&mut self, entry: Entry) -> bool {
        let Some(level) = self.levels.get_mut(usize::from(entry.priority)) else { return false };
        let added = level.due.reserve(level.waiting + 1) && self.waiting.push(entry);
        level.waiting += usize::from(added);
        self.traced += usize::from(added && entry.traced);
        added
    }

    /// Removes the finalizers of an object that are not due. Returns how many.
    pub(super) fn cancel(&mut self, object: *mut u8) -> usize {
        let Self { waiting, levels, traced } = self;
        waiting.retain(|entry| {
            let stays = entry.object != object;
            if !stays {
                levels[usize::from(entry.priority)].waiting -= 1;
                *traced -= usize::from(entry.traced);
            }
            stays
        })
    }

    /// Makes finalizers due whose object `is_dead`, for the highest priority that has any. Calls
    /// `due` with these objects and their contexts. Returns how many.
    pub(super) fn judge(
        &mut self,
        is_dead: impl Fn(*mut u8) -> bool,
        mut due: impl FnMut(*mut u8),
    ) -> usize {
        let Self { waiting, levels, traced } = self;
        for (priority, level) in
            levels.iter_mut().enumerate().filter(|(_, level)| level.waiting > 0)
        {
            let found = waiting.retain(|entry| {
                // There is room: `add` made it.
                let is_due = usize::from(entry.priority) == priority
                    && is_dead(entry.object)
                    && level.due.push(entry);
                if is_due {
                    level.waiting -= 1;
                    due(entry.object);
                    if let Some(context) = entry.traced_context() {
                        *traced -= 1;
                        due(context);
                    }
                }
                !is_due
            });
            if found > 0 {
                return found;
            }
        }
        0
    }

    /// Calls `with` for each object whose finalizer became due in the marking under way.
    pub(super) fn each_fresh(&self, mut with: impl FnMut(*mut u8)) {
        self.levels.iter().flat_map(Level::fresh).for_each(|entry| with(entry.object));
    }

    /// Ends marking: finalizers that became due in it may be taken. Returns whether there are any.
    pub(super) fn end_marking(&mut self) -> bool {
        let mut any = false;
        for level in &mut self.levels {
            any |= !level.fresh().is_empty();
            level.ready = level.due.len();
        }
        any
    }

    /// Calls `mark` for the contexts that `is_unmarked` of objects that are not. Whether there were
    /// any. Linear in the number that wait, if one of them has such a context.
    pub(super) fn mark_contexts(
        &self,
        is_unmarked: impl Fn(*mut u8) -> bool,
        mut mark: impl FnMut(*mut u8),
    ) -> bool {
        let mut found = false;
        let waiting = if self.traced > 0 { &self.waiting[..] } else { &[] };
        for entry in waiting {
            if let Some(context) = entry.traced_context()
                && is_unmarked(context)
                && !is_unmarked(entry.object)
            {
                found = true;
                mark(context);
            }
        }
        found
    }

    /// Calls `with` for the objects and contexts of all due finalizers: roots.
    pub(super) fn each_due(&self, mut with: impl FnMut(*mut u8)) {
        for entry in self.levels.iter().flat_map(Level::left) {
            with(entry.object);
            entry.traced_context().into_iter().for_each(&mut with);
        }
    }

    /// Calls `with` for the contexts of finalizers that are not due.
    pub(super) fn each_kept(&self, with: &mut impl FnMut(Kept)) {
        for entry in self.waiting.iter() {
            if let Some(object) = entry.traced_context() {
                with(Kept { by: entry.object, and: core::ptr::null_mut(), object });
            }
        }
    }

    /// Changes the address of each object, due or not, to the result of `with`.
    pub(super) fn each_object(&mut self, with: impl Fn(*mut u8) -> *mut u8) {
        self.waiting.iter_mut().for_each(|entry| entry.each_object(&with));
        for level in &mut self.levels {
            level.due[level.taken..].iter_mut().for_each(|entry| entry.each_object(&with));
        }
    }

    /// Takes the next due finalizer.
    pub(super) fn next(&mut self) -> Option<Entry> {
        let level = self.levels.iter_mut().find(|level| level.taken < level.ready)?;
        let entry = *level.left().first()?;
        level.taken += 1;
        if level.left().is_empty() {
            level.due.truncate(0);
            (level.taken, level.ready) = (0, 0);
        }
        Some(entry)
    }

    /// Returns how many finalizers are due.
    pub(super) fn pending(&self) -> usize {
        self.levels.iter().map(|level| level.ready - level.taken).sum()
    }

    /// Forgets all.
    pub(super) fn end(&mut self) {
        self.waiting.end();
        self.levels.iter_mut().for_each(|level| level.due.end());
        *self = Self::new();
    }
}
