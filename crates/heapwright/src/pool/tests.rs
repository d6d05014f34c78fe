//! Pools against models, and edge cases.

extern crate std;

use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::NonNull;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::cases::cases;
use crate::{Kind, describe};

#[derive(Clone, Debug)]
enum Step {
    Create(u64),
    Destroy(usize),
    Insert(u64),
    Remove(usize),
    Iterate,
    Trim,
    Preheat(usize),
    Reset(Reset),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        40 => any::<u64>().prop_map(Step::Create),
        35 => any::<usize>().prop_map(Step::Destroy),
        15 => any::<u64>().prop_map(Step::Insert),
        12 => any::<usize>().prop_map(Step::Remove),
        3 => Just(Step::Iterate),
        2 => Just(Step::Trim),
        2 => (0..scaled(3000)).prop_map(Step::Preheat),
        1 => prop_oneof![
            Just(Reset::FreeAll),
            Just(Reset::RetainCapacity),
            (0usize..5000).prop_map(Reset::RetainUpTo),
        ]
        .prop_map(Step::Reset),
    ];
    // Bursts make fronts overflow and segments fill. Miri is a thousand times slower, so there the
    // front overflows once or twice.
    let (longest, most) = if cfg!(miri) { (140usize, 4) } else { (80, 120) };
    prop::collection::vec((step, 1..longest), 1..most)
        .prop_map(|runs| runs.into_iter().flat_map(|(step, n)| burst(&step, n)).collect())
}

fn scaled(count: usize) -> usize {
    if cfg!(miri) { count.min(200) } else { count }
}

fn burst(step: &Step, times: usize) -> Vec<Step> {
    let once = matches!(step, Step::Iterate | Step::Trim | Step::Preheat(_) | Step::Reset(_));
    (0..if once { 1 } else { times as u64 })
        .map(|i| match step {
            Step::Create(value) => Step::Create(value.wrapping_add(i)),
            Step::Insert(value) => Step::Insert(value.wrapping_add(i)),
            other => other.clone(),
        })
        .collect()
}

/// An object that stores its value twice, with padding behind it.
#[derive(Clone, Copy)]
struct Object<const PAD: usize> {
    value: u64,
    _pad: [u8; PAD],
    again: u64,
}

impl<const PAD: usize> Object<PAD> {
    fn new(value: u64) -> Self {
        Self { value, _pad: [value as u8; PAD], again: !value }
    }

    fn is(&self, value: u64) -> bool {
        self.value == value && self.again == !value
    }
}

