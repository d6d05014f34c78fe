//! Compares a realm's collections with std's: the same operations in the same order. Between the
//! operations the heap collects: by force, in steps and with moving. Also tests finalizers.
//!
//! Only these tests find a collection's unreported store, or a removed value that is still traced.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]
#![allow(
    clippy::redundant_closure,
    reason = "`Map::new` is a function of one realm's lifetime, the closure one of every"
)]
#![forbid(unsafe_code)]

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::fmt::Write;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use heapwright::Rootable;
use heapwright::gc::raw::Options;
use heapwright::gc::{
    Cell, Deque, Finalize, Gc, Map, Mutation, Realm, Set, Str, StrBuilder, Trace, Vector, Weak,
};
use proptest::prelude::*;

#[path = "common/realms.rs"]
mod realms;

use realms::{config, ways_to_collect};

/// A value that is an object of its own. Its number shows whether it was lost.
type Value<'gc> = Gc<'gc, (u32, Str<'gc>)>;

#[derive(Trace)]
struct Root<'gc> {
    vector: Vector<'gc, Value<'gc>>,
    numbers: Vector<'gc, u16>,
    deque: Deque<'gc, Value<'gc>>,
    map: Map<'gc, Str<'gc>, Value<'gc>>,
    set: Set<'gc, u32>,
    text: StrBuilder<'gc>,
    /// Values that were removed from the collections: nothing keeps them any more.
    watched: Vector<'gc, (u32, Weak<'gc, (u32, Str<'gc>)>)>,
}

type Held = Realm<Rootable!['gc => Root<'gc>]>;

#[derive(Default)]
struct Model {
    vector: Vec<u32>,
    numbers: Vec<u16>,
    deque: VecDeque<u32>,
    /// In the order of insertion.
    map: Vec<(String, u32)>,
    set: Vec<u32>,
    text: String,
    made: u32,
}

#[derive(Clone, Debug)]
enum Op {
    Vector(u8, usize),
    Numbers(u8, u16),
    Deque(u8, usize),
    Map(u8, u8),
    Set(u8, u8),
    Text(u8, char),
    Step(u64),
    Garbage(usize),
    Collect,
    Compact,
    AskCompact,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        8 => (any::<u8>(), any::<usize>()).prop_map(|(what, at)| Op::Vector(what, at)),
        3 => (any::<u8>(), any::<u16>()).prop_map(|(what, n)| Op::Numbers(what, n)),
        8 => (any::<u8>(), any::<usize>()).prop_map(|(what, at)| Op::Deque(what, at)),
        12 => (any::<u8>(), 0..60_u8).prop_map(|(what, key)| Op::Map(what, key)),
        4 => (any::<u8>(), 0..40_u8).prop_map(|(what, key)| Op::Set(what, key)),
        3 => (any::<u8>(), any::<char>()).prop_map(|(what, char)| Op::Text(what, char)),
        3 => (0u64..20_000).prop_map(Op::Step),
        1 => (0usize..2000).prop_map(Op::Garbage),
        1 => Just(Op::Collect),
        1 => Just(Op::Compact),
        1 => Just(Op::AskCompact),
    ];
    proptest::collection::vec(op, 1..if cfg!(miri) { 40 } else { 600 })
}

fn key(n: u8) -> String {
    "k".repeat(usize::from(n % 20)) + &n.to_string()
}

fn value<'gc>(mc: &Mutation<'gc>, root: Gc<'gc, Root<'gc>>, model: &mut Model) -> Value<'gc> {
    model.made += 1;
    let made = mc.alloc((model.made, mc.format(format_args!("value {}", model.made))));
    root.watched.push(mc, (model.made, mc.weak(made)));
    made
}

fn of(value: Option<Value<'_>>) -> Option<u32> {
    let value = value?;
    assert_eq!(*value.1, format!("value {}", value.0));
    Some(value.0)
}

