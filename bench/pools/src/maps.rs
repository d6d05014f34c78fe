//! Half-empty maps by key, as slot maps usually are.
//!
//! A map of N slots is filled and then loses half of its objects (32 bytes), in random order. Then
//! `insert` fills it again, and `remove` empties it by half. `get` looks each live key up in random
//! order, and `iterate` reads a field of each object. `memory` is the growth of the process, in
//! bytes for each live object. Of small maps, `memory` makes many.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::measure::{Object, warm_host};
use crate::resident::resident;
use figures::random::Random;

/// A map by key.
pub trait Map {
    /// Names an object.
    type Key: Copy;

    /// Inserts an object.
    fn insert(&mut self, value: Object) -> Self::Key;

    /// Returns a field of a live object.
    fn get(&self, key: Self::Key) -> u64;

    /// Removes a live object. Returns a field of it.
    fn remove(&mut self, key: Self::Key) -> u64;

    /// Returns the sum of a field of all objects.
    fn sum(&mut self) -> u64;
}

/// One map, and the keys of its objects in random order.
struct Half<M: Map> {
    map: M,
    keys: Vec<M::Key>,
}

fn half_empty<M: Map>(mut map: M, count: usize, random: &mut Random) -> Half<M> {
    let mut keys: Vec<_> = (0..count as u64).map(|i| map.insert(Object::new(i))).collect();
    random.shuffle(&mut keys);
    for key in keys.drain(count / 2..) {
        map.remove(key);
    }
    keys.shrink_to_fit();
    Half { map, keys }
}

impl<M: Map> Half<M> {
    /// Fills the map and empties it by half again. Returns the times of both.
    fn refill(&mut self, random: &mut Random) -> (Duration, Duration) {
        let half = self.keys.len();
        let start = Instant::now();
        for i in 0..half as u64 {
            self.keys.push(black_box(self.map.insert(Object::new(i))));
        }
        let filled = start.elapsed();
        random.shuffle(&mut self.keys);
        let start = Instant::now();
        for key in self.keys.drain(half..) {
            black_box(self.map.remove(key));
        }
        (filled, start.elapsed())
    }
}

/// Does `rounds` rounds of an operation with maps of `count` slots.
pub fn measure<M: Map>(
    fresh: impl Fn() -> M,
    operation: &str,
    count: usize,
    rounds: usize,
) -> Option<()> {
    let mut random = Random::new(crate::SEED);
    if operation == "memory" {
        let maps = (100_000 / count).max(1);
        let keep: Vec<Half<M>> = (0..2).map(|_| half_empty(fresh(), 100, &mut random)).collect();
        let mut all = Vec::with_capacity(maps);
        resident();
        let before = resident();
        let mut bytes = 0;
        for _ in 0..maps {
            let mut half = half_empty(fresh(), count, &mut random);
            bytes += half.keys.len() * size_of::<M::Key>();
            half.keys = Vec::new();
            all.push(half);
        }
        let _ = bytes;
        let grown = resident().saturating_sub(before) + maps * size_of::<M>();
        println!("figure ns {:.2}", grown as f64 / (maps * count / 2) as f64);
        drop((keep, all));
        return Some(());
    }
    let mut half = half_empty(fresh(), count, &mut random);
    let (mut spent, mut done) = (Duration::ZERO, 0);
    for round in 0..=rounds {
        let this = match operation {
            "insert" => half.refill(&mut random).0,
            "remove" => half.refill(&mut random).1,
            "get" => {
                let start = Instant::now();
                let sum: u64 =
                    half.keys.iter().map(|&key| half.map.get(key)).fold(0, u64::wrapping_add);
                black_box(sum);
                start.elapsed()
            }
            "iterate" => {
                let start = Instant::now();
                black_box(half.map.sum());
                start.elapsed()
            }
            _ => return None,
        };
        // The first round warms.
        if round > 0 {
            spent += this;
            done += count / 2;
        }
    }
    println!("figure ns {:.4}", spent.as_nanos() as f64 / done.max(1) as f64);
    Some(())
}

/// Runs `NAME insert|get|remove|iterate|memory COUNT ROUNDS`.
pub fn run(words: &[&str]) -> Option<()> {
    let [name, operation, count, rounds] = *words else { return None };
    let (count, rounds): (usize, usize) = (count.parse().ok()?, rounds.parse().ok()?);
    warm_host(count * 100 + (1 << 20));
    crate::peers::maps(name, operation, count, rounds)
        .or_else(|| crate::ours::maps(name, operation, count, rounds))
}