fn against_a_model<const PAD: usize>(steps: Vec<Step>) {
    let mut pool: Pool<Object<PAD>> = Pool::new();
    let mut raw: BTreeMap<usize, (NonNull<Object<PAD>>, u64)> = BTreeMap::new();
    let mut keyed: Vec<(Key<Object<PAD>>, u64)> = Vec::new();
    let mut stale: Vec<Key<Object<PAD>>> = Vec::new();
    for step in steps {
        match step {
            Step::Create(value) => {
                let object = pool.create(Object::new(value));
                assert!(pool.contains(object.as_ptr()));
                assert!(raw.insert(object.addr().get(), (object, value)).is_none());
            }
            Step::Destroy(which) => {
                let Some(&address) = raw.keys().nth(which % raw.len().max(1)) else { continue };
                let (object, value) = raw.remove(&address).unwrap();
                // SAFETY: created above.
                assert!(unsafe { object.as_ref() }.is(value));
                // SAFETY: created above, and out of the model.
                unsafe { pool.destroy(object) };
            }
            Step::Insert(value) => keyed.push((pool.insert(Object::new(value)), value)),
            Step::Remove(which) if !keyed.is_empty() => {
                let (key, value) = keyed.swap_remove(which % keyed.len());
                assert!(pool.get(key).unwrap().is(value));
                assert!(pool.remove(key).unwrap().is(value));
                stale.push(key);
            }
            Step::Remove(_) => {}
            Step::Iterate => {
                let live: Vec<_> =
                    pool.live_mut().map(|object| (object as *mut Object<PAD>).addr()).collect();
                assert!(live[..raw.len()].is_sorted());
                assert!(pool.keys().is_sorted() && pool.keys().count() == keyed.len());
                let mut live = live;
                live.sort_unstable();
                let mut model: Vec<_> = raw.keys().copied().collect();
                let of = |key| (pool.get(key).unwrap() as *const Object<PAD>).addr();
                model.extend(keyed.iter().map(|&(key, _)| of(key)));
                model.sort_unstable();
                assert_eq!(live, model);
            }
            Step::Trim => {
                pool.trim();
            }
            Step::Preheat(count) => assert!(pool.preheat(count, count % 2 == 0)),
            Step::Reset(how) => {
                pool.reset(how);
                raw.clear();
                stale.extend(keyed.drain(..).map(|(key, _)| key));
                if let Reset::FreeAll = how {
                    assert_eq!(pool.capacity(), 0);
                }
            }
        }
        assert_eq!(pool.len(), raw.len() + keyed.len());
    }
    for (key, value) in keyed {
        let object = pool.get(key).unwrap();
        assert!(object.is(value) && pool.key_of(object) == Some(key));
        assert!(pool.contains(object) && pool.index_of(object).is_none());
        let found = describe(core::ptr::from_ref(object).cast::<u8>().wrapping_add(3));
        assert!(found.kind == Kind::Pool && found.size >= size_of::<Object<PAD>>());
        assert_eq!((found.block, found.offset), (core::ptr::from_ref(object).addr(), 3));
    }
    for key in stale {
        assert!(pool.get(key).is_none(), "{key:?} is stale");
    }
    for (object, value) in raw.into_values() {
        // SAFETY: created above, and live.
        assert!(unsafe { object.as_ref() }.is(value));
        let index = pool.index_of(object.as_ptr()).unwrap();
        assert_eq!(pool.with_raw(|raw| raw.slot_of(index)), Some(object.as_ptr().cast()));
        let found = describe(object.as_ptr().cast::<u8>().wrapping_add(3));
        assert_eq!((found.kind, found.block), (Kind::Pool, object.addr().get()));
        assert_eq!((found.size, found.offset), (size_of::<Object<PAD>>(), 3));
    }
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn a_pool_keeps_to_the_model(steps in steps()) {
        against_a_model::<8>(steps);
    }

    #[test]
    fn a_pool_of_large_objects_keeps_to_the_model(steps in steps()) {
        against_a_model::<5000>(steps);
    }
}

struct Dropping<'a> {
    drops: &'a Cell<usize>,
    panics: bool,
}

impl Drop for Dropping<'_> {
    fn drop(&mut self) {
        self.drops.set(self.drops.get() + 1);
        assert!(!self.panics, "a destructor that panics");
    }
}

#[test]
fn every_object_is_dropped_once() {
    let drops = Cell::new(0);
    let make = || Dropping { drops: &drops, panics: false };
    let mut pool = Pool::new();
    let raw = pool.create(make());
    drop(pool.boxed(make()));
    assert_eq!(drops.get(), 1);
    let taken = pool.boxed(make()).into_inner();
    assert_eq!(drops.get(), 1);
    drop(taken);
    // SAFETY: created above, once.
    unsafe { pool.destroy(raw) };
    assert_eq!(drops.get(), 3);
    let _left = [pool.create(make()), pool.create(make())];
    let _key = pool.insert(make());
    pool.reset(Reset::RetainCapacity);
    assert_eq!(drops.get(), 6);
    let _left = pool.create(make());
    drop(pool);
    assert_eq!(drops.get(), 7);
}

#[test]
fn a_destructor_that_panics_leaks_no_slot_and_no_other_object() {
    let drops = Cell::new(0);
    let mut pool = Pool::new();
    let boxed = pool.boxed(Dropping { drops: &drops, panics: true });
    let at: *const _ = &*boxed;
    assert!(catch_unwind(AssertUnwindSafe(|| drop(boxed))).is_err());
    assert_eq!((drops.get(), pool.len()), (1, 0));
    let again = pool.boxed(Dropping { drops: &drops, panics: false });
    assert!(core::ptr::eq(at, &*again), "the slot is used again");
    drop(again);
    drops.set(0);
    for n in 0..100 {
        let _ = pool.create(Dropping { drops: &drops, panics: n == 40 });
    }
    let reset = catch_unwind(AssertUnwindSafe(|| pool.reset(Reset::RetainCapacity)));
    assert!(reset.is_err());
    assert_eq!((drops.get(), pool.len()), (100, 0));
}

#[test]
fn a_shared_pool_survives_destructors_that_panic() {
    let drops = Cell::new(0);
    let mut pool = SharedPool::new();
    let boxed = pool.boxed(Dropping { drops: &drops, panics: true });
    assert!(catch_unwind(AssertUnwindSafe(|| drop(boxed))).is_err());
    assert_eq!((drops.get(), pool.len()), (1, 0));
    for n in 0..100 {
        let _ = pool.create(Dropping { drops: &drops, panics: n == 40 });
    }
    assert!(catch_unwind(AssertUnwindSafe(|| pool.reset(Reset::FreeAll))).is_err());
    assert_eq!((drops.get(), pool.len()), (101, 0));
}

