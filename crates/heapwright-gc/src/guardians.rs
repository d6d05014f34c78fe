//! Guardians: objects that return the registered objects which have become inaccessible.
//!
//! ```text
//!   guardian       an object of the runtime's own, with a number
//!      registered  | object, representative | ...                 not roots
//!                        | nothing leads to the object
//!                        v
//!      retrieved   representative -> representative -> ...        kept while the guardian lives
//! ```
//!
//! After Dybvig, Bruggeman, Eby: "Guardians in a generation-based garbage collector", 1993. The
//! program registers objects with a guardian. Later, at any time, it retrieves those objects that
//! nothing else leads to any more. A retrieved object is whole, like any other, and may be
//! registered again. An object may be registered several times, with one or several guardians, and
//! is retrieved as often. Another object, its *representative*, may be retrieved in its stead. The
//! representative is kept as an ephemeron's value is, so the object itself can go.
//!
//! A retrieved object was never dead. Weak references to it stay, and so do ephemerons with this
//! key. Finalizers are judged after guardians. If two registered objects became inaccessible
//! together, both are retrieved, even if one leads to the other. An inaccessible guardian goes, and
//! retrieves nothing any more. A guardian lives on if a retrieved object leads to it.
//!
//! The runtime chooses any object to be the guardian, and stores the guardian's number in it. The
//! number leads in constant time to the list of retrievable objects. The heap forgets the number
//! when the guardian dies. So the heap puts nothing into an object, and needs no root.
//!
//! Entries are found by their objects (`by_object`), under a lock. Called by `settling`, `tracer`,
//! `moving`, `walk` and `raw`.

use heapwright_substrate::sync::Lock;

use super::array::Array;
use super::by_object::{ByObject, Linked, Node};
use super::kept::Kept;
use super::locks::With;

/// A heap's guardians. All-zero bytes: no guardians.
pub(super) struct Guardians {
    inner: Lock<Inner>,
}

/// **In steps.** A collection judges and marks a few registrations at a time (see `settling`). If
/// an object is marked later, its representatives are marked, too. If a guardian is marked later,
/// its retrievable objects are marked, and its registrations are visited. So a chain of guardians
/// takes time in proportion to its length. A registration waits in a queue if its guardian is
/// marked and its object is not. When nothing else is left to mark, all registrations in the queue
/// are judged. Then their representatives are marked. Minor collections visit only young
/// registrations (see `by_object`).
pub(super) struct Inner {
    guardians: ByObject<Guardian>,
    registered: ByObject<Registered>,
    retrieved: Array<Retrieved>,
    /// The first free place in `retrieved`: a number from 1.
    free_retrieved: u32,
    /// How many objects can be retrieved.
    pending: usize,
    /// For each guardian that was marked late: its first registration that is still to be visited.
    late: Array<u32>,
    /// Registrations to be judged. `judged`: how many of these were judged. `dead`: the judged ones
    /// whose objects are dead.
    queue: Array<u32>,
    judged: usize,
    dead: Array<u32>,
    /// How many of the dead registrations are retrievable already.
    buried: usize,
}

#[derive(Clone, Copy)]
struct Guardian {
    node: Node,
    /// The first and the last retrievable entry.
    first: u32,
    last: u32,
    /// Its first registration.
    registered: u32,
}

#[derive(Clone, Copy)]
struct Registered {
    node: Node,
    representative: *mut u8,
    guardian: u32,
    /// The guardian's next and previous registration.
    next: u32,
    previous: u32,
    /// Whether it waits in the queue.
    queued: bool,
}

#[derive(Clone, Copy)]
struct Retrieved {
    representative: *mut u8,
    next: u32,
}

impl Linked for Guardian {
    fn node(&mut self) -> &mut Node {
        &mut self.node
    }
}

impl Linked for Registered {
    fn node(&mut self) -> &mut Node {
        &mut self.node
    }

    fn change(&mut self, with: &dyn Fn(*mut u8) -> *mut u8) {
        self.representative = with(self.representative);
    }
}

// SAFETY: objects are memory of the heap. A lock around this orders all accesses.
unsafe impl Send for Inner {}

/// Returns the place of a number. Numbers begin at 1.
fn place<T>(of: &mut [T], number: u32) -> Option<&mut T> {
    of.get_mut((number as usize).checked_sub(1)?)
}

/// Two functions of the collection that visits registrations.
pub(super) struct Judge<U, M> {
    /// Returns whether a reference leads to an object without a mark.
    pub(super) is_unmarked: U,
    pub(super) mark: M,
}

