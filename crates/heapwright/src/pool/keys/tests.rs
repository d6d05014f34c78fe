//! Pools of keyed objects and secondary maps against models, and edge cases.

extern crate std;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::string::String;
use std::vec::Vec;
use std::{format, vec};

use proptest::prelude::*;

use super::*;
use crate::cases::cases;
use crate::pool::{Pool, coerce};

#[derive(Clone, Debug)]
enum Step {
    Insert(usize),
    Remove(usize, usize),
    Retain(u64),
    Swap(usize, usize),
    Iterate,
    Trim,
    Preheat(usize),
    Reset(Reset),
    Drain(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let most = if cfg!(miri) { 90usize } else { 900 };
    let step = prop_oneof![
        40 => (1..most).prop_map(Step::Insert),
        35 => (any::<usize>(), 1..most).prop_map(|(seed, count)| Step::Remove(seed, count)),
        4 => (1u64..5).prop_map(Step::Retain),
        4 => any::<(usize, usize)>().prop_map(|(one, two)| Step::Swap(one, two)),
        4 => Just(Step::Iterate),
        3 => Just(Step::Trim),
        2 => (0..most).prop_map(Step::Preheat),
        2 => prop_oneof![
            Just(Reset::FreeAll),
            Just(Reset::RetainCapacity),
            (0..most).prop_map(Reset::RetainUpTo),
        ]
        .prop_map(Step::Reset),
        1 => (0..most).prop_map(Step::Drain),
    ];
    prop::collection::vec(step, 1..if cfg!(miri) { 8 } else { 60 })
}

struct Counted<const PAD: usize> {
    value: u64,
    _count: Rc<()>,
    _pad: [u8; PAD],
}

fn against_a_model<const PAD: usize>(steps: Vec<Step>) {
    let counter = Rc::new(());
    let mut pool: KeyPool<Counted<PAD>> = KeyPool::new();
    let mut map: SecondaryMap<Key<Counted<PAD>>, u64> = SecondaryMap::new();
    let mut model: BTreeMap<Key<Counted<PAD>>, u64> = BTreeMap::new();
    let mut stale = Vec::new();
    let mut next = 0;
    for step in steps {
        match step {
            Step::Insert(count) => {
                for _ in 0..count {
                    next += 1;
                    let new = Counted { value: next, _count: counter.clone(), _pad: [1; PAD] };
                    let key = match next % 2 {
                        0 => pool.insert(new),
                        _ => pool.insert_with_key(|_| new),
                    };
                    assert!(model.insert(key, next).is_none() && !key.is_null());
                    map.insert(key, next);
                }
            }
            Step::Remove(seed, count) => {
                for at in 0..count.min(model.len()) {
                    let which = seed.wrapping_mul(at + 1) % model.len();
                    let (&key, &value) = model.iter().nth(which).unwrap();
                    assert_eq!(pool.remove(key).unwrap().value, value);
                    assert!(pool.remove(key).is_none());
                    model.remove(&key);
                    stale.push(key);
                }
            }
            Step::Retain(modulus) => {
                pool.retain(|key, object| {
                    assert_eq!(model.get(&key), Some(&object.value));
                    object.value % modulus != 0
                });
                stale.extend(model.iter().filter(|(_, v)| **v % modulus == 0).map(|(&k, _)| k));
                model.retain(|_, value| *value % modulus != 0);
            }
            Step::Swap(one, two) if !model.is_empty() => {
                let key = |which: usize| *model.keys().nth(which % model.len()).unwrap();
                let (one, two) = (key(one), key(two));
                match pool.get_disjoint_mut([one, two]) {
                    Some([a, b]) => core::mem::swap(&mut a.value, &mut b.value),
                    None => assert_eq!(one, two),
                }
                let values = (model[&one], model[&two]);
                model.extend([(one, values.1), (two, values.0)]);
            }
            Step::Swap(..) => {}
            Step::Iterate => {
                let pairs = pool.iter();
                assert_eq!(pairs.len(), model.len());
                assert!(pairs.map(|(k, o)| (k, o.value)).eq(model.iter().map(|(&k, &v)| (k, v))));
                assert!(pool.keys().eq(model.keys().copied()));
                assert!(pool.values_mut().map(|o| o.value).eq(model.values().copied()));
            }
            Step::Trim => _ = (pool.trim(), map.trim()),
            Step::Preheat(count) => {
                assert!(pool.preheat(count, count % 2 == 0));
                assert!(pool.capacity() >= pool.len() + count);
            }
            Step::Reset(how) => {
                pool.reset(how);
                stale.extend(core::mem::take(&mut model).into_keys());
                if how == Reset::FreeAll {
                    assert_eq!(pool.capacity(), 0);
                }
            }
            Step::Drain(count) => {
                let drained: Vec<_> = pool.drain().take(count).map(|(k, o)| (k, o.value)).collect();
                assert!(drained.into_iter().eq(model.iter().map(|(&k, &v)| (k, v)).take(count)));
                stale.extend(core::mem::take(&mut model).into_keys());
            }
        }
        assert_eq!((pool.len(), pool.stats().live), (model.len(), model.len()));
        assert_eq!(Rc::strong_count(&counter), model.len() + 1, "each object is dropped once");
    }
    for (&key, &value) in &model {
        let object = &pool[key];
        assert!(object.value == value && pool.key_of(object) == Some(key));
        assert!(map.contains_key(key));
    }
    let known: HashSet<_> = stale.iter().collect();
    assert_eq!(known.len(), stale.len(), "no key is there twice");
    for key in stale {
        assert!(!pool.contains_key(key) && pool.get(key).is_none(), "{key:?} is stale");
    }
    assert!(pool.into_iter().map(|(_, o)| o.value).eq(model.into_values()));
    assert_eq!(Rc::strong_count(&counter), 1);
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn keyed_objects_keep_to_the_model(steps in steps()) {
        against_a_model::<8>(steps);
    }

    #[test]
    fn large_keyed_objects_keep_to_the_model(steps in steps()) {
        against_a_model::<5000>(steps);
    }

    #[test]
    fn a_secondary_map_keeps_to_the_model(
        steps in prop::collection::vec((0u32..300, 0u32..4, any::<u8>(), 0..4), 1..200),
    ) {
        let mut map: SecondaryMap<RawKey_, u8> = SecondaryMap::new();
        // The model: by index, the generation and the value.
        let mut model: BTreeMap<u32, (u32, u8)> = BTreeMap::new();
        for (index, age, value, what) in steps {
            let key = RawKey_(RawKey::of(index * 37, age * 2 + 1));
            let there = model.get(&index).copied();
            match what {
                0 | 1 => {
                    let before = there.filter(|there| there.0 == age).map(|there| there.1);
                    prop_assert_eq!(map.insert(key, value), before);
                    if there.is_none_or(|there| there.0 <= age) {
                        model.insert(index, (age, value));
                    }
                }
                2 => {
                    let before = there.filter(|there| there.0 == age).map(|there| there.1);
                    prop_assert_eq!(map.remove(key), before);
                    if before.is_some() {
                        model.remove(&index);
                    }
                }
                _ => {
                    let found = there.filter(|there| there.0 == age).map(|there| there.1);
                    prop_assert_eq!(map.get(key).copied(), found);
                }
            }
            prop_assert_eq!(map.len(), model.len());
        }
        let all = map.iter().map(|(key, &value)| {
            (key.0.index() / 37, (key.0.generation() / 2, value))
        });
        prop_assert!(all.eq(model));
    }
}

crate::pool::key_type! {
    struct RawKey_;
}

#[test]
fn a_full_word_is_filled_again() {
    let mut pool = KeyPool::new();
    let keys: Vec<_> = (0..960).map(|n| pool.insert(n)).collect();
    assert!(keys.iter().enumerate().all(|(n, key)| key.index() as usize == n));
    let capacity = pool.capacity();
    let mut holes = [keys[70], keys[500]];
    for round in 0..3 {
        assert!(holes.map(|key| pool.remove(key)).iter().all(Option::is_some));
        holes = [pool.insert(round), pool.insert(round)];
        let indexes = holes.map(Key::index);
        assert!(indexes == [500, 70] || indexes == [70, 500], "{indexes:?}");
        assert_eq!((pool.len(), pool.capacity()), (960, capacity));
    }
    assert_eq!(pool.insert(0).index(), 960);
}

#[test]
fn holes_are_filled_before_untouched_slots() {
    let mut pool = KeyPool::new();
    let count = if cfg!(miri) { 512 } else { 51_200 };
    let keys: Vec<_> = (0..count).map(|n| pool.insert(n)).collect();
    keys.iter().step_by(3).for_each(|&key| _ = pool.remove(key));
    let holes = keys.iter().step_by(3).count();
    for _ in 0..holes {
        assert!((pool.insert(0).index() as usize) < count);
    }
    assert_eq!(pool.insert(0).index() as usize, count);
}

#[test]
fn a_limit_of_keyed_objects_is_exact() {
    for limit in [0u32, 1, 63, 64, 65, 300] {
        let mut pool: KeyPool<u64> = KeyPool::builder().limit(limit).build();
        let mut keys: Vec<_> = (0..u64::from(limit)).map(|n| pool.insert(n)).collect();
        assert_eq!(pool.try_insert(7).map_err(|refused| refused.0), Err(7));
        assert_eq!((pool.len(), pool.iter().count()), (limit as usize, limit as usize));
        assert!(pool.values().copied().eq(0..u64::from(limit)));
        while let Some(key) = keys.pop() {
            assert!(pool.remove(key).is_some());
        }
        pool.trim();
        assert_eq!((0..limit).filter_map(|n| pool.try_insert(n.into()).ok()).count() as u32, limit);
        pool.clear();
        assert_eq!(
            (0..=limit).filter_map(|n| pool.try_insert(n.into()).ok()).count() as u32,
            limit
        );
    }
}

#[test]
fn keys_are_ordered_hashed_and_null() {
    let mut pool = KeyPool::new();
    let keys: Vec<_> = (0..128).map(|n| pool.insert(n)).collect();
    let null = Key::<i32>::default();
    assert!(null.is_null() && null == Key::null() && keys.iter().all(|key| *key < null));
    assert!(keys.is_sorted() && !pool.contains_key(null) && format!("{null:?}") == "Key(null)");
    assert_eq!(Key::from_bits(null.to_bits()), Some(null));
    pool.remove(keys[5]);
    let newer = pool.insert(5);
    assert!(newer.index() == 5 && keys[5] < newer && newer < keys[6]);
    let set: HashMap<_, _> = pool.iter().collect();
    assert_eq!((set[&newer], set.len()), (&5, 128));
    assert_eq!((size_of::<Option<RawKey_>>(), size_of::<Option<Key<String>>>()), (8, 8));
    // Any number may come from outside.
    for bits in [1 << 32, u64::MAX, 3 << 32 | 7, 1 << 32 | 1 << 31, 5 << 32 | u64::from(u32::MAX)] {
        let key = Key::from_bits(bits).unwrap();
        assert_eq!(pool.get(key).is_some(), keys.contains(&key) && key != keys[5], "{key:?}");
    }
}

#[test]
fn generations_wrap_and_stay_odd() {
    let mut pool = KeyPool::new();
    let key: Key<u8> = pool.insert(1);
    let last = aged(&mut pool, key, u32::MAX);
    assert_eq!(pool.remove(last), Some(1));
    assert_eq!(pool.insert(2).raw().generation(), 1);
}

/// Gives an object another generation, as if its slot had held more objects before.
fn aged<T>(pool: &mut KeyPool<T>, key: Key<T>, generation: u32) -> Key<T> {
    assert!(pool.contains_key(key));
    let aged = RawKey::of(key.index(), generation);
    let place = pool.table.place(KeyPool::<T>::FORM, aged).unwrap();
    // SAFETY: the place was just made, and the object is there.
    unsafe { pool.table.hold(place) };
    aged.into()
}

#[test]
fn released_pages_forget_no_generation_however_high_one_is() {
    type Release = fn(&mut KeyPool<u32>);
    let releases: [Release; 4] = [
        |pool| _ = pool.trim(),
        |pool| pool.reset(Reset::FreeAll),
        |pool| pool.reset(Reset::RetainUpTo(0)),
        |pool| pool.reset(Reset::RetainUpTo(1)),
    ];
    for generation in [1 << 20, 1 << 31, (1 << 31) + 3, u32::MAX - 2] {
        for release in releases {
            let mut pool = KeyPool::new();
            let (hot, cold) = (pool.insert(0), pool.insert(1));
            let hot = aged(&mut pool, hot, generation);
            assert_eq!((pool.remove(cold), pool.remove(hot)), (Some(1), Some(0)));
            release(&mut pool);
            let again: Vec<_> = (2..200).map(|n| pool.insert(n)).collect();
            assert!(!pool.contains_key(cold) && !pool.contains_key(hot), "{generation:#x}");
            assert!(again.iter().zip(2..).all(|(&key, n)| pool[key] == n));
            assert!(pool.iter().map(|(key, _)| key).eq(again), "{generation:#x}");
        }
    }
}

#[test]
fn a_high_generation_keeps_only_the_pages_of_its_segment() {
    let mut pool: KeyPool<[u64; 64]> = KeyPool::new();
    let keys: Vec<_> = (0..500).map(|n| pool.insert([n; 64])).collect();
    let segments = pool.stats().segments;
    assert!(segments > 2);
    let hot = aged(&mut pool, keys[0], (1 << 31) + 1);
    pool.clear();
    pool.trim();
    assert_eq!(pool.stats().segments, 1);
    let again: Vec<_> = (0..500).map(|n| pool.insert([n; 64])).collect();
    assert!(keys.iter().chain([&hot]).all(|&key| !pool.contains_key(key)));
    assert!(again.iter().all(|key| key.raw().generation() < 5 || *key > hot && key.index() == 0));
    assert_eq!(pool.stats().segments, segments);
}

#[test]
fn a_short_segment_is_followed_by_others() {
    let form = KeyPool::<u64>::FORM;
    let mut pool = KeyPool::new();
    let first = pool.insert(0);
    pool.remove(first);
    let slot = pool.table.vacant(form).unwrap().slot;
    let (first_segment, _) = pool.table.segment_of(form, slot.addr()).unwrap();
    pool.trim();
    assert_eq!(pool.capacity(), 0);
    // Makes a segment of ten slots, as if memory had sufficed for no more.
    assert!(pool.table.open_with(form, first_segment, 10));
    let count = if cfg!(miri) { 200 } else { 50_000 };
    let keys: Vec<_> = (0..count).map(|n| pool.insert(n)).collect();
    assert!(keys.iter().zip(0..).all(|(&key, n)| pool[key] == n));
    assert!(pool.iter().eq(keys.iter().copied().zip(&(0..count).collect::<Vec<_>>())));
    assert!(pool.capacity() >= count as usize && pool.stats().segments > 1);
    // The indexes that the short segment lacks name no object.
    let generation = keys[9].raw().generation();
    let lacks = |index| pool.get(RawKey::of(index, generation).into()).is_none();
    assert!((10..64).all(lacks) && !lacks(9));
    keys.into_iter().for_each(|key| _ = pool.remove(key));
    pool.trim();
    assert_eq!(pool.capacity(), 0);
    assert!(pool.preheat(64, false) && (0..64).all(|n| pool.insert(n).index() as u64 == n));
}

#[test]
fn a_segment_that_is_larger_than_all_memory_does_not_exist() {
    // A slot takes half a tebibyte.
    let mut pool: KeyPool<[u64; 1 << 36]> = KeyPool::new();
    let has = pool.preheat(1, false);
    assert_eq!((pool.stats().segments, pool.capacity()), (usize::from(has), usize::from(has)));
    // A slot takes a tebibyte: the object, and eight bytes for the generation.
    let mut pool: KeyPool<[u64; (1 << 37) - 1]> = KeyPool::new();
    let has = pool.preheat(1, false);
    assert_eq!((pool.stats().segments, pool.capacity()), (usize::from(has), usize::from(has)));
}

std::thread_local!(static ASKED: core::cell::Cell<u32> = const { core::cell::Cell::new(0) });

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Fickle(RawKey);

impl From<RawKey> for Fickle {
    fn from(raw: RawKey) -> Self {
        Self(raw)
    }
}

impl From<Fickle> for RawKey {
    fn from(key: Fickle) -> Self {
        ASKED.set(ASKED.get().wrapping_add(1));
        let far = if cfg!(miri) { 600 } else { 200_000 };
        match ASKED.get() % 3 {
            0 => key.0,
            1 => Self::of(key.0.index() + 5, key.0.generation()),
            _ => Self::of(key.0.index() + far, key.0.generation() + 2),
        }
    }
}

impl PoolKey for Fickle {}

#[test]
fn a_key_that_changes_its_mind_marks_no_slot_without_a_value() {
    for start in 0..3 {
        ASKED.set(start);
        let mut map: SecondaryMap<Fickle, std::boxed::Box<u32>> = SecondaryMap::new();
        for generation in [1, 3, 1, 5, 5] {
            for index in 0..4 {
                map.insert(Fickle(RawKey::of(index, generation)), std::boxed::Box::new(7));
                _ = map.remove(Fickle(RawKey::of(index, generation)));
                _ = map.get_or_insert_with(Fickle(RawKey::of(index, 3)), || 7.into());
                _ = map.get_disjoint_mut([Fickle(RawKey::of(index, 3)); 2]);
                assert_eq!(map.iter().count(), map.len());
                assert!(map.values().all(|value| **value == 7));
            }
        }
        map.retain(|key, _| key.0.index() % 2 == 0);
        assert_eq!(map.drain().map(|(_, value)| value).filter(|value| **value != 7).count(), 0);
    }
}

#[test]
fn a_drain_and_an_owned_iteration_that_end_early_drop_the_rest() {
    let counter = Rc::new(());
    let mut pool = KeyPool::new();
    let fill = |pool: &mut KeyPool<_>| (0..100).for_each(|_| _ = pool.insert(counter.clone()));
    fill(&mut pool);
    pool.drain().nth(10);
    assert_eq!((Rc::strong_count(&counter), pool.len()), (1, 0));
    fill(&mut pool);
    // A drain that is never dropped leaves the remaining objects in the pool.
    let mut drain = pool.drain();
    drain.next();
    core::mem::forget(drain);
    assert_eq!((Rc::strong_count(&counter), pool.len()), (100, 99));
    let mut all = pool.into_iter();
    assert_eq!(all.len(), 99);
    all.next();
    drop(all);
    assert_eq!(Rc::strong_count(&counter), 1);
}

struct Panics(bool, #[expect(dead_code, reason = "counts objects")] Rc<()>);

impl Drop for Panics {
    fn drop(&mut self) {
        assert!(!self.0, "a destructor that panics");
    }
}

#[test]
fn objects_are_dropped_though_a_destructor_panics() {
    let counter = Rc::new(());
    for what in 0..4 {
        let mut pool = KeyPool::new();
        (0..100).for_each(|n| _ = pool.insert(Panics(n == 50, counter.clone())));
        let run = AssertUnwindSafe(|| match what {
            0 => pool.clear(),
            1 => drop(core::mem::take(&mut pool)),
            2 => drop(pool.drain()),
            _ => pool.retain(|_, _| false),
        });
        assert!(catch_unwind(run).is_err());
        if what == 3 {
            assert_eq!(pool.len(), 49, "the others stay");
            pool.clear();
        }
        assert_eq!((pool.len(), Rc::strong_count(&counter)), (0, 1));
        pool.insert(Panics(false, counter.clone()));
    }
    let mut pool = KeyPool::new();
    let key = pool.insert(1);
    let made = catch_unwind(AssertUnwindSafe(|| pool.insert_with_key(|_| panic!("no object"))));
    assert!(made.is_err());
    assert_eq!(pool.iter().collect::<Vec<_>>(), [(key, &1)]);
}

#[test]
fn a_stale_key_as_an_index_panics() {
    let mut pool = KeyPool::new();
    let key = pool.insert(1);
    pool[key] += 1;
    pool.remove(key);
    let text =
        *catch_unwind(AssertUnwindSafe(|| pool[key])).unwrap_err().downcast::<String>().unwrap();
    assert_eq!(text, "the key is stale: Key(0 of generation 0)");
}

#[test]
fn a_pool_is_iterated_while_it_grows_and_is_trimmed() {
    let pool = Pool::new();
    let count = if cfg!(miri) { 150u64 } else { 20_000 };
    let first: Vec<_> = (0..count).map(|n| pool.insert(n)).collect();
    let mut handle = pool.boxed(u64::MAX);
    let mut seen = Vec::new();
    for (key, object) in &pool {
        if *object < count {
            seen.push(key);
            assert!(pool.insert(*object + count) != key && pool[key] == *object);
            *handle -= 1;
        }
        if object % 1000 == 0 {
            pool.trim();
        }
    }
    assert_eq!((seen, *handle), (first, u64::MAX - count));
    let held = pool.get(pool.keys().next().unwrap()).unwrap();
    (0..count).for_each(|n| _ = pool.insert(n));
    assert_eq!(*held, 0, "objects do not move");
}

#[test]
fn threads_read_a_pool_together() {
    let mut pool = KeyPool::new();
    let keys: Vec<_> = (0..200u64).map(|n| pool.insert(n)).collect();
    let (pool, keys) = (&pool, &keys);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(move || {
                assert_eq!(pool.values().sum::<u64>(), 199 * 100);
                assert!(keys.iter().enumerate().all(|(n, &key)| pool[key] == n as u64));
            });
        }
    });
}

