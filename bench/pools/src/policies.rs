//! heapwright's pool against other free lists on the same slots ([`lists`](crate::lists)).
//!
//! Patterns that tell them apart, on raw pointers to objects of 32 bytes:
//!
//! `pair`, one object made and destroyed; `grow`, objects made in a new pool;
//! `churn`, a random one of a million replaced; `walk`, half a million destroyed at random and half a million made, and these then
//! visited in the order in which they were made. The last is where a list that
//! hands out slots in the order of the frees is worst: neighbours in time are
//! strangers in memory.

use std::ptr::NonNull;

use crate::measure::{Object, report, time, warm_host};
use figures::random::Random;

const MANY: usize = 1_000_000;

/// A pool with one of the lists.
pub trait Pool {
    /// A new object.
    fn create(&self, value: Object) -> NonNull<Object>;

    /// The end of one.
    ///
    /// # Safety
    ///
    /// It came from [`create`](Self::create) of this pool and is destroyed once.
    unsafe fn destroy(&self, object: NonNull<Object>);
}

fn fill(pool: &impl Pool, count: usize) -> Vec<NonNull<Object>> {
    (0..count as u64).map(|i| pool.create(Object::new(i))).collect()
}

/// Does one of the patterns.
pub fn measure(pool: &impl Pool, shape: &str, count: usize) -> Option<()> {
    let mut random = Random::new(crate::SEED);
    match shape {
        "pair" => {
            let go = |count: usize| {
                for i in 0..count as u64 {
                    let object = std::hint::black_box(pool.create(Object::new(i)));
                    // SAFETY: just made.
                    unsafe { pool.destroy(object) };
                }
            };
            go(count / 10);
            report(time(count as u64, || go(count)));
        }
        "grow" => {
            let mut objects = vec![NonNull::dangling(); count];
            report(time(count as u64, || {
                for (i, place) in (0..).zip(&mut objects) {
                    *place = pool.create(Object::new(i));
                }
            }));
            std::hint::black_box(&objects);
        }
        "churn" => {
            let mut objects = fill(pool, MANY);
            let mut go = |count: usize| {
                for i in 0..count as u64 {
                    let place = &mut objects[random.below(MANY)];
                    // SAFETY: it is in the list, and leaves it.
                    unsafe { pool.destroy(*place) };
                    *place = pool.create(Object::new(i));
                }
            };
            go(count / 2);
            report(time(count as u64, || go(count)));
        }
        "walk" => {
            let mut objects = fill(pool, MANY);
            random.shuffle(&mut objects);
            for &object in &objects[MANY / 2..] {
                // SAFETY: each of them once.
                unsafe { pool.destroy(object) };
            }
            let new = fill(pool, MANY / 2);
            let rounds = count.div_ceil(new.len());
            let mut sum = 0u64;
            report(time((rounds * new.len()) as u64, || {
                for _ in 0..rounds {
                    for object in &new {
                        // SAFETY: alive, and nothing writes it.
                        sum = sum.wrapping_add(unsafe { object.as_ref() }.a);
                    }
                    sum = std::hint::black_box(sum);
                }
            }));
        }
        _ => return None,
    }
    Some(())
}

/// `NAME pair|grow|churn|walk COUNT`.
pub fn run(words: &[&str]) -> Option<()> {
    let [name, shape, count] = *words else { return None };
    let count = count.parse().ok()?;
    warm_host(64 << 20);
    crate::lists::measure(name, shape, count)
}