fn apply<'gc>(op: &Op, mc: &Mutation<'gc>, root: Gc<'gc, Root<'gc>>, model: &mut Model) {
    match *op {
        Op::Vector(what, at) => {
            let (vector, length) = (root.vector, model.vector.len());
            let at = at % (length + 1);
            match what % 16 {
                0..=5 => {
                    vector.push(mc, value(mc, root, model));
                    model.vector.push(model.made);
                }
                6 => {
                    vector.insert(mc, at, value(mc, root, model));
                    model.vector.insert(at, model.made);
                }
                7 | 8 if at < length => {
                    vector.set(mc, at, value(mc, root, model));
                    model.vector[at] = model.made;
                }
                9 => assert_eq!(of(vector.pop(mc)), model.vector.pop()),
                10 if at < length => {
                    assert_eq!(of(vector.remove(mc, at)), Some(model.vector.remove(at)));
                }
                11 if at < length => {
                    assert_eq!(of(vector.swap_remove(mc, at)), Some(model.vector.swap_remove(at)));
                }
                12 => {
                    vector.retain(mc, |value| value.0 % 3 != 0);
                    model.vector.retain(|number| number % 3 != 0);
                }
                13 => {
                    vector.sort_by(mc, |a, b| {
                        Reverse(a.0 % 100).cmp(&Reverse(b.0 % 100)).then(a.0.cmp(&b.0))
                    });
                    model.vector.sort_by_key(|number| (Reverse(number % 100), *number));
                }
                14 => {
                    vector.truncate(mc, at);
                    model.vector.truncate(at);
                    vector.shrink_to_fit(mc);
                }
                _ if length > 1 => {
                    vector.swap(mc, at % length, length - 1);
                    model.vector.swap(at % length, length - 1);
                }
                _ => assert_eq!(of(vector.get(at)), model.vector.get(at).copied()),
            }
        }
        Op::Numbers(what, n) => {
            let numbers = root.numbers;
            let more = vec![n; usize::from(what % 40)];
            match what % 5 {
                0 => numbers.extend_from_slice(mc, &more),
                1 => numbers.extend(mc, more.iter().copied()),
                2 => {
                    let other = Vector::of(mc, more.iter().copied());
                    numbers.extend(mc, other);
                    assert!(!numbers.is(other));
                }
                3 => numbers.extend_from_slice(mc, &numbers.to_slice(mc)[..numbers.len() / 4]),
                _ => {
                    numbers.clear(mc);
                    model.numbers.clear();
                }
            }
            match what % 5 {
                0..=2 => model.numbers.extend(more),
                3 => model.numbers.extend_from_within(..model.numbers.len() / 4),
                _ => {}
            }
        }
        Op::Deque(what, at) => {
            let deque = root.deque;
            match what % 8 {
                0..=2 => {
                    deque.push_back(mc, value(mc, root, model));
                    model.deque.push_back(model.made);
                }
                3 | 4 => {
                    deque.push_front(mc, value(mc, root, model));
                    model.deque.push_front(model.made);
                }
                5 => assert_eq!(of(deque.pop_back(mc)), model.deque.pop_back()),
                6 => assert_eq!(of(deque.pop_front(mc)), model.deque.pop_front()),
                _ if !model.deque.is_empty() => {
                    let at = at % model.deque.len();
                    deque.set(mc, at, value(mc, root, model));
                    model.deque[at] = model.made;
                }
                _ => deque.clear(mc),
            }
        }
        Op::Map(what, number) => {
            let (map, key) = (root.map, key(number));
            let known = model.map.iter().position(|(known, _)| *known == key);
            match what % 16 {
                0..=7 => {
                    let old = map.insert(mc, mc.alloc_str(&key), value(mc, root, model));
                    match known {
                        Some(at) => {
                            let before = std::mem::replace(&mut model.map[at].1, model.made);
                            assert_eq!(of(old), Some(before));
                        }
                        None => model.map.push((key, model.made)),
                    }
                }
                8..=12 => {
                    let removed = of(map.remove(mc, key.as_str()));
                    assert_eq!(removed, known.map(|at| model.map.remove(at).1));
                }
                13 => {
                    let first = (!model.map.is_empty()).then(|| model.map.remove(0));
                    let taken = map.pop_first(mc).map(|(key, value)| (key.to_string(), value.0));
                    assert_eq!(taken, first);
                }
                14 => {
                    map.retain(mc, |key, value| key.len() > 3 && value.0 % 5 != 0);
                    model.map.retain(|(key, number)| key.len() > 3 && number % 5 != 0);
                    map.shrink_to_fit(mc);
                }
                _ => assert_eq!(of(map.get(key.as_str())), known.map(|at| model.map[at].1)),
            }
        }
        Op::Set(what, key) => {
            let (set, key) = (root.set, u32::from(key) << 20);
            let known = model.set.iter().position(|known| *known == key);
            if what % 3 > 0 {
                assert_eq!(set.insert(mc, key), known.is_none());
                if known.is_none() {
                    model.set.push(key);
                }
            } else {
                assert_eq!(set.remove(mc, &key), known.is_some());
                known.map(|at| model.set.remove(at));
            }
        }
        Op::Text(what, char) => match what % 6 {
            0 => {
                root.text.push(mc, char);
                model.text.push(char);
            }
            1..=3 => {
                let before = root.text.as_str();
                write!(root.text.writer(mc), "{what} is {char:?}, ").unwrap();
                assert_eq!(before, model.text, "what was lent stays as it was");
                write!(model.text, "{what} is {char:?}, ").unwrap();
            }
            4 => assert_eq!(root.text.to_str(mc), *model.text),
            _ => assert_eq!(root.text.finish(mc), *std::mem::take(&mut model.text)),
        },
        Op::Garbage(texts) => {
            let texts = if cfg!(miri) { texts % 5 } else { texts };
            (0..texts).for_each(|n| _ = mc.format(format_args!("garbage {n}")));
        }
        Op::Step(_) | Op::Collect | Op::Compact | Op::AskCompact => {}
    }
}

