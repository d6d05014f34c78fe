//! The other crates, each in its supported patterns.
//!
//! A contender is a function that makes an object and one that ends it. Crates have their default
//! settings. Only plurality in the graph has the chunk size of its own benchmark.

use std::alloc::{GlobalAlloc, Layout};
use std::hint::black_box;
use std::ptr::NonNull;
use std::sync::Mutex;

use mimalloc::MiMalloc;
use sharded_slab::Slab as ShardedSlab;
use slab::Slab;
use slotmap::{DefaultKey, SlotMap};

use crate::churn::{graph, list};
use crate::measure::Object;
use crate::pairs::{By, Keyed, Work, measure};
use crate::shared;

/// Makes an object with mimalloc's function.
#[inline(always)]
fn mimalloc_new(value: Object) -> NonNull<Object> {
    // SAFETY: the layout is not empty.
    let block = unsafe { MiMalloc.alloc(Layout::new::<Object>()) }.cast::<Object>();
    let block = NonNull::new(block).expect("out of memory");
    // SAFETY: room for an object, aligned, and ours.
    unsafe { block.write(value) };
    block
}

/// Ends an object of mimalloc.
#[inline(always)]
fn mimalloc_end(block: NonNull<Object>) {
    // SAFETY: the block came from `mimalloc_new`, with this layout; the patterns end it once.
    unsafe { MiMalloc.dealloc(block.as_ptr().cast(), Layout::new::<Object>()) };
}

/// Runs the pairs of the peers. `Box` uses this program's global allocator. plurality's boxes own
/// their objects without a lifetime; its borrowed handles borrow from the pool.
pub fn pairs(name: &str, work: Work) -> Option<()> {
    let (pool, sharded) = (plurality::Pool::new(), ShardedSlab::<Object>::new());
    let into_raw = |value| plurality::Box::into_raw(pool.alloc_box(value));
    // SAFETY: the pointer came from `into_raw` of a box of this type, and is used once.
    let from_raw = |object| drop(unsafe { plurality::Box::<Object>::from_raw(object) });
    let keyed = |value| sharded.insert(value).expect("room for one more");
    let taken = |key| {
        black_box(sharded.take(key).map(|object| object.a));
    };
    match name {
        "box" => measure(By(Box::new, drop), work),
        "mimalloc-raw" => measure(By(mimalloc_new, mimalloc_end), work),
        "plurality-box" => measure(By(|value| pool.alloc_box(value), drop), work),
        "plurality-alloc" => measure(By(|value| pool.alloc(value), drop), work),
        "plurality-raw" => measure(By(into_raw, from_raw), work),
        "slab" => {
            let remove = |slab: &mut Slab<Object>, key| Some(slab.remove(key));
            measure(Keyed(&mut Slab::new(), Slab::insert, remove), work);
        }
        "slotmap" => {
            let insert = |map: &mut SlotMap<DefaultKey, Object>, value| map.insert(value);
            measure(Keyed(&mut SlotMap::new(), insert, SlotMap::remove), work);
        }
        "sharded-slab" => measure(By(keyed, taken), work),
        _ => return None,
    }
    Some(())
}

/// Runs the peers with several threads: plurality's pool behind a lock, or a pool for each thread.
pub fn shared(name: &str, work: shared::Work) -> Option<()> {
    let pool = Mutex::new(plurality::Pool::new());
    match name {
        "plurality" => {
            let make = |value| pool.lock().expect("no thread panics").alloc_box(value);
            // The end of an object needs no lock.
            work.with(|| By(make, drop));
        }
        "plurality-own" => work.with(|| {
            let pool = plurality::Pool::new();
            By(move |value| pool.alloc_box(value), drop)
        }),
        "box" => work.with(|| By(Box::new, drop)),
        _ => return None,
    }
    Some(())
}

/// Runs the peers with a million nodes.
pub fn churn(name: &str, shape: &str, count: usize) -> Option<()> {
    let nodes = plurality::Pool::builder().chunk_size(8192).build();
    let objects = plurality::Pool::new();
    match (name, shape) {
        ("box", "graph") => graph(By(Box::new, drop), count),
        ("box", "list") => list(By(Box::new, drop), count),
        ("plurality-box", "graph") => graph(By(|node| nodes.alloc_box(node), drop), count),
        ("plurality-alloc", "graph") => graph(By(|node| nodes.alloc(node), drop), count),
        ("plurality-box", "list") => list(By(|object| objects.alloc_box(object), drop), count),
        ("plurality-alloc", "list") => list(By(|object| objects.alloc(object), drop), count),
        _ => return None,
    }
    Some(())
}
