//! The other crates, each in the patterns that it can do.
//!
//! A contender makes objects and ends them. Crates have their default settings. Only plurality has
//! another chunk size in the graph, as in plurality's own benchmark.

use std::alloc::{GlobalAlloc, Layout};
use std::hint::black_box;
use std::ptr::NonNull;
use std::sync::Mutex;

use mimalloc::MiMalloc;
use sharded_slab::Slab as ShardedSlab;
use slab::Slab;
use slotmap::{DefaultKey, DenseSlotMap, SlotMap};

use crate::churn::{graph, list};
use crate::maps::{self, Map};
use crate::measure::Object;
use crate::pairs::{By, Keyed, Work, measure};
use crate::shared;

#[inline(always)]
fn mimalloc_new(value: Object) -> NonNull<Object> {
    // SAFETY: the layout is not empty.
    let block = unsafe { MiMalloc.alloc(Layout::new::<Object>()) }.cast::<Object>();
    let block = NonNull::new(block).expect("out of memory");
    // SAFETY: room for an object, aligned, and ours.
    unsafe { block.write(value) };
    block
}

#[inline(always)]
fn mimalloc_end(block: NonNull<Object>) {
    // SAFETY: the block came from `mimalloc_new`, with this layout; the patterns end it once.
    unsafe { MiMalloc.dealloc(block.as_ptr().cast(), Layout::new::<Object>()) };
}

/// Runs the pairs. `Box` is from this program's global allocator. plurality's boxes own their slots
/// and do not borrow the pool; its borrowed handles do.
pub fn pairs(name: &str, work: Work) -> Option<()> {
    let (pool, sharded) = (plurality::Pool::new(), ShardedSlab::<Object>::new());
    let into_raw = |value| plurality::Box::into_raw(pool.alloc_box(value));
    // SAFETY: the pointer is from `into_raw` of a box of this type, and is used once.
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

macro_rules! map {
    (
        $map:ty, $key:ty, |$this:ident, $name:ident| $get:expr, $remove:expr,
        |$all:ident| $values:expr
    ) => {
        impl Map for $map {
            type Key = $key;

            #[inline(always)]
            fn insert(&mut self, value: Object) -> $key {
                <$map>::insert(self, value).into()
            }

            #[inline(always)]
            fn get(&self, $name: $key) -> u64 {
                let $this = self;
                $get.map_or(0, |object| object.a)
            }

            #[inline(always)]
            fn remove(&mut self, $name: $key) -> u64 {
                let $this = self;
                $remove.map_or(0, |object| object.a)
            }

            fn sum(&mut self) -> u64 {
                let $all = self;
                $values.fold(0, |sum, object| sum.wrapping_add(object.a))
            }
        }
    };
}

map!(Slab<Object>, usize, |slab, key| slab.get(key), slab.try_remove(key), |slab| {
    slab.iter().map(|(_, object)| object)
});
map!(SlotMap<DefaultKey, Object>, DefaultKey, |map, key| map.get(key), map.remove(key), |map| {
    map.iter().map(|(_, object)| object)
});
map!(DenseSlotMap<DefaultKey, Object>, DefaultKey, |map, key| map.get(key), map.remove(key), |map| {
    map.iter().map(|(_, object)| object)
});
map!(
    thunderdome::Arena<Object>,
    thunderdome::Index,
    |map, key| map.get(key),
    map.remove(key),
    |map| { map.iter().map(|(_, object)| object) }
);
map!(
    generational_arena::Arena<Object>,
    generational_arena::Index,
    |map, key| map.get(key),
    map.remove(key),
    |map| map.iter().map(|(_, object)| object)
);

impl Map for ShardedSlab<Object> {
    type Key = usize;

    #[inline(always)]
    fn insert(&mut self, value: Object) -> usize {
        ShardedSlab::insert(self, value).expect("room for one more")
    }

    #[inline(always)]
    fn get(&self, key: usize) -> u64 {
        ShardedSlab::get(self, key).map_or(0, |object| object.a)
    }

    #[inline(always)]
    fn remove(&mut self, key: usize) -> u64 {
        self.take(key).map_or(0, |object| object.a)
    }

    fn sum(&mut self) -> u64 {
        self.unique_iter().fold(0, |sum, object| sum.wrapping_add(object.a))
    }
}

/// Runs the peers with half-empty maps.
pub fn maps(name: &str, operation: &str, count: usize, rounds: usize) -> Option<()> {
    let of = (operation, count, rounds);
    match name {
        "slab" => maps::measure(Slab::<Object>::new, of.0, of.1, of.2),
        "slotmap" => maps::measure(SlotMap::<DefaultKey, Object>::new, of.0, of.1, of.2),
        "dense" => maps::measure(DenseSlotMap::<DefaultKey, Object>::new, of.0, of.1, of.2),
        "thunderdome" => maps::measure(thunderdome::Arena::<Object>::new, of.0, of.1, of.2),
        "generational-arena" => {
            maps::measure(generational_arena::Arena::<Object>::new, of.0, of.1, of.2)
        }
        "sharded-slab" => maps::measure(ShardedSlab::<Object>::new, of.0, of.1, of.2),
        _ => None,
    }
}

/// Runs the peers among several threads: plurality's pool behind a lock, or a pool for each thread.
pub fn shared(name: &str, work: shared::Work) -> Option<()> {
    let pool = Mutex::new(plurality::Pool::new());
    match name {
        "plurality" => {
            let make = |value| pool.lock().expect("no thread panics").alloc_box(value);
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