/// Checks that all values are there, in order. If `is_collected`, also checks that no others are.
fn check(realm: &mut Held, model: &Model, is_collected: bool) {
    realm.mutate(|mc, root| {
        let numbers: Vec<u32> = root.vector.iter().filter_map(|value| of(Some(value))).collect();
        assert_eq!(numbers, model.vector);
        assert_eq!(
            (root.vector.len(), root.vector.is_empty()),
            (numbers.len(), numbers.is_empty())
        );
        assert_eq!(
            (of(root.vector.first()), of(root.vector.last())),
            (numbers.first().copied(), numbers.last().copied())
        );
        assert!(root.numbers.iter().eq(model.numbers.iter().copied()));
        let queued: VecDeque<u32> = root.deque.iter().filter_map(|value| of(Some(value))).collect();
        assert_eq!(queued, model.deque);
        assert_eq!(
            (of(root.deque.front()), of(root.deque.back())),
            (queued.front().copied(), queued.back().copied())
        );
        let pairs: Vec<(String, u32)> = root
            .map
            .iter()
            .map(|(key, value)| (key.to_string(), of(Some(value)).unwrap()))
            .collect();
        assert_eq!(pairs, model.map);
        assert!(pairs.iter().all(|(key, number)| of(root.map.get(key.as_str())) == Some(*number)));
        assert_eq!(root.map.len(), pairs.len());
        assert_eq!(root.map.get("not there").map(|value| value.0), None);
        assert!(root.set.iter().eq(model.set.iter().copied()));
        assert!(model.set.iter().all(|key| root.set.contains(key)));
        assert_eq!(root.text.as_str(), model.text);
        let mut held: Vec<u32> = model.vector.iter().chain(&model.deque).copied().collect();
        held.extend(model.map.iter().map(|pair| pair.1));
        root.watched.retain(mc, |(number, weak)| {
            let is_held = held.contains(&number);
            assert!(weak.get().is_some() || !is_held, "{number} is lost");
            assert!(weak.get().is_none() || is_held || !is_collected, "{number} is kept");
            is_held || !is_collected
        });
    });
}