impl<U: Fn(*mut u8) -> bool, M: FnMut(*mut u8)> Judge<U, M> {
    /// Marks an object if it has no mark. Returns whether it had none.
    fn keep(&mut self, object: *mut u8) -> bool {
        let unmarked = (self.is_unmarked)(object);
        if unmarked {
            (self.mark)(object);
        }
        unmarked
    }
}

impl Inner {
    fn make(&mut self, object: *mut u8) -> Option<u32> {
        // Reserves room to note each guardian that is marked late.
        if object.is_null() || !self.late.reserve(self.guardians.count() + 1) {
            return None;
        }
        self.guardians.add(Guardian { node: Node::of(object), first: 0, last: 0, registered: 0 })
    }

    /// Registers an object. Also makes room to retrieve it later, so a collection never fails.
    fn register(&mut self, guardian: u32, object: *mut u8, representative: *mut u8) -> bool {
        let more = self.registered.count() + 1;
        let Some(&mut Guardian { registered: next, .. }) = self.guardians.get(guardian) else {
            return false;
        };
        if object.is_null()
            || !(self.retrieved.reserve(more)
                && self.queue.reserve(more)
                && self.dead.reserve(more))
        {
            return false;
        }
        let node = Node::of(object);
        let entry = Registered { node, representative, guardian, next, previous: 0, queued: false };
        let Some(number) = self.registered.add(entry) else { return false };
        if let Some(behind) = self.registered.get(next) {
            behind.previous = number;
        }
        if let Some(guardian) = self.guardians.get(guardian) {
            guardian.registered = number;
        }
        true
    }

    fn remove(&mut self, number: u32) -> Option<Registered> {
        let entry = self.registered.remove(number)?;
        if let Some(behind) = self.registered.get(entry.next) {
            behind.previous = entry.previous;
        }
        if let Some(before) = self.registered.get(entry.previous) {
            before.next = entry.next;
        } else if let Some(guardian) = self.guardians.get(entry.guardian) {
            guardian.registered = entry.next;
        }
        Some(entry)
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
        self.guardians.make_young(guardian);
        let Some(guardian) = self.guardians.get(guardian) else { return };
        let last = core::mem::replace(&mut guardian.last, number);
        if guardian.first == 0 {
            guardian.first = number;
        }
        if let Some(before) = place(&mut self.retrieved, last) {
            before.next = number;
        }
    }

    fn take(&mut self, guardian: u32) -> Option<*mut u8> {
        let number = self.guardians.get(guardian)?.first;
        let taken = place(&mut self.retrieved, number)?;
        let (next, representative) = (taken.next, taken.representative);
        // A free place keeps nothing.
        taken.representative = core::ptr::null_mut();
        taken.next = core::mem::replace(&mut self.free_retrieved, number);
        self.pending -= 1;
        let guardian = self.guardians.get(guardian)?;
        guardian.first = next;
        if next == 0 {
            guardian.last = 0;
        }
        Some(representative)
    }

    /// Marks the objects that can be retrieved from a marked guardian.
    fn mark_retrieved(&mut self, guardian: u32, mark: &mut dyn FnMut(*mut u8)) {
        let mut number = self.guardians.get(guardian).map_or(0, |guardian| guardian.first);
        while let Some(entry) = place(&mut self.retrieved, number) {
            mark(entry.representative);
            number = entry.next;
        }
    }

    /// Visits a registration with a marked guardian. If the object is marked, marks the
    /// representative. Otherwise, queues the registration to be judged.
    fn consider<U: Fn(*mut u8) -> bool, M: FnMut(*mut u8)>(
        &mut self,
        number: u32,
        judge: &mut Judge<U, M>,
    ) {
        let Some(entry) = self.registered.get(number) else { return };
        if !(judge.is_unmarked)(entry.node.object()) {
            judge.keep(entry.representative);
        } else if !core::mem::replace(&mut entry.queued, true) {
            // There is room: `register` made it.
            _ = self.queue.push(number);
        }
    }

    /// Returns whether a guardian's object is marked. False if there is no such guardian.
    fn is_marked<U: Fn(*mut u8) -> bool, M: FnMut(*mut u8)>(
        &mut self,
        guardian: u32,
        judge: &Judge<U, M>,
    ) -> bool {
        self.guardians.get(guardian).is_some_and(|of| !(judge.is_unmarked)(of.node.object()))
    }

