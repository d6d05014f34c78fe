//! How much a heap may grow: its target, the square-root rule, a policy of the runtime's own.

use core::ffi::c_void;

use super::heap_of;
use crate::hw_gc_types::{GcHeap, GcPolicy};

/// Changes how much memory a heap may have, as hw_gc_options say it: factor_percent of what is
/// live, least bytes between two collections in any case, most bytes in all; 0 is the default of
/// each. It holds from now on. A heap that is larger than most already gets no page until a
/// collection has made room. Any thread may call it.
///
/// # Safety
///
/// heap is of hw_gc_create and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_set_target(
    heap: *mut GcHeap,
    factor_percent: u32,
    least: usize,
    most: usize,
) {
    // SAFETY: as the caller promises.
    unsafe { heap_of(heap) }.set_target(factor_percent, least, most);
}

/// From now on the heap may grow by the square root of what lives, of how fast it allocates, and of
/// how slowly it is marked, and not by factor_percent (MemBalancer's rule: Kirisame, Shenoy,
/// Panchekha, OOPSLA 2022): of several heaps with the same bytes, those get more memory that save
/// more time with it. A heap of which bytes live, and which allocates as fast as it is marked, may
/// double. 0: by the factor again. Any thread may call it.
///
/// # Safety
///
/// heap is of hw_gc_create and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_balance(heap: *mut GcHeap, bytes: usize) {
    // SAFETY: as the caller promises.
    unsafe { heap_of(heap) }.balance(bytes);
}

/// Has policy asked after each collection how many bytes may be live and garbage when the next one
/// ends: while all mutators stand still, so it calls nothing of the heap and takes no lock that a
/// mutator may hold. 0: what the heap itself would choose. least and most of hw_gc_options hold in
/// any case. NULL: nobody is asked. Any thread may call it.
///
/// # Safety
///
/// heap is of hw_gc_create and was not destroyed; policy may be called until this is called again,
/// or the heap ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_set_policy(
    heap: *mut GcHeap,
    policy: GcPolicy,
    context: *mut c_void,
) {
    // SAFETY: both are pointers to functions that take a pointer to the same struct.
    let policy =
        unsafe { core::mem::transmute::<GcPolicy, Option<heapwright::gc::Policy>>(policy) };
    // SAFETY: by the contract the heap lives.
    let heap = unsafe { heap_of(heap) };
    // SAFETY: as the caller promises.
    unsafe { heap.set_policy(policy, context) };
}
