//! Guardians: objects that return the registered objects which have become inaccessible.
//!
//! ```text
//!   guardian       an object of the runtime's own, with a number       inaccessible: it goes, with all below
//!      registered  | object, representative | ...                      not roots
//!                        | nothing leads to the object
//!                        v
//!      retrieved   representative -> representative -> ...              kept as long as the guardian lives
//! ```
//!
//! After Dybvig, Bruggeman, Eby: "Guardians in a generation-based garbage collector", 1993. The
//! program registers objects with a guardian. Later it retrieves, where and when it likes, those
//! that only the guardian still led to. A retrieved object is whole, like any other, and may be
//! registered again. An object may be registered with several guardians, or with one several times,
//! and is retrieved as often. Another object, its *representative*, may be retrieved in its stead.
//! The representative is kept as an ephemeron's value is, so the object itself can go.
//!
//! A retrieved object was never dead: weak references to it stay, and ephemerons whose key it is.
//! Finalizers, which are judged afterwards, differ. Of two objects that became inaccessible
//! together, both are retrieved, even if one leads to the other. An inaccessible guardian retrieves
//! nothing any more. A guardian that only a retrieved object leads to lives.
//!
//! The runtime chooses any object to be the guardian. That object stores the number, which leads in
//! constant time to the list of retrievable objects. The number is forgotten with the object. So
//! the heap puts nothing into an object, and needs no root.
//!
//! Arrays under a lock of their own; judged by `settling`.

use heapwright_substrate::sync::Lock;

use super::array::Array;
use super::kept::Kept;
use super::locks::With;

/// A heap's guardians. Zero has none.
pub(super) struct Guardians {
    inner: Lock<Inner>,
}

struct Inner {
    guardians: Array<Guardian>,
    registered: Array<Registered>,
    retrieved: Array<Retrieved>,
    /// The first free guardian, and the first free place in `retrieved`: numbers from 1.
    free_guardian: u32,
    free_retrieved: u32,
    /// How many objects can be retrieved.
    pending: usize,
}

/// A guardian. Free if it has no object.
#[derive(Clone, Copy)]
struct Guardian {
    object: *mut u8,
    /// The first and the last retrievable entry; of a free guardian, the next free one.
    first: u32,
    last: u32,
}

impl Guardian {
    /// Returns whether the guardian's object is marked. A free guardian has no object, and its
    /// `first` is no list of retrievable objects.
    fn lives(&self, is_unmarked: &impl Fn(*mut u8) -> bool) -> bool {
        !self.object.is_null() && !is_unmarked(self.object)
    }
}

#[derive(Clone, Copy)]
struct Registered {
    object: *mut u8,
    representative: *mut u8,
    guardian: u32,
}

#[derive(Clone, Copy)]
struct Retrieved {
    representative: *mut u8,
    next: u32,
}

// SAFETY: objects are memory of the heap that this is part of. The lock around this orders all
// else.
unsafe impl Send for Inner {}

/// The place of a number, from 1.
fn place<T>(of: &mut [T], number: u32) -> Option<&mut T> {
    of.get_mut((number as usize).checked_sub(1)?)
}

impl Inner {
    fn make(&mut self, object: *mut u8) -> Option<u32> {
        let fresh = Guardian { object, first: 0, last: 0 };
        if let Some(free) = place(&mut self.guardians, self.free_guardian) {
            let number = core::mem::replace(&mut self.free_guardian, free.first);
            *free = fresh;
            return Some(number);
        }
        self.guardians.push(fresh).then_some(self.guardians.len() as u32)
    }

    fn of(&mut self, number: u32) -> Option<&mut Guardian> {
        place(&mut self.guardians, number).filter(|guardian| !guardian.object.is_null())
    }

    /// Also makes room to retrieve the object later, so a collection never fails.
    fn register(&mut self, guardian: u32, object: *mut u8, representative: *mut u8) -> bool {
        self.of(guardian).is_some()
            && self.retrieved.reserve(self.registered.len() + 1)
            && self.registered.push(Registered { object, representative, guardian })
    }

    fn put(&mut self, guardian: u32, representative: *mut u8) {
        let fresh = Retrieved { representative, next: 0 };
        let mut number = self.free_retrieved;
        if let Some(free) = place(&mut self.retrieved, number) {
            self.free_retrieved = free.next;
            *free = fresh;
        } else {
            // There is room: `register` made it.
            _ = self.retrieved.push(fresh);
            number = self.retrieved.len() as u32;
        }
        self.pending += 1;
        let Some(guardian) = self.of(guardian) else { return };
        let last = core::mem::replace(&mut guardian.last, number);
        if guardian.first == 0 {
            guardian.first = number;
        }
        if let Some(before) = place(&mut self.retrieved, last) {
            before.next = number;
        }
    }

    fn take(&mut self, guardian: u32) -> Option<*mut u8> {
        let number = self.of(guardian)?.first;
        let taken = place(&mut self.retrieved, number)?;
        let (next, representative) = (taken.next, taken.representative);
        // A free place keeps nothing.
        taken.representative = core::ptr::null_mut();
        taken.next = core::mem::replace(&mut self.free_retrieved, number);
        self.pending -= 1;
        let guardian = self.of(guardian)?;
        guardian.first = next;
        if next == 0 {
            guardian.last = 0;
        }
        Some(representative)
    }

    fn is_empty(&self) -> bool {
        self.guardians.is_empty()
    }

