//! The other crates, each in the patterns that it can do.
//!
//! A contender is a small type around a reference to the pool, or around nothing
//! for an allocator. Where a crate has settings, they are its defaults, but for
//! plurality in the graph, which has the chunk size of plurality's own benchmark.
//!
//! Taking an object out by its key moves it to the caller. Of what comes out, one
//! field is looked at, so that a compiler which sees through the call need not
//! copy the rest.

use std::alloc::{GlobalAlloc, Layout};
use std::hint::black_box;
use std::ptr::NonNull;
use std::sync::Mutex;

use mimalloc::MiMalloc;
use sharded_slab::Slab as ShardedSlab;
use slab::Slab;
use slotmap::{DefaultKey, SlotMap};

use crate::article::Store;
use crate::churn::{graph, list};
use crate::measure::Object;
use crate::pairs::{Maker, Work, measure};
use crate::shared;

/// glibc's malloc and free, for the article.
pub struct Glibc<const BYTES: usize>;

impl<const BYTES: usize> Store for Glibc<BYTES> {
    #[inline(always)]
    fn create(&mut self) -> *mut u8 {
        // SAFETY: malloc has no conditions.
        unsafe { libc::malloc(BYTES) }.cast()
    }

    #[inline(always)]
    unsafe fn destroy(&mut self, object: *mut u8) {
        // SAFETY: from `create`, once, says the caller.
        unsafe { libc::free(object.cast()) };
    }
}

/// `Box`, from this program's global allocator.
struct Boxes;

impl<T> Maker<T> for Boxes {
    type Handle = Box<T>;

    #[inline(always)]
    fn make(&mut self, value: T) -> Box<T> {
        Box::new(value)
    }

    #[inline(always)]
    fn end(&mut self, handle: Box<T>) {
        drop(handle);
    }
}

/// mimalloc called by hand.
struct Mimalloc;

impl<T> Maker<T> for Mimalloc {
    type Handle = NonNull<T>;

    #[inline(always)]
    fn make(&mut self, value: T) -> NonNull<T> {
        // SAFETY: the layouts here are not empty.
        let block = unsafe { MiMalloc.alloc(Layout::new::<T>()) }.cast::<T>();
        let block = NonNull::new(block).expect("out of memory");
        // SAFETY: room for a T, aligned, and ours.
        unsafe { block.write(value) };
        block
    }

    #[inline(always)]
    fn end(&mut self, handle: NonNull<T>) {
        // SAFETY: `make` wrote a T there; this is its end.
        unsafe { handle.drop_in_place() };
        // SAFETY: the block came from `make`, with this layout.
        unsafe { MiMalloc.dealloc(handle.as_ptr().cast(), Layout::new::<T>()) };
    }
}

/// plurality's boxes: they own, and live as long as they like.
struct PluralityBox<'a, T>(&'a plurality::Pool<T>);

impl<T> Maker<T> for PluralityBox<'_, T> {
    type Handle = plurality::Box<T>;

    #[inline(always)]
    fn make(&mut self, value: T) -> Self::Handle {
        self.0.alloc_box(value)
    }

    #[inline(always)]
    fn end(&mut self, handle: Self::Handle) {
        drop(handle);
    }
}

/// plurality's borrowed handles: they own, and borrow from the pool.
struct PluralityAlloc<'a, T>(&'a plurality::Pool<T>);

impl<'a, T> Maker<T> for PluralityAlloc<'a, T> {
    type Handle = plurality::Alloc<'a, T>;

    #[inline(always)]
    fn make(&mut self, value: T) -> Self::Handle {
        self.0.alloc(value)
    }

    #[inline(always)]
    fn end(&mut self, handle: Self::Handle) {
        drop(handle);
    }
}

/// plurality's boxes as raw pointers.
struct PluralityRaw<'a, T>(&'a plurality::Pool<T>);

impl<T> Maker<T> for PluralityRaw<'_, T> {
    type Handle = NonNull<T>;

    #[inline(always)]
    fn make(&mut self, value: T) -> Self::Handle {
        plurality::Box::into_raw(self.0.alloc_box(value))
    }

    #[inline(always)]
    fn end(&mut self, handle: Self::Handle) {
        // SAFETY: from `into_raw` of a box of this type, once.
        drop(unsafe { plurality::Box::<T>::from_raw(handle) });
    }
}

/// plurality's pool as several threads can use it.
struct PluralityLocked<'a, T>(&'a Mutex<plurality::Pool<T>>);