    /// Visits up to `most` guardians behind the number `at`, and advances `at`. Marks the objects
    /// that can be retrieved from marked guardians. Returns whether no guardian is left.
    pub(super) fn visit_guardians<U: Fn(*mut u8) -> bool, M: FnMut(*mut u8)>(
        &mut self,
        at: &mut u32,
        minor: bool,
        most: usize,
        judge: &mut Judge<U, M>,
    ) -> bool {
        for _ in 0..most {
            let Some(number) = self.guardians.next(*at, minor) else { return true };
            *at = number;
            if self.is_marked(number, judge) {
                self.mark_retrieved(number, &mut |object| _ = judge.keep(object));
            }
        }
        false
    }

    /// As [`Inner::visit_guardians`], for registrations. Considers those with a marked guardian.
    pub(super) fn visit_registered<U: Fn(*mut u8) -> bool, M: FnMut(*mut u8)>(
        &mut self,
        at: &mut u32,
        minor: bool,
        most: usize,
        judge: &mut Judge<U, M>,
    ) -> bool {
        for _ in 0..most {
            let Some(number) = self.registered.next(*at, minor) else { return true };
            *at = number;
            let guardian = self.registered.get(number).map_or(0, |entry| entry.guardian);
            if self.is_marked(guardian, judge) {
                self.consider(number, judge);
            }
        }
        false
    }

    /// Visits an object that was marked. Marks the representatives that are kept with it. If the
    /// object is a guardian, marks its retrievable objects, and notes its registrations.
    pub(super) fn marked<U: Fn(*mut u8) -> bool, M: FnMut(*mut u8)>(
        &mut self,
        object: *mut u8,
        judge: &mut Judge<U, M>,
    ) {
        let mut number = self.registered.first(object);
        while let Some(&mut entry) = self.registered.get(number) {
            if self.is_marked(entry.guardian, judge) {
                judge.keep(entry.representative);
            }
            number = self.registered.behind(number);
        }
        let mut number = self.guardians.first(object);
        while let Some(&mut Guardian { registered, .. }) = self.guardians.get(number) {
            self.mark_retrieved(number, &mut |object| _ = judge.keep(object));
            if registered != 0 {
                // There is room: `make` made it.
                _ = self.late.push(registered);
            }
            number = self.guardians.behind(number);
        }
    }

    /// Visits up to `most` registrations of guardians that were marked late. Returns whether no
    /// registration is left.
    pub(super) fn visit_late<U: Fn(*mut u8) -> bool, M: FnMut(*mut u8)>(
        &mut self,
        most: usize,
        judge: &mut Judge<U, M>,
    ) -> bool {
        let mut visits = 0;
        while let Some(mut number) = self.late.pop() {
            while let Some(&mut Registered { next, .. }) = self.registered.get(number) {
                if visits == most {
                    _ = self.late.push(number);
                    return false;
                }
                visits += 1;
                self.consider(number, judge);
                number = next;
            }
        }
        true
    }

    pub(super) fn is_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Judges up to `most` registrations of the queue. If the object of a registration has no mark,
    /// the registration is dead, and is retrieved next. Returns whether no registration is left.
    pub(super) fn judge_some(
        &mut self,
        most: usize,
        is_unmarked: impl Fn(*mut u8) -> bool,
    ) -> bool {
        let end = self.queue.len().min(self.judged + most);
        for at in self.judged..end {
            let number = self.queue[at];
            let Some(entry) = self.registered.get(number) else { continue };
            if is_unmarked(entry.node.object()) {
                // There is room: `register` made it.
                _ = self.dead.push(number);
            } else {
                entry.queued = false;
            }
        }
        self.judged = end;
        if end < self.queue.len() {
            return false;
        }
        self.queue.truncate(0);
        self.judged = 0;
        true
    }

    /// Makes up to `most` dead registrations retrievable, marks representatives, returns how many.
    pub(super) fn retrieve_some<U: Fn(*mut u8) -> bool, M: FnMut(*mut u8)>(
        &mut self,
        most: usize,
        judge: &mut Judge<U, M>,
    ) -> usize {
        let (from, end) = (self.buried, self.dead.len().min(self.buried + most));
        for at in from..end {
            let number = self.dead[at];
            if let Some(entry) = self.remove(number) {
                self.put(entry.guardian, entry.representative);
                (judge.mark)(entry.representative);
            }
        }
        self.buried = end;
        if end == self.dead.len() {
            self.dead.truncate(0);
            self.buried = 0;
        }
        end - from
    }

    /// Removes inaccessible guardians with their registrations. Visits up to `most` entries behind
    /// the number `at`, and advances `at`. Returns whether no guardian is left to visit.
    pub(super) fn sweep_some(
        &mut self,
        at: &mut u32,
        minor: bool,
        most: usize,
        is_unmarked: impl Fn(*mut u8) -> bool,
    ) -> bool {
        let mut visits = 0;
        while visits < most {
            let Some(number) = self.guardians.next(*at, minor) else { return true };
            visits += 1;
            let Some(&mut Guardian { node, registered, first, .. }) = self.guardians.get(number)
            else {
                continue;
            };
            if !is_unmarked(node.object()) {
                *at = number;
            } else if first != 0 {
                self.take(number);
            } else if registered != 0 {
                self.remove(registered);
            } else {
                self.guardians.remove(number);
            }
        }
        false
    }

