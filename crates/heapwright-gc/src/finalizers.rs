//! Finalizers: what the runtime wants done with an object that nothing leads to any more.
//!
//! ```text
//!   waiting   | object, run, context, priority | ...      not roots: looked at when marking ends
//!                 |  unmarked: nothing leads to it
//!                 v
//!   due       | object, run, context | ...   one for each priority      roots, until a mutator has run them
//! ```
//!
//! The object is whole when its finalizer runs, with all it leads to, because what is due is
//! marked. The mutator runs it, where it asks to ([`run`](super::raw::Mutator::run_finalizers)),
//! never in the midst of an allocation, and not before the marking that made it due has ended.
//! Until then weak slots of objects that the finalizer keeps may still lead to the object (see
//! `weak`). Afterwards the object is like any other: if the finalizer stored it somewhere, it lives
//! on, without a finalizer.
//!
//! **The context** is an address that the heap does not look at, or an object of the heap. The
//! latter is kept as an ephemeron's value is: for as long as the object lives, or its finalizer is
//! due. So a context that leads to the object does not keep it.
//!
//! **Priorities.** Those of the highest priority, 0, are judged first, and all that their objects
//! lead to is marked before the next priority is judged: an object that a due one of higher
//! priority leads to is not due yet. Those that are due run by priority, and of one priority in the
//! order in which they were registered.
//!
//! Arrays under a lock of their own.

use core::ffi::c_void;

pub use super::abi::GC_PRIORITIES as PRIORITIES;
use super::array::Array;
use super::kept::Kept;

/// What is called with the object and the context.
pub type Finalizer = unsafe extern "C" fn(object: *mut c_void, context: *mut c_void);

/// One of them.
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

/// Those of one priority.
struct Level {
    /// How many wait.
    waiting: usize,
    due: Array<Entry>,
    /// Of those due, how many were taken.
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
    /// Of those that wait, how many have a context that is an object.
    traced: usize,
}

// SAFETY: objects are memory of the heap that this is part of; the lock around this orders all
// else.
unsafe impl Send for Finalizers {}

impl Finalizers {
    /// None.
    pub(super) const fn new() -> Self {
        Self { waiting: Array::new(), levels: [const { Level::NONE }; PRIORITIES], traced: 0 }
    }

    /// Adds one. False: there is no memory, or no such priority. Room is made for it among those
    /// due as well, so that a collection never fails.
    pub(super) fn add(&mut self, entry: Entry) -> bool {
        let Some(level) = self.levels.get_mut(usize::from(entry.priority)) else { return false };
        let added = level.due.reserve(level.waiting + 1) && self.waiting.push(entry);
        level.waiting += usize::from(added);
        self.traced += usize::from(added && entry.traced);
        added
    }

    /// Forgets those of an object that are not due. Returns how many.
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

    /// Makes those due whose object `is_dead`, of the first priority of which there are any. Calls
    /// `due` with these objects and contexts. Returns how many.
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

    /// Marking has ended: finalizers that became due in it may be taken. Whether there are any.
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

    /// Calls `with` for the objects of all that are due, and their contexts: roots.
    pub(super) fn each_due(&self, mut with: impl FnMut(*mut u8)) {
        for entry in self.levels.iter().flat_map(Level::left) {
            with(entry.object);
            entry.traced_context().into_iter().for_each(&mut with);
        }
    }

    /// Calls `with` for the contexts of those that are not due.
    pub(super) fn each_kept(&self, with: &mut impl FnMut(Kept)) {
        for entry in self.waiting.iter() {
            if let Some(object) = entry.traced_context() {
                with(Kept { by: entry.object, and: core::ptr::null_mut(), object });
            }
        }
    }

    /// Changes the address of each object, due or not, to what `with` says.
    pub(super) fn each_object(&mut self, with: impl Fn(*mut u8) -> *mut u8) {
        self.waiting.iter_mut().for_each(|entry| entry.each_object(&with));
        for level in &mut self.levels {
            level.due[level.taken..].iter_mut().for_each(|entry| entry.each_object(&with));
        }
    }

    /// The next that is due.
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

    /// How many are due.
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
