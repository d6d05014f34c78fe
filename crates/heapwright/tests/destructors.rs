//! If a destructor panics, the others still run, and the first panic continues from the call that
//! ran them. Chains of boxes that are too long for recursion can be traced.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, LinkedList, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use heapwright::Rootable;
use heapwright::arena::DropArena;
use heapwright::gc::raw::Options;
use heapwright::gc::{Gc, Lock, Realm, Static, Trace};
use heapwright::pool::{Pool, Reset, SharedPool};

struct Ends(usize, Rc<Cell<usize>>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.1.set(self.1.get() + 1);
        if self.0 % 2 == 1 {
            std::panic::panic_any(self.0);
        }
    }
}

fn panics(call: impl FnOnce()) -> Option<usize> {
    catch_unwind(AssertUnwindSafe(call)).err().map(|panic| *panic.downcast().expect("a number"))
}

#[test]
fn an_arena_runs_all_destructors_and_the_first_panic_surfaces() {
    let ended = Rc::new(Cell::new(0));
    let mut arena = DropArena::new();
    for _ in 0..2 {
        ended.set(0);
        (0..6).for_each(|n| _ = arena.alloc(Ends(n, Rc::clone(&ended))));
        arena.alloc_slice_fill_iter((6..10).map(|n| Ends(n, Rc::clone(&ended))));
        assert_eq!((panics(|| arena.reset()), ended.get()), (Some(7), 10));
        assert_eq!(panics(|| arena.reset()), None);
    }
    arena.alloc(Ends(11, Rc::clone(&ended)));
    assert_eq!(panics(move || drop(arena)), Some(11));
}

#[test]
fn pools_run_all_destructors_and_the_first_panic_surfaces() {
    let ended = Rc::new(Cell::new(0));
    let mut pool = Pool::new();
    (0..6).for_each(|n| _ = pool.create(Ends(n, Rc::clone(&ended))));
    assert_eq!((panics(|| pool.reset(Reset::RetainCapacity)), ended.take()), (Some(1), 6));
    assert!(pool.is_empty());
    (0..6).for_each(|n| _ = pool.create(Ends(n, Rc::clone(&ended))));
    assert_eq!((panics(move || drop(pool)), ended.take()), (Some(1), 6));
    let mut pool = SharedPool::new();
    (0..6).for_each(|n| _ = pool.create(Ends(n, Rc::clone(&ended))));
    assert_eq!((panics(|| pool.reset(Reset::RetainCapacity)), ended.take()), (Some(1), 6));
    assert!(pool.is_empty());
    (0..6).for_each(|n| _ = pool.create(Ends(n, Rc::clone(&ended))));
    assert_eq!((panics(move || drop(pool)), ended.take()), (Some(1), 6));
}

#[test]
fn a_panic_that_unwinds_is_not_joined_by_another() {
    let ended = Rc::new(Cell::new(0));
    let surfaced = panics(|| {
        let arena = DropArena::new();
        (0..6).for_each(|n| _ = arena.alloc(Ends(n, Rc::clone(&ended))));
        std::panic::panic_any(100_usize);
    });
    assert_eq!((surfaced, ended.get()), (Some(100), 6));
}

#[test]
fn a_realm_is_whole_when_a_destructor_s_panic_surfaces() {
    type Root = Rootable!['gc => Lock<Option<Gc<'gc, Static<Ends>>>>];
    let ended = Rc::new(Cell::new(0));
    for incremental in [false, true] {
        let options = Options { incremental, generations: incremental, ..Options::new() };
        let mut realm = Realm::<Root>::with(options, |_| Lock::new(None));
        let mut made = 0;
        let mut fill = |realm: &mut Realm<Root>| {
            // (A mutation may sweep pages that the last collection has left.)
            let _ = panics(|| {
                realm.mutate(|mc, root| {
                    for _ in 0..100 {
                        made += 1;
                        let value = mc.alloc(Static(Ends(made, Rc::clone(&ended))));
                        root.borrow_mut(mc, root).replace(value);
                    }
                    mc.alloc_slice(10, |n| Static(Ends(n, Rc::clone(&ended))));
                })
            });
        };
        fill(&mut realm);
        assert!(panics(|| realm.collect()).is_some());
        assert_eq!(ended.take(), 109, "but the one that the root leads to");
        assert_eq!(panics(|| realm.collect()), None, "nothing is left to surface");
        fill(&mut realm);
        realm.ask();
        assert!(panics(|| while !realm.step(Duration::from_millis(1)) {}).is_some());
        let _ = panics(|| realm.mutate(|_, root| assert!(root.borrow().is_some())));
        // A destructor's panic continues from the mutation that sweeps, unless the mutation itself
        // panics.
        fill(&mut realm);
        let own = panics(|| {
            realm.mutate(|mc, _| {
                (0..1000).for_each(|_| _ = mc.alloc(Static(Ends(2, Rc::clone(&ended)))));
                std::panic::panic_any(100_usize)
            })
        });
        assert_eq!(own, Some(100));
        ended.set(0);
        assert!(panics(move || drop(realm)).is_some());
        assert!(ended.take() > 0);
    }
}