#[test]
fn a_trim_of_keyed_objects_gives_pages_back() {
    let mut pool: KeyPool<[u8; 1024]> = KeyPool::new();
    let count = if cfg!(miri) { 150 } else { 4000 };
    let keys: Vec<_> = (0..count).map(|n| pool.insert([n as u8; 1024])).collect();
    pool.retain(|key, _| key.index() % 100 == 0);
    let kept = count / 100 + usize::from(count % 100 != 0);
    let given = pool.trim();
    assert!(given + kept * 2 * 4096 + (64 << 10) >= count * 1024, "{given}");
    assert!(
        keys.iter().step_by(100).enumerate().all(|(n, &key)| pool[key] == [(n * 100) as u8; 1024])
    );
    pool.clear();
    pool.trim();
    assert_eq!(pool.capacity(), 0, "segments without an object go as a whole");
    let key = pool.insert([3; 1024]);
    assert!(key.index() == 0 && pool[key] == [3; 1024]);
    assert!(keys.iter().all(|&key| !pool.contains_key(key)), "released pages forget no key");
}

#[test]
#[expect(clippy::mutable_key_type, reason = "the cell is the pool's; objects are compared")]
fn handles_compare_hash_and_are_coerced() {
    let pool = Pool::new();
    let [a, b, c] = [1, 2, 2].map(|n| pool.boxed(n));
    assert!(a < b && b == c && *b.as_ref() == 2 && core::cmp::max(a, b) == c);
    let set: HashSet<_> = [5, 6, 5].into_iter().map(|n| pool.boxed(n)).collect();
    assert!(set.len() == 2 && set.contains(&5));
    let counter = Rc::new(());
    let others = Pool::new();
    let mut slice = coerce!(others.boxed([counter.clone(), counter.clone()]) => [Rc<()>]);
    assert_eq!((slice.len(), Rc::strong_count(&counter)), (2, 3));
    slice[1] = Rc::new(());
    drop(slice);
    assert_eq!((Rc::strong_count(&counter), others.len()), (1, 0));
    // The slot goes back with the pointer that the pool made, and is used again.
    let again = others.create([counter.clone(), counter.clone()]);
    let mut others = others;
    assert_eq!(others.live_mut().count(), 1);
    // SAFETY: created above, once.
    unsafe { others.destroy(again) };
    let shared: crate::pool::SharedPool<u32> = crate::pool::SharedPool::new();
    let shown = coerce!(shared.boxed(7) => dyn core::fmt::Debug + Send);
    let show = move || assert_eq!(format!("{:?}", vec![shown]), "[7]");
    std::thread::scope(|scope| scope.spawn(show).join().unwrap());
    assert!(shared.is_empty());
}
