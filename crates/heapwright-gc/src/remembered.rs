//! The remembered set: old objects that may lead to young ones.
//!
//! ```text
//!   a store into an old object --> stores ----> reported by the next minor collection, and by
//!                                               the one after it: `again`
//!   became old in this minor one -> survivors -> reported by the next one
//! ```
//!
//! Of the old objects with barriers, a minor collection traces only this set. So the set must have
//! every such object that leads to a young one. An object becomes old when it survives a second
//! time. A new object that was stored into an old object survives once as young, so the old object
//! is reported twice. An object that becomes old may lead to younger ones: it is reported once.
//!
//! An object is remembered once between two collections. The store that remembers an object clears
//! the object's mark. A store into an object without a mark reports nothing (`stores`). The
//! collection that gets the report sets the mark again. While the object's page awaits the sweep,
//! the mark stays, because the mark says that the object lives. Then an object may be remembered
//! more than once, which only costs time.
//!
//! If a store into a large object names the *place*, only the place is remembered, and a minor
//! collection looks at the place alone. The object keeps its mark. If all remembered places of the
//! heap take an eighth of the object's bytes, the whole object is remembered instead.
//!
//! Without memory to remember an object, the set is dropped, and the next collection is a major
//! one. Called by `cycle`, `ages` and `moving`; filled by `tracer` and `stores`.

use heapwright_substrate::address_map::MAP;

use super::bag::Bag;
use super::cell::Num;
use super::gang::Chunk;
use super::locks::With;
use super::space::Space;

/// Bytes of a remembered place: its address, and the function that traces it. (See `stores`.)
pub(super) const PLACE: usize = 2 * size_of::<usize>();

struct Bags {
    stores: Bag,
    /// Objects that were reported to the last minor collection, because of an earlier store.
    again: Bag,
    survivors: Bag,
}

pub(super) struct Remembered {
    next: Bags,
    now: Bags,
    /// Places for the next minor collection: those of new stores, and those that the last minor
    /// collection got first. `places_now`: places for the collection under way.
    places: [Bag; 2],
    places_now: [Bag; 2],
    /// How many places were remembered since the last collection began.
    place_count: Num,
    /// Whether memory was too short to remember an object.
    lost: Num,
}

impl Bags {
    fn all(&self) -> [&Bag; 3] {
        [&self.stores, &self.again, &self.survivors]
    }
}

impl Remembered {
    pub(super) fn stores(&self) -> &Bag {
        &self.next.stores
    }

    pub(super) fn survivors(&self) -> &Bag {
        &self.next.survivors
    }

    pub(super) fn places(&self) -> &Bag {
        &self.places[0]
    }

    /// Counts a place of an object of `size` bytes. Returns false if there are too many places. All
    /// places of the heap may take an eighth of the object's memory, with 16 bytes each.
    pub(super) fn counts_place(&self, size: usize) -> bool {
        let few = self.place_count.get() < size / (8 * PLACE);
        self.place_count.add_shared(usize::from(few));
        few
    }

    /// Takes a chunk of places. Also returns whether the next collection gets the chunk, too.
    pub(super) fn take_places(&self) -> Option<(*mut Chunk, bool)> {
        let [stores, again] = &self.places_now;
        stores
            .take()
            .map(|chunk| (chunk, true))
            .or_else(|| again.take().map(|chunk| (chunk, false)))
    }

    /// Begins a minor collection, which gets the objects remembered so far.
    pub(super) fn begin(&self) {
        self.place_count.set(0);
        self.places_now.iter().zip(&self.places).for_each(|(now, next)| now.take_all(next));
        self.now.all().into_iter().zip(self.next.all()).for_each(|(now, next)| now.take_all(next));
    }

    /// Takes a chunk to be reported. Also returns whether the next collection gets the chunk, too.
    pub(super) fn take(&self) -> Option<(*mut Chunk, bool)> {
        let stores = self.now.stores.take().map(|chunk| (chunk, true));
        stores.or_else(|| {
            let other = self.now.again.take().or_else(|| self.now.survivors.take());
            other.map(|chunk| (chunk, false))
        })
    }

    pub(super) fn lose(&self) {
        self.lost.set(1);
    }

    pub(super) fn has_lost(&self) -> bool {
        self.lost.get() != 0
    }

    /// Changes each object's address. The world must be stopped.
    pub(super) fn change(&self, mut with: impl FnMut(usize) -> usize) {
        self.each_bag(|bag| bag.change(&mut with));
    }

    /// Changes each place's address. The world must be stopped.
    pub(super) fn change_places(&self, mut with: impl FnMut(usize) -> usize) {
        let mut change = |[place, trace]: [usize; 2]| [with(place), trace];
        let all = self.places_now.iter().chain(&self.places);
        all.for_each(|bag| bag.change_each(&mut change));
    }

    /// Gives remembered objects their marks while `with` runs. The world must be stopped.
    pub(super) fn with_marks<R>(&self, space: &Space, with: impl FnOnce() -> R) -> R {
        /// A bit in the address of an object that gets its mark back for a while.
        const GIVEN: usize = 1;
        /// Clears the marks again, even if `with` panics.
        struct Given<'a>(&'a Remembered, &'a Space);
        impl Drop for Given<'_> {
            fn drop(&mut self) {
                self.0.change(|word| {
                    if word & GIVEN != 0 {
                        self.1.take_mark(MAP.base().with_addr(word & !GIVEN));
                    }
                    word & !GIVEN
                });
            }
        }
        let _given = Given(self, space);
        self.change(|word| {
            let object = MAP.base().with_addr(word);
            // A moved object has its mark at its new place.
            if space.is_marked(object) || space.forwarded(object).is_some() {
                return word;
            }
            space.give_mark(object);
            word | GIVEN
        });
        with()
    }

    /// Gives a chunk to the next collection as well.
    ///
    /// # Safety
    ///
    /// The chunk is from [`Remembered::take`].
    pub(super) unsafe fn give_again(&self, chunk: *mut Chunk) {
        // SAFETY: by the contract.
        unsafe { self.next.again.give(chunk) };
    }

    /// Gives a chunk of places to the next collection as well.
    ///
    /// # Safety
    ///
    /// The chunk is from [`Remembered::take_places`].
    pub(super) unsafe fn give_places_again(&self, chunk: *mut Chunk) {
        // SAFETY: by the contract.
        unsafe { self.places[1].give(chunk) };
    }

    /// Drops the remembered set. Calls `give` for its chunks.
    pub(super) fn forget(&self, mut give: impl FnMut(*mut Chunk)) {
        self.begin();
        core::iter::from_fn(|| self.take_places()).for_each(|(chunk, _)| give(chunk));
        core::iter::from_fn(|| self.take()).map(|(chunk, _)| chunk).for_each(give);
        self.lost.set(0);
    }

    fn each_bag(&self, with: impl FnMut(&Bag)) {
        self.now.all().into_iter().chain(self.next.all()).for_each(with);
    }

    pub(super) fn end(&self) {
        self.each_bag(Bag::end);
        self.places_now.iter().chain(&self.places).for_each(Bag::end);
        self.place_count.set(0);
        self.lost.set(0);
    }

    pub(super) fn each_lock(&self, with: With<'_>) {
        self.each_bag(|bag| bag.each_lock(with));
        self.places_now.iter().chain(&self.places).for_each(|bag| bag.each_lock(with));
    }
}
