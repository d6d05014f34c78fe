//! A realm's collections beside std's with `Rc`, which is what a program without a collector has:
//! the same operations on the same keys, in turns within one process, and the same sums.
//!
//! ```text
//!   load     a function twice: over `heapwright::gc`'s collections, and over std's with `Rc`
//!   round    each load once with each; the first round is not counted
//!   table    medians in ns an operation, and the median of the rounds' ratios
//! ```
//!
//! Maps of std's run with SipHash, their default, and with the hasher of ours (`gc::Seeded`): so
//! what the table costs stands apart from what the hash does. The realm collects as it comes, with
//! its defaults; that is in its time, as the counts are in `Rc`'s.
//!
//! `ci/gc.sh realm collections [--quick]` builds and runs this.

#![allow(
    clippy::redundant_closure,
    reason = "`Map::new` is a function of one realm's lifetime, the closure one of every"
)]

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::hash::BuildHasher;
use std::hint::black_box;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Instant;

use figures::machine::machine;
use figures::random::Random;
use figures::statistics::median;
use figures::text::table;
use heapwright::Rootable;
use heapwright::gc::{Deque, Gc, Map, Realm, Seeded, Str, StrBuilder, Vector};

/// Operations within one mutation.
const BATCH: usize = 500;

/// What is kept: larger than a word, as objects are.
type Object = [u64; 4];

/// How many keys or values, and what came of it: operations and a sum.
type Load = fn(usize) -> (usize, u64);

struct Pair {
    name: &'static str,
    size: usize,
    realm: Load,
    std: &'static [(&'static str, Load)],
}

const PAIRS: [Pair; 6] = [
    Pair {
        name: "map of numbers, small",
        size: 1_000,
        realm: map_realm,
        std: &[("std", map_std::<std::hash::RandomState>), ("std, our hash", map_std::<Seeded>)],
    },
    Pair {
        name: "map of numbers, large",
        size: 200_000,
        realm: map_realm,
        std: &[("std", map_std::<std::hash::RandomState>), ("std, our hash", map_std::<Seeded>)],
    },
    Pair {
        name: "map of strings",
        size: 20_000,
        realm: words_realm,
        std: &[
            ("std", words_std::<std::hash::RandomState>),
            ("std, our hash", words_std::<Seeded>),
        ],
    },
    Pair { name: "deque", size: 300_000, realm: deque_realm, std: &[("std", deque_std)] },
    Pair { name: "vector", size: 100_000, realm: vector_realm, std: &[("std", vector_std)] },
    Pair { name: "strings", size: 5_000, realm: strings_realm, std: &[("std", strings_std)] },
];