fn run(options: Options, ops: &[Op]) {
    let mut realm = Held::with(options, |mc| Root {
        vector: Vector::new(mc),
        numbers: Vector::with_capacity(mc, 3),
        deque: Deque::new(mc),
        map: Map::new(mc),
        set: Set::new(mc),
        text: StrBuilder::new(mc),
        watched: Vector::new(mc),
    });
    let mut model = Model::default();
    for op in ops {
        realm.mutate(|mc, root| apply(op, mc, root, &mut model));
        match op {
            Op::Step(budget) => _ = realm.step(Duration::from_nanos(*budget)),
            Op::AskCompact => realm.ask_compact(),
            Op::Collect | Op::Compact => {
                realm.collect();
                if matches!(op, Op::Compact) {
                    realm.compact();
                } else {
                    realm.collect();
                }
                check(&mut realm, &model, true);
            }
            _ => {}
        }
    }
    check(&mut realm, &model, false);
    realm.collect();
    realm.collect();
    check(&mut realm, &model, true);
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn collections_are_as_std_s_under_every_way_to_collect(
        options in ways_to_collect(64 << 10),
        ops in ops(),
    ) {
        run(options, &ops);
    }
}

/// Only large, growing collections hold the objects, while the realm collects by itself.
#[test]
fn collections_that_grow_keep_all_that_is_in_them() {
    type Root<'gc> =
        (Map<'gc, u32, Gc<'gc, u32>>, Deque<'gc, Gc<'gc, u32>>, Vector<'gc, Gc<'gc, u32>>);
    let most = if cfg!(miri) { 60 } else { 60_000 };
    for incremental in [false, true] {
        let options = Options {
            incremental,
            generations: true,
            compact: true,
            least: 256 << 10,
            ..Options::new()
        };
        let mut realm = Realm::<Rootable!['gc => Root<'gc>]>::with(options, |mc| {
            (Map::new(mc), Deque::new(mc), Vector::new(mc))
        });
        for n in 0..most {
            realm.mutate(|mc, root| {
                let (map, deque, vector) = *root.as_ref();
                map.insert(mc, n, mc.alloc(n));
                vector.push(mc, mc.alloc(n));
                deque.push_back(mc, mc.alloc(n));
                if n % 3 == 0 {
                    assert_eq!(map.remove(mc, &(n / 3)).map(|value| *value), Some(n / 3));
                    assert_eq!(deque.pop_front(mc).map(|value| *value), Some(n / 3));
                }
            });
        }
        realm.collect();
        realm.mutate(|_, root| {
            let (map, deque, vector) = *root.as_ref();
            let from = most.div_ceil(3);
            assert!(map.iter().map(|(key, value)| (key, *value)).eq((from..most).map(|n| (n, n))));
            assert!(deque.iter().map(|value| *value).eq(from..most));
            assert!(vector.iter().map(|value| *value).eq(0..most));
        });
    }
}

#[test]
fn a_map_may_be_changed_while_it_is_iterated() {
    let mut realm = Realm::<Rootable!['gc => Map<'gc, u32, u32>]>::new(|mc| Map::new(mc));
    realm.mutate(|mc, root| {
        let map = *root.as_ref();
        (0..40).for_each(|n| _ = map.insert(mc, n, 0));
        let mut seen = Vec::new();
        for (key, value) in map {
            assert_eq!(value, u32::from(key >= 20));
            seen.push(key);
            map.remove(mc, &key);
            map.remove(mc, &(key + 1));
            if key == 18 {
                (20..40).for_each(|n| _ = map.insert(mc, n, 1));
            }
        }
        assert_eq!(seen, (0..40).step_by(2).collect::<Vec<_>>());
        assert!(map.is_empty());
        // Entries inserted without holes are visited.
        map.insert(mc, 0, 0);
        for (key, _) in map {
            if key < 100 {
                map.insert(mc, key + 1, 0);
            }
        }
        assert_eq!(map.len(), 101);
    });
}

