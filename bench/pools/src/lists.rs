//! Free lists that lost to the pool's own.
//!
//! ```text
//!            free slots are kept in           a slot that comes back
//!   Linked   the slots' own first words       is next: Zig's `MemoryPool`
//!   Stack    an array of pointers             is next
//!   Bitmap   bits, and bits over bits         is next if it is the lowest
//! ```
//!
//! The slots are those of a `RawPool` that never sees one again: fresh ones, in a row, in
//! the same segments and on the same pages as the objects of a `Pool`. So nothing differs
//! but what is done with those that come back.

use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::ptr::NonNull;

use heapwright::pool::{Pool, RawPool};

use crate::measure::Object;
use crate::policies;

/// Where slots go that come back, and come from next.
trait FreeList: Default {
    /// A slot that is free, if one is. They are of `raw`.
    fn pop(&mut self, raw: &mut RawPool) -> Option<NonNull<Object>>;

    /// Keeps a slot of `raw`.
    ///
    /// # Safety
    ///
    /// Nobody uses the slot any more, and it is in no list.
    unsafe fn push(&mut self, raw: &mut RawPool, slot: NonNull<Object>);
}

/// A list through the free slots themselves.
#[derive(Default)]
struct Linked(Option<NonNull<Object>>);

impl FreeList for Linked {
    #[inline(always)]
    fn pop(&mut self, _raw: &mut RawPool) -> Option<NonNull<Object>> {
        let slot = self.0?;
        // SAFETY: a free slot, whose first word `push` wrote.
        self.0 = unsafe { slot.cast().read() };
        Some(slot)
    }

    #[inline(always)]
    unsafe fn push(&mut self, _raw: &mut RawPool, slot: NonNull<Object>) {
        // SAFETY: by the contract the slot is free; it has room for a word.
        unsafe { slot.cast().write(self.0) };
        self.0 = Some(slot);
    }
}

/// An array of all free slots.
#[derive(Default)]
struct Stack(Vec<NonNull<Object>>);

impl FreeList for Stack {
    #[inline(always)]
    fn pop(&mut self, _raw: &mut RawPool) -> Option<NonNull<Object>> {
        self.0.pop()
    }

    #[inline(always)]
    unsafe fn push(&mut self, _raw: &mut RawPool, slot: NonNull<Object>) {
        self.0.push(slot);
    }
}

/// A bit for each slot that is free, by its index; a bit for each word with bits, and so on.
#[derive(Default)]
struct Bitmap([Vec<u64>; 4]);

impl FreeList for Bitmap {
    #[inline(always)]
    fn pop(&mut self, raw: &mut RawPool) -> Option<NonNull<Object>> {
        let top = self.0[3].iter().position(|&word| word != 0)?;
        let lowest = |at: usize, level: &Vec<u64>| at * 64 + level[at].trailing_zeros() as usize;
        let index = self.0.iter().rev().fold(top, lowest);
        let mut at = index;
        for level in &mut self.0 {
            level[at / 64] &= !(1 << (at % 64));
            if level[at / 64] != 0 {
                break;
            }
            at /= 64;
        }
        NonNull::new(raw.slot_of(index as u32)?.cast())
    }

    #[inline(always)]
    unsafe fn push(&mut self, raw: &mut RawPool, slot: NonNull<Object>) {
        let mut at = raw.index_of(slot.as_ptr().cast()).expect("a slot of the pool's") as usize;
        for level in &mut self.0 {
            if level.len() <= at / 64 {
                level.resize(at / 64 + 1, 0);
            }
            let before = level[at / 64];
            level[at / 64] |= 1 << (at % 64);
            if before != 0 {
                break;
            }
            at /= 64;
        }
    }
}

/// A list and the pool that its slots are of.
struct Over<L>(UnsafeCell<(L, RawPool)>);

impl<L: FreeList> Over<L> {
    fn new() -> Self {
        Self(UnsafeCell::new((L::default(), RawPool::new(Layout::new::<Object>()))))
    }
}

impl<L: FreeList> policies::Pool for Over<L> {
    #[inline(always)]
    fn create(&self, value: Object) -> NonNull<Object> {
        // SAFETY: one thread's, and nobody holds a reference across a call.
        let (list, raw) = unsafe { &mut *self.0.get() };
        let slot = list.pop(raw).or_else(|| NonNull::new(raw.alloc().cast()));
        let slot = slot.expect("no memory");
        // SAFETY: a slot of the object's size and alignment, and ours alone.
        unsafe { slot.write(value) };
        slot
    }

    #[inline(always)]
    unsafe fn destroy(&self, object: NonNull<Object>) {
        // SAFETY: one thread's, and nobody holds a reference across a call.
        let (list, raw) = unsafe { &mut *self.0.get() };
        // SAFETY: created by this pool and destroyed once, says the caller.
        unsafe { list.push(raw, object) };
    }
}

impl policies::Pool for Pool<Object> {
    #[inline(always)]
    fn create(&self, value: Object) -> NonNull<Object> {
        self.create(value)
    }

    #[inline(always)]
    unsafe fn destroy(&self, object: NonNull<Object>) {
        // SAFETY: the caller's promise.
        unsafe { self.destroy(object) };
    }
}

/// The pool and the others.
pub fn measure(name: &str, shape: &str, count: usize) -> Option<()> {
    match name {
        "Pool" => policies::measure(&Pool::new(), shape, count),
        "Linked" => policies::measure(&Over::<Linked>::new(), shape, count),
        "Stack" => policies::measure(&Over::<Stack>::new(), shape, count),
        "Bitmap" => policies::measure(&Over::<Bitmap>::new(), shape, count),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::Pool as _;
    use std::collections::BTreeSet;

    fn hands_out_what_is_free<L: FreeList>() {
        let pool = Over::<L>::new();
        let mut random = figures::random::Random::new(crate::SEED);
        let (mut live, mut addresses) = (Vec::new(), BTreeSet::new());
        for i in 0..100_000 {
            if live.is_empty() || random.below(9) < if i < 50_000 { 5 } else { 4 } {
                let object = pool.create(Object::new(i));
                assert!(addresses.insert(object));
                live.push((object, i));
            } else {
                let (object, i) = live.swap_remove(random.below(live.len()));
                // SAFETY: live, and nobody else's.
                assert_eq!(unsafe { object.read() }.b, Object::new(i).b);
                // SAFETY: created above, and this once.
                unsafe { pool.destroy(object) };
                addresses.remove(&object);
            }
        }
    }

    #[test]
    fn each_list_hands_out_what_is_free() {
        hands_out_what_is_free::<Linked>();
        hands_out_what_is_free::<Stack>();
        hands_out_what_is_free::<Bitmap>();
    }
}