#[test]
fn a_limit_is_exact_and_refusals_return_the_value() {
    for limit in [1u32, 2, 33, 1000, 5000].map(|limit| limit.min(scaled(5000) as u32)) {
        let pool = Pool::<u64>::builder().limit(limit).build();
        let mut held: Vec<_> =
            (0..limit).map(|n| pool.try_boxed(n.into()).expect("below the limit")).collect();
        assert_eq!(pool.try_boxed(77).err().map(|refused| refused.0), Some(77));
        assert_eq!(pool.stats().segments, 1, "one reservation");
        held.swap_remove(limit as usize / 2);
        held.push(pool.try_boxed(78).expect("one is free again"));
        assert!(pool.try_create(79).is_err());
        // Objects with keys have a limit of their own.
        let keys: Vec<_> = (0..limit).map(|n| pool.try_insert(n.into()).unwrap()).collect();
        assert!(pool.try_insert(80).is_err() && pool.contains_key(keys[0]));
    }
    let none = Pool::<u64>::builder().limit(0).build();
    assert!(none.try_boxed(1).is_err());
}

#[test]
fn a_limit_beyond_all_memory_is_no_refusal() {
    let pool = Pool::<[u8; 1 << 20]>::builder().limit(u32::MAX - 1).build();
    assert!(pool.with_raw(|raw| !raw.alloc().is_null()));
}

#[test]
fn objects_of_no_size_have_addresses_and_keys() {
    let mut pool = Pool::new();
    let (a, b) = (pool.create(()), pool.create(()));
    assert_ne!(a, b);
    let key = pool.insert(());
    assert_eq!((pool.len(), pool.live_mut().count()), (3, 3));
    assert_eq!((pool.remove(key), pool.get(key)), (Some(()), None));
    // SAFETY: created above.
    unsafe { pool.destroy(a) };
    assert_eq!(pool.len(), 1);
    #[repr(align(256))]
    struct Over;
    let pool = Pool::new();
    for _ in 0..100 {
        assert!(pool.create(Over).addr().get().is_multiple_of(256));
    }
}

#[test]
fn any_alignment_is_kept() {
    for shift in 0..if cfg!(miri) { 18 } else { 23 } {
        let align = 1 << shift;
        for size in [1, align, 3 * align / 2] {
            let mut pool = RawPool::new(Layout::from_size_align(size, align).unwrap());
            let slots: Vec<_> = (0..5).map(|_| pool.alloc()).collect();
            for &slot in &slots {
                assert!(!slot.is_null() && slot.addr().is_multiple_of(align));
            }
            for slot in slots {
                // SAFETY: taken above, once.
                unsafe { pool.free(slot) };
            }
        }
    }
}

#[test]
fn fresh_objects_lie_in_a_row_and_returned_ones_come_back_lowest_first() {
    let pool = Pool::new();
    let count = scaled(1000) as u64;
    let objects: Vec<_> = (0..count).map(|n| pool.create(n)).collect();
    assert!(objects.is_sorted());
    for &object in objects.iter().rev() {
        // SAFETY: created above, once.
        unsafe { pool.destroy(object) };
    }
    // Slots in the front come first. All later slots come in ascending order.
    let again: Vec<_> = (0..count).map(|n| pool.create(n)).collect();
    let later = &again[128..];
    assert!(later.is_sorted(), "what comes from the sets comes in order");
}

#[test]
fn preheated_objects_lie_in_a_row() {
    let pool: Pool<[u64; 6]> = Pool::new();
    let count = scaled(5000);
    assert!(pool.preheat(count, true));
    let before = pool.capacity();
    let objects: Vec<_> = (0..count as u64).map(|n| pool.create([n; 6])).collect();
    assert!(objects.is_sorted());
    assert_eq!(pool.capacity(), before);
}

#[test]
fn huge_pages_change_nothing_but_the_alignment() {
    let mut pool = Pool::<[u64; 8]>::builder().huge_pages(true).build();
    let count = scaled(200_000) as u64;
    for n in 0..count {
        let _ = pool.create([n; 8]);
    }
    assert_eq!(pool.live_mut().map(|o| o[3]).sum::<u64>(), count * (count - 1) / 2);
    pool.reset(Reset::FreeAll);
    assert_eq!(pool.capacity(), 0);
}

