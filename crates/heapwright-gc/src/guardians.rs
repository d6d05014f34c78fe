//! Guardians: objects that are asked for what has become inaccessible.
//!
//! ```text
//!   guardian       an object of the runtime's own, under a number      nothing leads to it: it goes, with all below
//!      registered  | object, representative | ...                      not roots
//!                        | nothing leads to the object
//!                        v
//!      retrieved   representative -> representative -> ...              kept as long as the guardian lives
//! ```
//!
//! After Dybvig, Bruggeman, Eby: "Guardians in a generation-based garbage collector", 1993. The
//! program registers objects with a guardian, and asks it, where and when it likes, for those that
//! it alone could still lead to. What it gets is whole, an object like any other, and may be
//! registered again. An object may be registered with several guardians, or with one several times,
//! and is retrieved as often. In its stead another object may be retrieved, its *representative*,
//! which is kept as an ephemeron's value is; so the object itself can go.
//!
//! What is retrieved was never dead: weak references to it, and ephemerons whose key it is, stay,
//! unlike with finalizers, which are judged afterwards. Of two objects that became inaccessible
//! together, one of which leads to the other, both are retrieved. A guardian that has become
//! inaccessible retrieves nothing any more; one that only an object leads to which is retrieved
//! lives.
//!
//! The guardian itself is any object that the runtime chooses to be it: it stores the number, which
//! leads to the list of what can be retrieved in constant time, and forgets it with the object. So
//! nothing of ours is in an object, nor is there a root.
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
    /// The first free guardian, and the first free place for what is retrieved: numbers from 1.
    free_guardian: u32,
    free_retrieved: u32,
    /// How many can be retrieved.
    pending: usize,
}

/// One of them. Without an object: free.
#[derive(Clone, Copy)]
struct Guardian {
    object: *mut u8,
    /// The first and the last that can be retrieved; of a free one, the next free one.
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

// SAFETY: objects are memory of the heap that this is part of; the lock around this orders all
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

    /// There is room for what is registered to be retrieved: so a collection never fails.
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

    /// Marks representatives: of objects that live, and what can be retrieved; of guardians that
    /// live. Whether there were any to mark.
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

    /// What has become inaccessible can be retrieved from guardians that have not. How many.
    fn retrieve(
        &mut self,
        is_unmarked: &impl Fn(*mut u8) -> bool,
        mark: &mut impl FnMut(*mut u8),
    ) -> usize {
        // All are judged before any is marked.
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

    /// Guardians that have become inaccessible go.
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
    /// Makes an object a guardian. Its number; `None` where there is no memory.
    pub(super) fn make(&self, object: *mut u8) -> Option<u32> {
        self.inner.lock().make(object)
    }

    /// Registers an object. False: there is no memory, or no such guardian.
    pub(super) fn register(&self, number: u32, object: *mut u8, representative: *mut u8) -> bool {
        self.inner.lock().register(number, object, representative)
    }

    /// The next that a guardian retrieves.
    pub(super) fn take(&self, number: u32) -> Option<*mut u8> {
        self.inner.lock().take(number)
    }

    /// How many can be retrieved, of all guardians.
    pub(super) fn pending(&self) -> usize {
        self.inner.lock().pending
    }

    /// Marks what guardians keep. Whether there was any; if not, whether anything has become
    /// inaccessible that they retrieve, which is marked then. While nothing else is left to mark.
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

    /// Guardians to which nothing leads go. When everything is marked.
    pub(super) fn sweep(&self, is_unmarked: impl Fn(*mut u8) -> bool) {
        let mut inner = self.inner.lock();
        if !inner.is_empty() {
            inner.sweep(&is_unmarked);
        }
    }

    /// Calls `with` for all that guardians keep.
    pub(super) fn each_kept(&self, with: &mut impl FnMut(Kept)) {
        self.inner.lock().each_kept(with);
    }

    /// Changes the address of each object to what `with` says.
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