#[test]
fn what_is_not_there_is_said_to_be() {
    let mut realm = Realm::<Rootable!['gc => Vector<'gc, u32>]>::new(|mc| Vector::of(mc, [1, 2]));
    realm.mutate(|mc, root| {
        let vector = *root.as_ref();
        for wrong in 0..4 {
            let panicked = catch_unwind(AssertUnwindSafe(|| match wrong {
                0 => vector.set(mc, 2, 0),
                1 => vector.insert(mc, 3, 0),
                2 => vector.swap(mc, 0, 2),
                _ => Deque::new(mc).set(mc, 0, 7),
            }));
            assert!(panicked.is_err());
        }
        assert_eq!((vector.remove(mc, 2), vector.swap_remove(mc, 2)), (None, None));
        let panicked = catch_unwind(AssertUnwindSafe(|| vector.sort_by(mc, |_, _| panic!())));
        assert!(panicked.is_err() && vector.iter().eq([1, 2]));
        assert_eq!(format!("{vector:?}"), "[1, 2]");
        let map = Map::new(mc);
        map.insert(mc, 'a', 1);
        assert_eq!(format!("{map:?}"), "{'a': 1}");
        let set = Set::new(mc);
        set.insert(mc, mc.alloc_str("x"));
        assert_eq!(format!("{set:?}"), "{\"x\"}");
        assert_eq!(set.get("x").map(Str::as_str), Some("x"));
    });
}

#[test]
fn a_hash_that_panics_loses_no_key() {
    thread_local!(static UNLUCKY: std::cell::Cell<u32> = const { std::cell::Cell::new(u32::MAX) });
    #[derive(Debug, Trace, Clone, Copy, PartialEq, Eq)]
    struct Key(u32);
    impl Hash for Key {
        fn hash<H: Hasher>(&self, state: &mut H) {
            assert!(self.0 != UNLUCKY.get(), "unlucky");
            self.0.hash(state);
        }
    }
    for holes in [false, true] {
        let mut realm = Realm::<Rootable!['gc => Map<'gc, Key, u32>]>::new(|mc| Map::new(mc));
        realm.mutate(|mc, map| {
            // A full map without an index, or with the smallest index and a hole.
            let count = if holes { 14 } else { 8 };
            (0..count).for_each(|n| _ = map.insert(mc, Key(n), n));
            if holes {
                map.remove(mc, &Key(5));
            }
            UNLUCKY.set(4);
            let panicked = catch_unwind(AssertUnwindSafe(|| map.insert(mc, Key(count), count)));
            UNLUCKY.set(u32::MAX);
            assert!(panicked.is_err());
            let kept = |n: &u32| !holes || *n != 5;
            assert!((0..count).filter(kept).all(|n| map.get(&Key(n)) == Some(n)));
            (0..=count).for_each(|n| _ = map.insert(mc, Key(n), n + 100));
            assert_eq!(map.len(), count as usize + 1);
            assert!((0..=count).all(|n| map.get(&Key(n)) == Some(n + 100)));
        });
    }
}

type Log<'gc> = Vector<'gc, (u32, Option<u32>)>;

#[derive(Trace)]
struct Ends<'gc> {
    number: u32,
    log: Log<'gc>,
    other: Cell<Option<Gc<'gc, Ends<'gc>>>>,
    /// The vector that the finalizer puts the value into, so that the value lives on.
    back: Option<Vector<'gc, Gc<'gc, Ends<'gc>>>>,
}

