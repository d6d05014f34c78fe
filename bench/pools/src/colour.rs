//! The first objects of 64 pools.
//!
//! A program often has many pools with few objects in each, and uses the first
//! ones most. If every pool begins at the same offset of a page, those objects
//! share a set of the first-level cache, which has room for 8 or 12 of them: a
//! colour for each pool sets them apart. One object of each of 64 pools is read
//! and written, over and over; the control has each object at the start of a
//! page of its own.

use std::ptr::NonNull;

use crate::measure::{Object, PAGE, report, time};

/// How many.
pub const POOLS: usize = 64;

/// A fixed number of rounds over the objects.
pub fn walk(objects: &[NonNull<Object>]) {
    let rounds = 100_000;
    let offsets: std::collections::BTreeSet<usize> =
        objects.iter().map(|object| object.addr().get() % PAGE / 64).collect();
    let go = |rounds| {
        for _ in 0..rounds {
            for object in objects {
                // SAFETY: a live object that nothing else looks at now.
                let value = unsafe { object.cast::<u64>().read_volatile() };
                // SAFETY: a live object that nothing else looks at now.
                unsafe { object.cast::<u64>().write_volatile(value + 1) };
            }
        }
    };
    go(rounds / 10);
    report(time(rounds * objects.len() as u64, || go(rounds)));
    println!("counts {} lines of a page", offsets.len());
}

fn control() -> Vec<NonNull<Object>> {
    let (read_write, private) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    (0..POOLS)
        .map(|_| {
            // SAFETY: a new mapping, which is never given back.
            let at = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, read_write, private, -1, 0) };
            assert_ne!(at, libc::MAP_FAILED, "no memory");
            NonNull::new(at.cast()).expect("a mapping is not at 0")
        })
        .collect()
}

/// `NAME`.
pub fn run(words: &[&str]) -> Option<()> {
    match *words {
        ["pages"] => walk(&control()),
        ["plurality"] => {
            let pools: Vec<_> = (0..POOLS).map(|_| plurality::Pool::new()).collect();
            let mut objects: Vec<_> =
                pools.iter().map(|pool| pool.alloc_box(Object::new(0))).collect();
            let pointers: Vec<_> =
                objects.iter_mut().map(|object| NonNull::from(&mut **object)).collect();
            walk(&pointers);
        }
        [name] => return crate::ours::colour(name),
        _ => return None,
    }
    Some(())
}