    /// Marks the representatives of live registered objects, and the retrievable objects, of live
    /// guardians. Returns whether any were unmarked.
    fn mark(
        &mut self,
        is_unmarked: &impl Fn(*mut u8) -> bool,
        mark: &mut impl FnMut(*mut u8),
    ) -> bool {
        let mut found = false;
        let mut mark = |object| {
            if is_unmarked(object) {
                found = true;
                mark(object);
            }
        };
        let Self { guardians, registered, retrieved, .. } = self;
        for entry in registered.iter() {
            let lives = place(guardians, entry.guardian).is_some_and(|of| of.lives(is_unmarked));
            if lives && !is_unmarked(entry.object) {
                mark(entry.representative);
            }
        }
        if self.pending > 0 {
            for guardian in guardians.iter().filter(|guardian| guardian.lives(is_unmarked)) {
                let mut number = guardian.first;
                while let Some(entry) = place(retrieved, number) {
                    mark(entry.representative);
                    number = entry.next;
                }
            }
        }
        found
    }

    /// Makes inaccessible objects retrievable, from guardians that live. Returns how many.
    fn retrieve(
        &mut self,
        is_unmarked: &impl Fn(*mut u8) -> bool,
        mark: &mut impl FnMut(*mut u8),
    ) -> usize {
        // All objects are judged before any is marked.
        let mut registered = core::mem::replace(&mut self.registered, Array::new());
        let found = registered.retain(|entry| {
            let lives = self.of(entry.guardian).is_some_and(|of| of.lives(is_unmarked));
            let found = lives && is_unmarked(entry.object);
            if found {
                self.put(entry.guardian, entry.representative);
                mark(entry.representative);
            }
            !found
        });
        self.registered = registered;
        found
    }

    /// Removes guardians that have become inaccessible.
    fn sweep(&mut self, is_unmarked: &impl Fn(*mut u8) -> bool) {
        for number in 1..=self.guardians.len() as u32 {
            if self.of(number).is_none_or(|guardian| guardian.lives(is_unmarked)) {
                continue;
            }
            while self.take(number).is_some() {}
            let free = self.free_guardian;
            if let Some(guardian) = self.of(number) {
                *guardian = Guardian { object: core::ptr::null_mut(), first: free, last: 0 };
                self.free_guardian = number;
            }
        }
        let Self { guardians, registered, .. } = self;
        registered.retain(|entry| {
            place(guardians, entry.guardian).is_some_and(|guardian| !guardian.object.is_null())
        });
    }

    fn each_kept(&mut self, with: &mut impl FnMut(Kept)) {
        let Self { guardians, registered, retrieved, .. } = self;
        for &Registered { object, representative, guardian } in registered.iter() {
            if let Some(guardian) = place(guardians, guardian) {
                with(Kept { by: object, and: guardian.object, object: representative });
            }
        }
        for guardian in guardians.iter().filter(|guardian| !guardian.object.is_null()) {
            let mut number = guardian.first;
            while let Some(entry) = place(retrieved, number) {
                let object = entry.representative;
                with(Kept { by: guardian.object, and: core::ptr::null_mut(), object });
                number = entry.next;
            }
        }
    }

    fn each_object(&mut self, with: impl Fn(*mut u8) -> *mut u8) {
        self.guardians.iter_mut().for_each(|guardian| guardian.object = with(guardian.object));
        for entry in self.registered.iter_mut() {
            entry.object = with(entry.object);
            entry.representative = with(entry.representative);
        }
        for entry in self.retrieved.iter_mut() {
            entry.representative = with(entry.representative);
        }
    }
}

impl Guardians {
    /// Makes an object a guardian. Returns its number; `None` without memory.
    pub(super) fn make(&self, object: *mut u8) -> Option<u32> {
        self.inner.lock().make(object)
    }

    /// Registers an object. Returns false without memory, or if there is no such guardian.
    pub(super) fn register(&self, number: u32, object: *mut u8, representative: *mut u8) -> bool {
        self.inner.lock().register(number, object, representative)
    }

    /// Takes the next object that can be retrieved from a guardian.
    pub(super) fn take(&self, number: u32) -> Option<*mut u8> {
        self.inner.lock().take(number)
    }

    /// Returns how many objects can be retrieved, from all guardians.
    pub(super) fn pending(&self) -> usize {
        self.inner.lock().pending
    }

    /// Marks the objects that guardians keep, and returns whether there were any. If not, makes
    /// inaccessible objects retrievable, marks them, and returns whether there were any.
    pub(super) fn ask(
        &self,
        is_unmarked: impl Fn(*mut u8) -> bool,
        mut mark: impl FnMut(*mut u8),
    ) -> (bool, bool) {
        let mut inner = self.inner.lock();
        if inner.is_empty() {
            return (false, false);
        }
        if inner.mark(&is_unmarked, &mut mark) {
            return (true, false);
        }
        (false, inner.retrieve(&is_unmarked, &mut mark) > 0)
    }

    /// Removes inaccessible guardians. When everything is marked.
    pub(super) fn sweep(&self, is_unmarked: impl Fn(*mut u8) -> bool) {
        let mut inner = self.inner.lock();
        if !inner.is_empty() {
            inner.sweep(&is_unmarked);
        }
    }

    /// Calls `with` for all objects that guardians keep.
    pub(super) fn each_kept(&self, with: &mut impl FnMut(Kept)) {
        self.inner.lock().each_kept(with);
    }

    /// Changes the address of each object to the result of `with`.
    pub(super) fn each_object(&self, with: impl Fn(*mut u8) -> *mut u8) {
        self.inner.lock().each_object(with);
    }

    /// Forgets all.
    pub(super) fn end(&self) {
        let mut inner = self.inner.lock();
        inner.guardians.end();
        inner.registered.end();
        inner.retrieved.end();
        (inner.free_guardian, inner.free_retrieved, inner.pending) = (0, 0, 0);
    }

    /// Hands its lock to `with`.
    pub(super) fn each_lock(&self, with: With<'_>) {
        with(&self.inner);
    }
}
