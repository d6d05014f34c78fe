//! A Rust program on heapwright: threads, collections, a first-class heap.
//!
//! Alone, the program uses the copy of heapwright that it links. Under a preloaded heapwright it
//! prints the same, and the preloaded copy serves it (tests/examples.rs).
#![allow(clippy::disallowed_types, clippy::disallowed_macros, reason = "an ordinary program")]

use std::collections::HashMap;
use std::thread;

use heapwright::heap::{self, Heap};

#[global_allocator]
static HEAP: heapwright::Heapwright = heapwright::Heapwright;

fn words(of: u64) -> usize {
    let table: HashMap<u64, String> = (0..20_000).map(|n| (n * of, n.to_string())).collect();
    let numbers: Vec<u64> = (0..1_000_000).collect();
    table.len() + numbers.len()
}

fn main() {
    let threads: Vec<_> = (1..=8).map(|of| thread::spawn(move || words(of))).collect();
    let total: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    let mine = vec![1u8; 1000];
    assert!(heap::owns(mine.as_ptr()));

    let own = Heap::create();
    assert!(!own.is_null());
    for size in [10, 1000, 100_000] {
        // SAFETY: the heap exists.
        let block = unsafe { Heap::alloc(own, size, 16, true) };
        assert!(!block.is_null() && heap::owns(block));
    }
    // SAFETY: the heap exists, and none of its blocks is used any more.
    unsafe { Heap::destroy(own) };
    println!("{total}");
}