    /// Makes minor collections pass over old guardians that have nothing to retrieve. Visits up to
    /// `most` guardians behind the number `at`. Returns whether none is left.
    pub(super) fn age_guardians(
        &mut self,
        at: &mut u32,
        most: usize,
        is_old: impl Fn(*mut u8) -> bool,
    ) -> bool {
        for _ in 0..most {
            let Some(number) = self.guardians.next(*at, true) else { return true };
            *at = number;
            if self
                .guardians
                .get(number)
                .is_some_and(|of| of.first == 0 && is_old(of.node.object()))
            {
                self.guardians.make_old(number);
            }
        }
        false
    }

    /// As [`Inner::age_guardians`], for registrations. Both objects must be old.
    pub(super) fn age_registered(
        &mut self,
        at: &mut u32,
        most: usize,
        is_old: impl Fn(*mut u8) -> bool,
    ) -> bool {
        for _ in 0..most {
            let Some(number) = self.registered.next(*at, true) else { return true };
            *at = number;
            let old = |entry: &mut Registered| {
                is_old(entry.node.object()) && is_old(entry.representative)
            };
            if self.registered.get(number).is_some_and(old) {
                self.registered.make_old(number);
            }
        }
        false
    }

    /// Returns how many visits to guardians and registrations collections have made.
    #[cfg(test)]
    pub(super) fn visited(&self) -> usize {
        self.guardians.visited + self.registered.visited
    }

    fn each_kept(&mut self, with: &mut impl FnMut(Kept)) {
        let Self { guardians, registered, retrieved, .. } = self;
        registered.each(|entry| {
            if let Some(guardian) = guardians.get(entry.guardian) {
                let (by, and) = (entry.node.object(), guardian.node.object());
                with(Kept { by, and, object: entry.representative });
            }
        });
        guardians.each(|guardian| {
            let mut number = guardian.first;
            while let Some(entry) = place(retrieved, number) {
                let object = entry.representative;
                with(Kept { by: guardian.node.object(), and: core::ptr::null_mut(), object });
                number = entry.next;
            }
        });
    }

    fn each_object(&mut self, with: &dyn Fn(*mut u8) -> *mut u8) {
        self.guardians.each_object(with);
        self.registered.each_object(with);
        for entry in self.retrieved.iter_mut() {
            entry.representative = with(entry.representative);
        }
    }
}

impl Guardians {
    /// Makes an object a guardian. Returns the guardian's number, or `None` without memory.
    pub(super) fn make(&self, object: *mut u8) -> Option<u32> {
        self.inner.lock().make(object)
    }

    pub(super) fn with<R>(&self, with: impl FnOnce(&mut Inner) -> R) -> R {
        with(&mut self.inner.lock())
    }

    /// Registers an object. Returns false without memory, or if there is no such guardian.
    pub(super) fn register(&self, number: u32, object: *mut u8, representative: *mut u8) -> bool {
        self.with(|inner| inner.register(number, object, representative))
    }

    /// Takes the next object that can be retrieved from a guardian.
    pub(super) fn take(&self, number: u32) -> Option<*mut u8> {
        self.with(|inner| inner.take(number))
    }

    pub(super) fn pending(&self) -> usize {
        self.with(|inner| inner.pending)
    }

    pub(super) fn has_any(&self) -> bool {
        self.with(|inner| inner.registered.count() + inner.pending > 0)
    }

    /// Calls `with` for all objects that guardians keep.
    pub(super) fn each_kept(&self, with: &mut impl FnMut(Kept)) {
        self.with(|inner| inner.each_kept(with));
    }

    /// Changes the address of each object to the result of `with`.
    pub(super) fn each_object(&self, with: impl Fn(*mut u8) -> *mut u8) {
        self.with(|inner| inner.each_object(&with));
    }

    pub(super) fn end(&self) {
        self.with(|inner| {
            inner.guardians.end();
            inner.registered.end();
            inner.retrieved.end();
            inner.late.end();
            inner.queue.end();
            inner.dead.end();
            (inner.free_retrieved, inner.pending, inner.judged, inner.buried) = (0, 0, 0, 0);
        });
    }

    pub(super) fn each_lock(&self, with: With<'_>) {
        with(&self.inner);
    }
}