impl<'gc> Finalize<'gc> for Ends<'gc> {
    fn finalize(this: Gc<'gc, Self>, mc: &Mutation<'gc>) {
        assert!(this.number != 13, "unlucky");
        this.log.push(mc, (this.number, this.other.get().map(|other| other.number)));
        if let Some(back) = this.back {
            back.push(mc, this);
        }
    }
}

#[test]
fn finalizers_see_what_they_lead_to_and_are_called_once() {
    type Root<'gc> = (Log<'gc>, Vector<'gc, Gc<'gc, Ends<'gc>>>, Vector<'gc, Weak<'gc, Ends<'gc>>>);
    for generations in [false, true] {
        let options = Options { generations, compact: true, ..Options::new() };
        let mut realm = Realm::<Rootable!['gc => Root<'gc>]>::with(options, |mc| {
            (Vector::new(mc), Vector::new(mc), Vector::new(mc))
        });
        realm.mutate(|mc, root| {
            let (log, back, weak) = *root.as_ref();
            let make = |number, back| {
                let made = mc.alloc(Ends { number, log, other: Cell::new(None), back });
                mc.finalize(made);
                weak.push(mc, mc.weak(made));
                made
            };
            // A cycle; a value that puts itself and its referent back; and a held value.
            let (one, two) = (make(1, None), make(2, None));
            one.other.set(mc, one, Some(two));
            two.other.set(mc, two, Some(one));
            let back_again = make(3, Some(back));
            back_again.other.set(mc, back_again, Some(make(4, None)));
            back.push(mc, make(5, None));
        });
        assert_eq!((realm.finalizers_due(), realm.run_finalizers(9)), (0, 0));
        realm.collect();
        realm.compact();
        assert_eq!(realm.finalizers_due(), 4);
        assert_eq!(realm.run_finalizers(3), 3);
        assert_eq!((realm.run_finalizers(9), realm.finalizers_due()), (1, 0));
        realm.collect();
        assert_eq!(realm.run_finalizers(9), 0, "once");
        realm.mutate(|mc, root| {
            let (log, back, weak) = *root.as_ref();
            let seen: Vec<_> = log.iter().collect();
            assert_eq!(seen, [(1, Some(2)), (2, Some(1)), (3, Some(4)), (4, None)]);
            let numbers: Vec<u32> = back.iter().map(|ends| ends.number).collect();
            assert_eq!(numbers, [5, 3], "it lives on");
            assert_eq!(
                back.get(1).and_then(|ends| ends.other.get()).map(|other| other.number),
                Some(4)
            );
            let weak: Vec<bool> = weak.iter().map(|weak| weak.get().is_some()).collect();
            assert_eq!(
                weak,
                [false, false, false, false, true],
                "weak references were emptied before"
            );
            mc.finalize(back.pop(mc).unwrap());
        });
        realm.collect();
        assert_eq!(realm.run_finalizers(9), 1);
        assert_eq!(realm.mutate(|_, root| root.0.last()), Some((3, Some(4))));
    }
}

#[test]
fn a_finalizer_that_panics_is_used_up_and_the_others_are_not() {
    type Root<'gc> = Log<'gc>;
    let mut realm = Realm::<Rootable!['gc => Root<'gc>]>::new(|mc| Vector::new(mc));
    realm.mutate(|mc, root| {
        for number in [12, 13, 14] {
            let ends = Ends { number, log: *root.as_ref(), other: Cell::new(None), back: None };
            mc.finalize(mc.alloc(ends));
        }
    });
    realm.collect();
    assert!(catch_unwind(AssertUnwindSafe(|| realm.run_finalizers(9))).is_err());
    realm.collect();
    assert_eq!(realm.run_finalizers(9), 1);
    assert!(realm.mutate(|_, root| root.iter().map(|entry| entry.0).eq([12, 14])));
}
