//! One object made and one destroyed, warm: the cost of a pool when nothing else runs.
//!
//! Objects have 32 bytes, and the pools have already held more of them than the pattern needs.
//! `pair` makes one object and destroys it. `in order` makes 100 and destroys them in the same
//! order; `random order` destroys them in another.
//!
//! Handles are compared within their kind: *owning*, whose drop returns the slot; *raw*, a pointer
//! that the program must give back; *keyed*, an index or key into the pool.

use std::hint::black_box;

use crate::measure::{Object, report, time, warm_host};
use figures::random::Random;

/// A pool and one kind of handle. Its maker may refer to the pool, which handles then borrow.
pub trait Maker<T> {
    /// The program's handle to an object.
    type Handle;

    /// Makes an object.
    fn make(&mut self, value: T) -> Self::Handle;

    /// Ends an object.
    fn end(&mut self, handle: Self::Handle);
}

/// A maker from two functions: one makes an object, one ends it.
pub struct By<M, E>(pub M, pub E);

impl<T, H, M: FnMut(T) -> H, E: FnMut(H)> Maker<T> for By<M, E> {
    type Handle = H;

    #[inline(always)]
    fn make(&mut self, value: T) -> H {
        (self.0)(value)
    }

    #[inline(always)]
    fn end(&mut self, handle: H) {
        (self.1)(handle);
    }
}

/// A maker whose two functions need exclusive access to the pool: one inserts an object, one takes
/// it out by its key and reads one field.
pub struct Keyed<'a, P, I, R>(pub &'a mut P, pub I, pub R);

impl<P, K, I, R> Maker<Object> for Keyed<'_, P, I, R>
where
    I: Fn(&mut P, Object) -> K,
    R: Fn(&mut P, K) -> Option<Object>,
{
    type Handle = K;

    #[inline(always)]
    fn make(&mut self, value: Object) -> K {
        (self.1)(self.0, value)
    }

    #[inline(always)]
    fn end(&mut self, handle: K) {
        black_box((self.2)(self.0, handle).map(|object| object.a));
    }
}

/// The number of objects that a pool holds before the measurement.
const WARM: u64 = 1024;
const BATCH: usize = 100;

/// The contender's task.
#[derive(Clone, Copy)]
pub enum Shape {
    /// Make one object, then destroy it.
    Pair,
    /// Make 100 objects, then destroy them in the same order.
    InOrder,
    /// Make 100 objects, then destroy them in a random order.
    RandomOrder,
}

/// The number of pairs, and their shape.
#[derive(Clone, Copy)]
pub struct Work {
    shape: Shape,
    pairs: u64,
    /// Whether to time the pairs and print the result; not under callgrind.
    timed: bool,
}

#[inline(always)]
fn single(maker: &mut impl Maker<Object>, pairs: u64) {
    for i in 0..pairs {
        let handle = black_box(maker.make(Object::new(i)));
        maker.end(handle);
    }
}

#[inline(always)]
fn batches<M: Maker<Object>>(maker: &mut M, pairs: u64, order: Option<&[u16]>) {
    let mut handles: Vec<M::Handle> = Vec::with_capacity(BATCH);
    for _ in 0..pairs / BATCH as u64 {
        for i in 0..BATCH as u64 {
            handles.push(black_box(maker.make(Object::new(i))));
        }
        match order {
            None => handles.drain(..).for_each(|handle| maker.end(handle)),
            Some(order) => {
                for &at in order {
                    let handle = handles.swap_remove(usize::from(at));
                    maker.end(handle);
                }
            }
        }
    }
}

/// Runs the work with one contender.
pub fn measure(mut maker: impl Maker<Object>, work: Work) {
    let warm: Vec<_> = (0..WARM).map(|i| maker.make(Object::new(i))).collect();
    warm.into_iter().for_each(|handle| maker.end(handle));
    // The index of each handle to destroy, among those left.
    let mut random = Random::new(crate::SEED);
    let order: Vec<u16> = (1..=BATCH).rev().map(|left| random.below(left) as u16).collect();
    let mut go = |pairs| match work.shape {
        Shape::Pair => single(&mut maker, pairs),
        Shape::InOrder => batches(&mut maker, pairs, None),
        Shape::RandomOrder => batches(&mut maker, pairs, Some(&order)),
    };
    if !work.timed {
        return go(work.pairs);
    }
    go(work.pairs / 10);
    report(time(work.pairs, || go(work.pairs)));
}

fn contender(name: &str, work: Work) -> Option<()> {
    crate::peers::pairs(name, work).or_else(|| crate::ours::pairs(name, work))
}

/// Runs `NAME pair|in-order|random-order PAIRS`.
pub fn run(words: &[&str]) -> Option<()> {
    let [name, shape, pairs] = *words else { return None };
    let shape = match shape {
        "pair" => Shape::Pair,
        "in-order" => Shape::InOrder,
        "random-order" => Shape::RandomOrder,
        _ => return None,
    };
    warm_host(1 << 20);
    contender(name, Work { shape, pairs: pairs.parse().ok()?, timed: true })
}

/// Runs exactly this many pairs of one contender.
pub fn one(name: &str, pairs: u64) -> Option<()> {
    contender(name, Work { shape: Shape::Pair, pairs, timed: false })
}