#[derive(Trace)]
enum Chain<'gc> {
    End,
    Boxed(Gc<'gc, usize>, Box<Chain<'gc>>),
    Slice(Gc<'gc, usize>, Box<[Chain<'gc>]>),
    Shared(Gc<'gc, usize>, Rc<Chain<'gc>>),
    Several(Gc<'gc, usize>, Vec<Chain<'gc>>),
    Queued(Gc<'gc, usize>, VecDeque<Chain<'gc>>),
    Linked(Gc<'gc, usize>, LinkedList<Chain<'gc>>),
    Sorted(Gc<'gc, usize>, BTreeMap<u8, Chain<'gc>>),
    Hashed(Gc<'gc, usize>, HashMap<u8, Chain<'gc>>),
}

/// Takes the first link off, because std drops a whole chain by recursion.
fn next(chain: Chain<'_>) -> Option<(Gc<'_, usize>, Chain<'_>)> {
    Some(match chain {
        Chain::End => return None,
        Chain::Boxed(at, next) => (at, *next),
        Chain::Slice(at, next) => (at, next.into_vec().pop()?),
        Chain::Shared(at, next) => (at, Rc::into_inner(next)?),
        Chain::Several(at, mut next) => (at, next.pop()?),
        Chain::Queued(at, mut next) => (at, next.pop_front()?),
        Chain::Linked(at, mut next) => (at, next.pop_front()?),
        Chain::Sorted(at, mut next) => (at, next.pop_first()?.1),
        Chain::Hashed(at, mut next) => (at, next.remove(&0)?),
    })
}

fn a_deep_chain(options: Options) {
    let length = if cfg!(miri) { 200 } else { 50_000 };
    type Root = Rootable!['gc => Lock<Chain<'gc>>];
    let mut realm = Realm::<Root>::with(options, |_| Lock::new(Chain::End));
    for first in (0..length).step_by(100) {
        realm.mutate(|mc, root| {
            let mut chain = root.borrow_mut(mc, root);
            for n in first..first + 100 {
                let (at, next) = (mc.alloc(n), std::mem::replace(&mut *chain, Chain::End));
                *chain = match n % 8 {
                    0 => Chain::Boxed(at, Box::new(next)),
                    1 => Chain::Slice(at, Box::new([next])),
                    2 => Chain::Shared(at, Rc::new(next)),
                    3 => Chain::Several(at, vec![next]),
                    4 => Chain::Queued(at, VecDeque::from([next])),
                    5 => Chain::Linked(at, LinkedList::from([next])),
                    6 => Chain::Sorted(at, BTreeMap::from([(0, next)])),
                    _ => Chain::Hashed(at, HashMap::from([(0, next)])),
                };
            }
        });
    }
    realm.collect();
    realm.compact();
    assert!(realm.dump(|_| true));
    realm.mutate(|mc, root| {
        let mut chain = std::mem::replace(&mut *root.borrow_mut(mc, root), Chain::End);
        for n in (0..length).rev() {
            let (at, rest) = next(chain).expect("as long as it was made");
            assert_eq!(*at, n);
            chain = rest;
        }
        assert!(next(chain).is_none());
    });
}

#[test]
fn chains_of_boxes_are_traced_without_recursion() {
    for bits in 0..if cfg!(miri) { 1 } else { 8 } {
        let options = Options {
            incremental: bits & 1 != 0,
            generations: bits & 2 != 0,
            compact: bits & 4 != 0,
            least: 256 << 10,
            step_ns: 1_000_000,
            ..Options::new()
        };
        let small = thread::Builder::new().stack_size(128 << 10);
        small.spawn(move || a_deep_chain(options)).unwrap().join().unwrap();
    }
}