#[test]
fn a_reset_keeps_what_it_is_asked_to() {
    let mut pool: Pool<[u8; 64]> = Pool::new();
    let objects = if cfg!(miri) { 2000 } else { 5000 };
    let fill = |pool: &Pool<[u8; 64]>| (0..objects).for_each(|_| _ = pool.create([1; 64]));
    fill(&pool);
    let full = pool.capacity();
    pool.reset(Reset::RetainCapacity);
    assert_eq!((pool.capacity(), pool.len()), (full, 0));
    fill(&pool);
    let keep = objects * 3 / 10;
    pool.reset(Reset::RetainUpTo(keep));
    assert!((keep..full).contains(&pool.capacity()));
    fill(&pool);
    pool.reset(Reset::FreeAll);
    assert_eq!((pool.capacity(), pool.stats().segments), (0, 0));
}

#[test]
fn a_trim_gives_back_all_pages_without_an_object() {
    let pool: Pool<[u8; 1024]> = Pool::new();
    let count = if cfg!(miri) { 300 } else { 4000 };
    let mut held: Vec<_> = (0..count).map(|_| pool.boxed([7; 1024])).collect();
    let kept: Vec<_> = held.drain(..).enumerate().filter(|(n, _)| n % 100 == 0).collect();
    let given = pool.trim();
    // One object in a hundred stays, each in one page, or in two if it straddles their border.
    let kept_bytes = count / 100 * 2 * 4096 + (64 << 10);
    assert!(given + kept_bytes >= count * 1024, "{given}");
    assert!(kept.iter().all(|(_, object)| **object == [7; 1024]));
    drop(kept);
    pool.trim();
    assert_eq!(pool.capacity(), 0, "segments without an object go as a whole");
    assert_eq!(*pool.boxed([3; 1024]), [3; 1024]);
}

#[test]
fn keys_outlive_nothing() {
    let mut pool = Pool::new();
    let count = scaled(1000);
    let keys: Vec<_> = (0..count).map(|n| pool.insert(n)).collect();
    assert!(keys.iter().enumerate().all(|(n, &key)| pool.get(key) == Some(&n)));
    pool.reset(Reset::FreeAll);
    let again: Vec<_> = (0..count).map(|n| pool.insert(n)).collect();
    assert!(keys.iter().all(|&key| pool.get(key).is_none() && !pool.contains_key(key)));
    *pool.get_mut(again[3]).unwrap() = 99;
    assert_eq!(pool.remove(again[3]), Some(99));
    assert_eq!(pool.remove(again[3]), None);
    let bits = again[5].to_bits();
    assert_eq!(pool.get(Key::from_bits(bits).unwrap()), Some(&5));
    assert_eq!(Key::<usize>::from_bits(0), None);
    assert_eq!(Key::<usize>::from_bits(2 << 32), None, "an even generation is no key's");
    let beyond = Key::from_bits(bits | 0xffff_0000).unwrap();
    assert_eq!(pool.get(beyond), None);
}

#[test]
fn the_first_program_of_a_slot_maps_user_compiles_and_runs() {
    let mut p: Pool<u32> = Pool::new();
    let k = p.insert(1);
    for (key, value) in p.iter_mut() {
        assert_eq!((key, *value), (k, 1));
    }
    p.retain(|_, v| *v > 0);
    assert!(p.keys().eq([k]) && p[k] == 1);
    *p.get_disjoint_mut([k]).unwrap()[0] += 1;
    let second = p.insert_with_key(|k| k.index());
    assert!(k < second && p[second] == 1);
    let q = &p;
    assert!(q.iter().map(|(_, value)| *value).eq([2, 1]));
    assert_eq!(q.key_of(q.get(k).unwrap()), Some(k));
    assert_eq!(p.drain().count(), 2);
    p.clear();
    assert!(p.is_empty() && p.get(Key::default()).is_none());
}

#[test]
fn pools_know_their_own_objects() {
    let (one, two) = (Pool::new(), Pool::new());
    let (a, b) = (one.boxed(1), two.boxed(2));
    assert!(one.contains(&*a) && !one.contains(&*b));
    assert!(two.contains(&*b) && !two.contains(&*a));
    assert!(!one.contains(&3));
    assert_eq!((one.index_of(&*a), one.index_of(&*b)), (Some(0), None));
    assert_ne!((&raw const *a).addr() % 4096, (&raw const *b).addr() % 4096, "other colours");
}

