//! heapwright in every pattern.

use std::alloc::Layout;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use heapwright::arena::Arena;
use heapwright::pool::{Key, KeyPool, Pool, SharedPool};

use crate::churn::{graph, list};
use crate::measure::Object;
use crate::pairs::{By, Keyed, Work, measure};
use crate::{arenas, golden, maps, resident, shared};

struct Bytes<const BYTES: usize>(#[allow(dead_code, reason = "only its size counts")] [u8; BYTES]);

/// A pool of uninitialised objects, as the peers' are: the pattern writes to them.
struct Slots<const BYTES: usize>(Pool<MaybeUninit<Bytes<BYTES>>>);

/// Runs the pairs.
pub fn pairs(name: &str, work: Work) -> Option<()> {
    let (pool, shared) = (Pool::new(), SharedPool::new());
    // SAFETY: the object is from `create`, and the patterns end each object once.
    let destroy = |object| unsafe { pool.destroy(object) };
    // SAFETY: the handle came from `create`, and is ended once.
    let destroy_shared = |object| unsafe { shared.destroy(object) };
    match name {
        "pool-owning" => measure(By(|value| pool.boxed(value), drop), work),
        "pool-raw" => measure(By(|value| pool.create(value), destroy), work),
        "pool-keyed" => {
            let insert = |pool: &mut Pool<Object>, value| pool.insert(value);
            let remove = |pool: &mut Pool<Object>, key| pool.remove(key);
            measure(Keyed(&mut Pool::new(), insert, remove), work);
        }
        "key-pool" => {
            let insert = |pool: &mut KeyPool<Object>, value| pool.insert(value);
            let remove = |pool: &mut KeyPool<Object>, key| pool.remove(key);
            measure(Keyed(&mut KeyPool::new(), insert, remove), work);
        }
        "shared-owning" => measure(By(|value| shared.boxed(value), drop), work),
        "shared-raw" => measure(By(|value| shared.create(value), destroy_shared), work),
        _ => return None,
    }
    Some(())
}

impl maps::Map for KeyPool<Object> {
    type Key = Key<Object>;

    #[inline(always)]
    fn insert(&mut self, value: Object) -> Key<Object> {
        self.insert(value)
    }

    #[inline(always)]
    fn get(&self, key: Key<Object>) -> u64 {
        self.get(key).map_or(0, |object| object.a)
    }

    #[inline(always)]
    fn remove(&mut self, key: Key<Object>) -> u64 {
        self.remove(key).map_or(0, |object| object.a)
    }

    fn sum(&mut self) -> u64 {
        self.iter().fold(0, |sum, (_, object)| sum.wrapping_add(object.a))
    }
}

/// Runs the half-empty maps.
pub fn maps(name: &str, operation: &str, count: usize, rounds: usize) -> Option<()> {
    (name == "key-pool").then(|| maps::measure(KeyPool::new, operation, count, rounds))?
}

/// Runs several threads.
pub fn shared(name: &str, work: shared::Work) -> Option<()> {
    if name != "shared" {
        return None;
    }
    let pool = SharedPool::new();
    work.with(|| By(|value| pool.boxed(value), drop));
    Some(())
}

/// Runs a million nodes.
pub fn churn(name: &str, shape: &str, count: usize) -> Option<()> {
    let (nodes, objects) = (Pool::new(), Pool::new());
    let (shared_nodes, shared_objects) = (SharedPool::new(), SharedPool::new());
    match (name, shape) {
        ("pool", "graph") => graph(By(|node| nodes.boxed(node), drop), count),
        ("pool", "list") => list(By(|object| objects.boxed(object), drop), count),
        ("shared", "graph") => graph(By(|node| shared_nodes.boxed(node), drop), count),
        ("shared", "list") => list(By(|object| shared_objects.boxed(object), drop), count),
        _ => return None,
    }
    Some(())
}

impl arenas::Arena for Arena {
    #[inline(always)]
    fn number(&self, value: u32) -> NonNull<u32> {
        NonNull::from(self.alloc(value))
    }

    #[inline(always)]
    fn piece(&self, layout: Layout) -> NonNull<u8> {
        self.alloc_layout(layout)
    }

    fn reset(&mut self) {
        self.reset();
    }
}

/// Runs the arena.
pub fn arena(name: &str, shape: &str, count: usize) -> Option<()> {
    if name == "arena" { arenas::measure(Arena::new(), shape, count) } else { None }
}

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn call_arena_u32(arena: &Arena, value: u32) -> NonNull<u32> {
    NonNull::from(arena.alloc(value))
}

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn call_arena_layout(arena: &Arena, size: usize, align: usize) -> NonNull<u8> {
    // SAFETY: callers pass the size and alignment of a valid layout.
    arena.alloc_layout(unsafe { Layout::from_size_align_unchecked(size, align) })
}

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn call_pool_create(pool: &Pool<u64>, value: u64) -> NonNull<u64> {
    pool.create(value)
}

#[inline(never)]
#[unsafe(no_mangle)]
unsafe extern "C" fn call_pool_destroy(pool: &Pool<u64>, object: NonNull<u64>) {
    // SAFETY: the caller passes an object of this pool, once.
    unsafe { pool.destroy(object) };
}

/// Makes the calls whose instructions are counted.
pub fn golden() {
    golden::arena(
        Arena::new(),
        |a, n| call_arena_u32(a, n),
        |a, s, b| call_arena_layout(a, s, b),
        |a| a.reset(),
    );
    let pool = Pool::new();
    golden::parts(|| {
        let objects: [NonNull<u64>; 8] = std::array::from_fn(|i| call_pool_create(&pool, i as u64));
        for object in objects {
            // SAFETY: the object was just made, and is destroyed only here.
            unsafe { call_pool_destroy(&pool, object) };
        }
    });
}

impl<const BYTES: usize> resident::Pool for Slots<BYTES> {
    const BYTES: usize = BYTES;

    fn create(&self) -> NonNull<u8> {
        let slot: NonNull<u8> = self.0.create(MaybeUninit::uninit()).cast();
        // SAFETY: the slot has BYTES bytes.
        unsafe { slot.write_bytes(1, BYTES) };
        slot
    }

    unsafe fn destroy(&self, object: NonNull<u8>) {
        // SAFETY: the caller passes an object of this pool, once.
        unsafe { self.0.destroy(object.cast()) };
    }

    fn trim(&mut self) -> usize {
        self.0.trim()
    }
}

/// Measures the memory kept after a trim.
pub fn resident(bytes: usize, shape: &str, count: usize) -> Option<()> {
    match bytes {
        32 => resident::measure(|| Slots::<32>(Pool::new()), shape, count),
        200 => resident::measure(|| Slots::<200>(Pool::new()), shape, count),
        8192 => resident::measure(|| Slots::<8192>(Pool::new()), shape, count),
        _ => None,
    }
}