impl<T> Maker<T> for PluralityLocked<'_, T> {
    type Handle = plurality::Box<T>;

    #[inline(always)]
    fn make(&mut self, value: T) -> Self::Handle {
        self.0.lock().expect("no thread panics").alloc_box(value)
    }

    #[inline(always)]
    fn end(&mut self, handle: Self::Handle) {
        // Needs no lock.
        drop(handle);
    }
}

/// A pool of plurality's for each thread.
struct PluralityOwn<T>(plurality::Pool<T>);

impl<T> Maker<T> for PluralityOwn<T> {
    type Handle = plurality::Box<T>;

    #[inline(always)]
    fn make(&mut self, value: T) -> Self::Handle {
        self.0.alloc_box(value)
    }

    #[inline(always)]
    fn end(&mut self, handle: Self::Handle) {
        drop(handle);
    }
}

struct SlabKeys<'a>(&'a mut Slab<Object>);

impl Maker<Object> for SlabKeys<'_> {
    type Handle = usize;

    #[inline(always)]
    fn make(&mut self, value: Object) -> usize {
        self.0.insert(value)
    }

    #[inline(always)]
    fn end(&mut self, handle: usize) {
        black_box(self.0.remove(handle).a);
    }
}

struct SlotMapKeys<'a>(&'a mut SlotMap<DefaultKey, Object>);

impl Maker<Object> for SlotMapKeys<'_> {
    type Handle = DefaultKey;

    #[inline(always)]
    fn make(&mut self, value: Object) -> DefaultKey {
        self.0.insert(value)
    }

    #[inline(always)]
    fn end(&mut self, handle: DefaultKey) {
        black_box(self.0.remove(handle).map(|object| object.a));
    }
}

struct ShardedKeys<'a>(&'a ShardedSlab<Object>);

impl Maker<Object> for ShardedKeys<'_> {
    type Handle = usize;

    #[inline(always)]
    fn make(&mut self, value: Object) -> usize {
        self.0.insert(value).expect("room for one more")
    }

    #[inline(always)]
    fn end(&mut self, handle: usize) {
        black_box(self.0.take(handle).map(|object| object.a));
    }
}

/// The peers in the pairs.
pub fn pairs(name: &str, work: Work) -> Option<()> {
    match name {
        "box" => measure(Boxes, work),
        "mimalloc-raw" => measure(Mimalloc, work),
        "plurality-box" => measure(PluralityBox(&plurality::Pool::new()), work),
        "plurality-alloc" => measure(PluralityAlloc(&plurality::Pool::new()), work),
        "plurality-raw" => measure(PluralityRaw(&plurality::Pool::new()), work),
        "slab" => measure(SlabKeys(&mut Slab::new()), work),
        "slotmap" => measure(SlotMapKeys(&mut SlotMap::new()), work),
        "sharded-slab" => measure(ShardedKeys(&ShardedSlab::new()), work),
        _ => return None,
    }
    Some(())
}

/// The peers among several threads.
pub fn shared(name: &str, work: shared::Work) -> Option<()> {
    match (name, work.handed_over) {
        ("plurality", false) => {
            let pool = Mutex::new(plurality::Pool::new());
            shared::measure(work, || PluralityLocked(&pool));
        }
        ("plurality", true) => {
            let pool = Mutex::new(plurality::Pool::new());
            shared::hand_over(work, || PluralityLocked(&pool));
        }
        ("plurality-own", false) => {
            shared::measure(work, || PluralityOwn(plurality::Pool::new()));
        }
        ("plurality-own", true) => {
            shared::hand_over(work, || PluralityOwn(plurality::Pool::new()));
        }
        ("box", false) => shared::measure(work, || Boxes),
        ("box", true) => shared::hand_over(work, || Boxes),
        _ => return None,
    }
    Some(())
}

/// The peers with a million nodes.
pub fn churn(name: &str, shape: &str, count: usize) -> Option<()> {
    match (name, shape) {
        ("box", "graph") => graph(Boxes, count),
        ("box", "list") => list(Boxes, count),
        ("plurality-box", "graph") => {
            graph(PluralityBox(&plurality::Pool::builder().chunk_size(8192).build()), count);
        }
        ("plurality-alloc", "graph") => {
            graph(PluralityAlloc(&plurality::Pool::builder().chunk_size(8192).build()), count);
        }
        ("plurality-box", "list") => list(PluralityBox(&plurality::Pool::new()), count),
        ("plurality-alloc", "list") => list(PluralityAlloc(&plurality::Pool::new()), count),
        _ => return None,
    }
    Some(())
}