fn map_realm(size: usize) -> (usize, u64) {
    let mut realm =
        Realm::<Rootable!['gc => Map<'gc, u64, Gc<'gc, Object>>]>::new(|mc| Map::new(mc));
    let (mut keys, mut sum) = (Random::new(1), 0_u64);
    let rounds = 200_000 / size;
    for _ in 0..rounds {
        let mut left = size;
        while left > 0 {
            let batch = left.min(BATCH);
            left -= batch;
            sum = sum.wrapping_add(realm.mutate(|mc, root| {
                let map = *root.as_ref();
                let mut sum = 0_u64;
                for _ in 0..batch {
                    let key = keys.bits() % (2 * size as u64);
                    map.insert(mc, key, mc.alloc([key; 4]));
                    for _ in 0..4 {
                        let asked = keys.bits() % (2 * size as u64);
                        sum = sum.wrapping_add(map.get(&asked).map_or(1, |object| object[3]));
                    }
                    map.remove(mc, &(keys.bits() % (2 * size as u64)));
                }
                sum
            }));
        }
    }
    (rounds * size * 6, sum)
}

fn map_std<S: BuildHasher + Default>(size: usize) -> (usize, u64) {
    let mut map: HashMap<u64, Rc<Object>, S> = HashMap::default();
    let (mut keys, mut sum) = (Random::new(1), 0_u64);
    let rounds = 200_000 / size;
    for _ in 0..rounds * size {
        let key = keys.bits() % (2 * size as u64);
        map.insert(key, Rc::new([key; 4]));
        for _ in 0..4 {
            let asked = keys.bits() % (2 * size as u64);
            // What a program has of it is a handle of its own, as it has a `Gc`.
            sum = sum.wrapping_add(map.get(&asked).cloned().map_or(1, |object| object[3]));
        }
        map.remove(&(keys.bits() % (2 * size as u64)));
    }
    (rounds * size * 6, sum)
}

fn word(n: u64, into: &mut String) {
    into.clear();
    write!(into, "identifier_{n:x}").expect("a string takes it");
}

fn words_realm(size: usize) -> (usize, u64) {
    let mut realm = Realm::<Rootable!['gc => Map<'gc, Str<'gc>, u64>]>::new(|mc| Map::new(mc));
    let (mut numbers, mut text, count) = (Random::new(2), String::new(), 10 * size);
    for _ in 0..count / BATCH {
        realm.mutate(|mc, root| {
            for _ in 0..BATCH {
                word(numbers.bits() % size as u64, &mut text);
                let before = root.get(text.as_str()).unwrap_or(0);
                root.insert(mc, mc.alloc_str(&text), before + 1);
            }
        });
    }
    let sum = realm.mutate(|_, root| root.iter().map(|(key, n)| n * n * key.len() as u64).sum());
    (count / BATCH * BATCH, sum)
}

fn words_std<S: BuildHasher + Default>(size: usize) -> (usize, u64) {
    let mut map: HashMap<Rc<str>, u64, S> = HashMap::default();
    let (mut numbers, mut text, count) = (Random::new(2), String::new(), 10 * size);
    for _ in 0..count / BATCH * BATCH {
        word(numbers.bits() % size as u64, &mut text);
        let before = map.get(text.as_str()).copied().unwrap_or(0);
        map.insert(Rc::from(text.as_str()), before + 1);
    }
    let sum = map.iter().map(|(key, n)| n * n * key.len() as u64).sum();
    (count / BATCH * BATCH, sum)
}

fn deque_realm(size: usize) -> (usize, u64) {
    let mut realm =
        Realm::<Rootable!['gc => Deque<'gc, Gc<'gc, Object>>]>::new(|mc| Deque::new(mc));
    let (mut numbers, mut sum) = (Random::new(3), 0_u64);
    for _ in 0..size / BATCH {
        sum = sum.wrapping_add(realm.mutate(|mc, root| {
            let queue = *root.as_ref();
            let mut sum = 0_u64;
            for _ in 0..BATCH {
                queue.push_back(mc, mc.alloc([numbers.bits(); 4]));
                if queue.len() > 1000 {
                    sum = sum.wrapping_add(queue.pop_front(mc).map_or(0, |object| object[1]));
                }
            }
            sum
        }));
    }
    (size / BATCH * BATCH, sum)
}

fn deque_std(size: usize) -> (usize, u64) {
    let mut queue: VecDeque<Rc<Object>> = VecDeque::new();
    let (mut numbers, mut sum) = (Random::new(3), 0_u64);
    for _ in 0..size / BATCH * BATCH {
        queue.push_back(Rc::new([numbers.bits(); 4]));
        if queue.len() > 1000 {
            sum = sum.wrapping_add(queue.pop_front().map_or(0, |object| object[1]));
        }
    }
    (size / BATCH * BATCH, sum)
}

fn vector_realm(size: usize) -> (usize, u64) {
    let mut realm =
        Realm::<Rootable!['gc => Vector<'gc, Gc<'gc, Object>>]>::new(|mc| Vector::new(mc));
    let (mut numbers, mut sum) = (Random::new(4), 0_u64);
    for _ in 0..size / BATCH {
        realm.mutate(|mc, root| {
            (0..BATCH).for_each(|_| root.push(mc, mc.alloc([numbers.bits(); 4])))
        });
    }
    for _ in 0..5 {
        sum = realm
            .mutate(|_, root| root.iter().fold(sum, |sum, object| sum.wrapping_add(object[2])));
    }
    realm.mutate(|mc, root| root.sort_by(mc, |a, b| a[0].cmp(&b[0])));
    sum = realm.mutate(|mc, root| {
        (0..)
            .map_while(|n: u64| Some(n.wrapping_mul(root.pop(mc)?[0])))
            .fold(sum, u64::wrapping_add)
    });
    (size / BATCH * BATCH * 8, sum)
}

fn vector_std(size: usize) -> (usize, u64) {
    let mut all: Vec<Rc<Object>> = Vec::new();
    let (mut numbers, mut sum) = (Random::new(4), 0_u64);
    (0..size / BATCH * BATCH).for_each(|_| all.push(Rc::new([numbers.bits(); 4])));
    for _ in 0..5 {
        sum = all.iter().cloned().fold(sum, |sum, object| sum.wrapping_add(object[2]));
    }
    all.sort_unstable_by(|a, b| a[0].cmp(&b[0]));
    sum =
        (0..).map_while(|n: u64| Some(n.wrapping_mul(all.pop()?[0]))).fold(sum, u64::wrapping_add);
    (size / BATCH * BATCH * 8, sum)
}

fn strings_realm(size: usize) -> (usize, u64) {
    type Root<'gc> = (StrBuilder<'gc>, Deque<'gc, Str<'gc>>);
    let mut realm =
        Realm::<Rootable!['gc => Root<'gc>]>::new(|mc| (StrBuilder::new(mc), Deque::new(mc)));
    let (mut numbers, mut sum) = (Random::new(5), 0_u64);
    for _ in 0..size {
        sum = sum.wrapping_add(realm.mutate(|mc, root| {
            let (line, lines) = *root.as_ref();
            for _ in 0..50 {
                line.push_str(mc, PIECES[numbers.bits() as usize % PIECES.len()]);
            }
            lines.push_back(mc, line.finish(mc));
            let old = if lines.len() > 1000 { lines.pop_front(mc) } else { None };
            old.map_or(0, |line| line.len() as u64)
        }));
    }
    (size * 50, sum)
}

fn strings_std(size: usize) -> (usize, u64) {
    let (mut line, mut lines) = (String::new(), VecDeque::<Rc<str>>::new());
    let (mut numbers, mut sum) = (Random::new(5), 0_u64);
    for _ in 0..size {
        for _ in 0..50 {
            line.push_str(PIECES[numbers.bits() as usize % PIECES.len()]);
        }
        lines.push_back(Rc::from(std::mem::take(&mut line)));
        let old = if lines.len() > 1000 { lines.pop_front() } else { None };
        sum = sum.wrapping_add(old.map_or(0, |line| line.len() as u64));
    }
    (size * 50, sum)
}

/// What lines are made of.
const PIECES: [&str; 5] = ["a", "few ", "words, some of them longer", "\n", " and others not"];

/// Runs a load: nanoseconds an operation, and the sum.
fn time(load: Load, size: usize) -> (f64, u64) {
    let began = Instant::now();
    let (operations, sum) = black_box(load)(size);
    (began.elapsed().as_nanos() as f64 / operations as f64, black_box(sum))
}

fn main() -> ExitCode {
    let is_quick = std::env::args().any(|word| word == "--quick");
    let rounds = if is_quick { 1 } else { 9 };
    println!("{}.\n", machine());
    let mut rows = Vec::new();
    let mut agrees = true;
    for pair in PAIRS {
        let size = if is_quick { pair.size.min(1000) } else { pair.size };
        let mut realm = Vec::new();
        let mut others = vec![Vec::new(); pair.std.len()];
        for round in 0..=rounds {
            let (ours, sum) = time(pair.realm, size);
            for (kept, (name, load)) in others.iter_mut().zip(pair.std) {
                let (theirs, other) = time(*load, size);
                if other != sum {
                    println!("- FAULT: {} computes {sum}, and {name} {other}", pair.name);
                    agrees = false;
                }
                if round > 0 {
                    kept.push(theirs);
                }
            }
            if round > 0 {
                realm.push(ours);
            }
        }
        for (theirs, (name, _)) in others.iter().zip(pair.std) {
            let mut ratios: Vec<f64> = realm.iter().zip(theirs).map(|(a, b)| a / b).collect();
            ratios.sort_by_key(|ratio| Reverse((ratio * 1e6) as u64));
            rows.push(vec![
                pair.name.to_owned(),
                size.to_string(),
                (*name).to_owned(),
                format!("{:.1}", median(&realm)),
                format!("{:.1}", median(theirs)),
                format!("{:.2}", median(&ratios)),
                format!("{:.2} to {:.2}", ratios[ratios.len() - 1], ratios[0]),
            ]);
        }
    }
    let head = ["load", "size", "beside", "realm ns", "with Rc ns", "realm / Rc", "in rounds"];
    println!("{}", table(&head, &rows));
    println!("{}", if agrees { "all computed the same" } else { "see the faults" });
    ExitCode::from(u8::from(!agrees))
}
