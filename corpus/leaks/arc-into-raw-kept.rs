// leaks: reachable 1 64 at A in main
// valgrind: differs It calls a block possibly lost that only a pointer behind its start leads to.
// Arc::into_raw points behind the two counters; the only pointer lies in a static.
include!("../corpus.rs");
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

static SHARED: AtomicPtr<[u64; 6]> = AtomicPtr::new(std::ptr::null_mut());

fn main() {
    let raw = Arc::into_raw(Arc::new(black_box([7u64; 6]))); // LEAK A
    SHARED.store(raw.cast_mut(), Relaxed);
    fix! { drop(unsafe { Arc::from_raw(SHARED.swap(std::ptr::null_mut(), Relaxed)) }); }
    wipe();
    black_box(SHARED.load(Relaxed));
}