#[test]
fn names_are_the_last_part_of_a_plain_type() {
    struct Plain;
    assert_eq!(Pool::<Plain>::new().with_raw(|raw| raw.store().name()), "Plain");
    let name = Pool::<Vec<u8>>::new().with_raw(|raw| raw.store().name());
    assert!(name.ends_with("Vec<u8>") && name.contains("::"));
}

#[test]
#[cfg_attr(windows, ignore = "it commits all that the system has, while other tests run")]
fn a_preheat_that_cannot_be_had_changes_nothing() {
    let mut pool: Pool<[u8; 1 << 14]> = Pool::new();
    assert!(!pool.preheat(u32::MAX as usize - 1, false), "64 TiB");
    assert_eq!(pool.capacity(), 0, "what it took for it went back");
    let key = pool.try_insert([1; 1 << 14]).expect("one fits");
    assert_eq!(pool.remove(key).unwrap()[5], 1);
}

#[test]
fn threads_share_a_pool() {
    let rounds = if cfg!(miri) { 40 } else { 20_000 };
    let pool = SharedPool::new();
    std::thread::scope(|scope| {
        for seed in 0..4u64 {
            let pool = &pool;
            scope.spawn(move || {
                let mut held = Vec::new();
                let mut random = seed + 1;
                for round in 0..rounds {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    if random >> 63 == 0 || held.is_empty() {
                        held.push((pool.boxed([seed, round]), round));
                    } else {
                        let at = (random >> 33) as usize % held.len();
                        let (object, round) = held.swap_remove(at);
                        assert_eq!(*object, [seed, round]);
                    }
                }
            });
        }
    });
    assert_eq!(pool.len(), 0);
}

#[test]
fn objects_made_here_are_destroyed_there() {
    let count = if cfg!(miri) { 80 } else { 50_000 };
    let pool = SharedPool::new();
    let (send, receive) = std::sync::mpsc::sync_channel(100);
    std::thread::scope(|scope| {
        let pool = &pool;
        scope.spawn(move || {
            for n in 0..count {
                send.send((pool.boxed(n), n)).unwrap();
            }
        });
        scope.spawn(move || {
            for (object, n) in receive {
                assert_eq!(*object, n);
            }
        });
    });
    assert_eq!(pool.len(), 0);
    assert!(pool.stats().capacity < 20_000, "slots come back to the thread that makes objects");
}

#[test]
fn thread_indices_are_passed_on_with_their_magazines() {
    let pool: SharedPool<[u64; 16]> = SharedPool::new();
    for _ in 0..if cfg!(miri) { 5 } else { 300 } {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let held: Vec<_> = (0..50).map(|n| pool.boxed([n; 16])).collect();
                drop(held);
            });
        });
    }
    assert_eq!(pool.len(), 0);
    assert!(pool.stats().segments <= 2, "no thread's slots are lost");
}

#[test]
fn a_shared_limit_is_exact() {
    let pool = SharedPool::<u64>::builder().limit(100).build();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..if cfg!(miri) { 2 } else { 500 } {
                    let held: Vec<_> = (0..60).map_while(|n| pool.try_boxed(n).ok()).collect();
                    assert!(pool.slots().live_now() <= 100);
                    drop(held);
                }
            });
        }
    });
    let held: Vec<_> = (0..100).map(|n| pool.try_boxed(n).expect("all are free")).collect();
    assert!(pool.try_boxed(0).is_err());
    drop(held);
}

#[test]
fn a_shared_pool_is_walked_trimmed_and_reset() {
    let mut pool: SharedPool<u64> = SharedPool::new();
    let count = scaled(1000) as u64;
    let objects: Vec<_> = (0..count).map(|n| pool.create(n)).collect();
    for &object in objects.iter().filter(|o| o.addr().get() % 16 == 0) {
        // SAFETY: created above, once.
        unsafe { pool.destroy(object) };
    }
    let mut sum = 0;
    let mut seen = 0;
    pool.for_each(|n| {
        sum += *n;
        seen += 1;
    });
    assert_eq!((seen, pool.len()), (count / 2, count as usize / 2));
    assert!(sum > 0 && pool.preheat(10_000, true));
    pool.reset(Reset::FreeAll);
    assert_eq!((pool.len(), pool.stats().capacity), (0, 0));
    assert!(!pool.contains(objects[0].as_ptr()));
    let _again = pool.create(1);
    assert_eq!(pool.len(), 1);
}
