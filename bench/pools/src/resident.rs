//! The memory that a pool keeps after `trim`.
//!
//! A run makes many objects, writes to every byte of them, destroys nine of ten, and trims the
//! pool. The result is the growth of the process's resident memory, bookkeeping included, divided
//! by the bytes of the OS pages with a live object.
//!
//! `random` keeps random objects, one in ten. `runs` keeps one in ten runs of 512 neighbours.

use std::collections::BTreeSet;
use std::ptr::NonNull;

use crate::measure::{PAGE, warm_host};
use figures::random::Random;

const RUN: usize = 512;

/// A pool of objects of one size, raw.
pub trait Pool {
    /// Bytes of an object.
    const BYTES: usize;

    /// Makes an object, and writes to every byte of it.
    fn create(&self) -> NonNull<u8>;

    /// Destroys an object.
    ///
    /// # Safety
    ///
    /// The object came from [`create`](Self::create) of this pool, and is destroyed once.
    unsafe fn destroy(&self, object: NonNull<u8>);

    /// Gives free memory back. Returns its bytes.
    fn trim(&mut self) -> usize;
}

/// Returns the resident bytes of this process, exactly: `statm` may lag behind.
pub fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").expect("smaps_rollup");
    let line = text.lines().find(|line| line.starts_with("Rss:")).expect("Rss");
    let kibibytes = line.split_whitespace().nth(1).and_then(|word| word.parse::<usize>().ok());
    kibibytes.expect("a number") * 1024
}

/// Measures a pool. Prints the ratio and the amounts of memory.
pub fn measure<P: Pool>(pool: impl FnOnce() -> P, shape: &str, count: usize) -> Option<()> {
    let mut objects = vec![NonNull::dangling(); count];
    resident();
    let before = resident();
    let mut pool = pool();
    for place in &mut objects {
        *place = pool.create();
    }
    let full = resident() - before;
    let mut random = Random::new(crate::SEED);
    match shape {
        "random" => random.shuffle(&mut objects),
        "runs" => {
            let mut runs: Vec<&[NonNull<u8>]> = objects.chunks(RUN).collect();
            random.shuffle(&mut runs);
            let shuffled = runs.concat();
            // The shuffled order goes into the same list, whose memory was counted before.
            objects.copy_from_slice(&shuffled);
        }
        _ => return None,
    }
    for &object in &objects[count / 10..] {
        // SAFETY: the objects are from `create`, and each is destroyed once.
        unsafe { pool.destroy(object) };
    }
    let given_back = pool.trim();
    let kept = resident().saturating_sub(before);
    let pages: BTreeSet<usize> = objects[..count / 10]
        .iter()
        .flat_map(|object| {
            let first = object.addr().get();
            first / PAGE..=(first + P::BYTES - 1) / PAGE
        })
        .collect();
    let pages = pages.len() * PAGE;
    println!("figure ns {:.4}", kept as f64 / pages as f64);
    for (name, bytes) in
        [("full", full), ("given_back", given_back), ("kept", kept), ("pages", pages)]
    {
        println!("figure {name} {:.1}", bytes as f64 / (1 << 20) as f64);
    }
    Some(())
}

/// Runs `BYTES random|runs COUNT`.
pub fn run(words: &[&str]) -> Option<()> {
    let [bytes, shape, count] = *words else { return None };
    let (bytes, count): (usize, usize) = (bytes.parse().ok()?, count.parse().ok()?);
    warm_host(bytes * count * 5 / 4);
    crate::ours::resident(bytes, shape, count)
}
