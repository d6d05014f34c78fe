//! The growth of a heap: its target, the square-root rule, a policy of the runtime.

use core::ffi::c_void;

use super::heap_of;
use crate::hw_gc_types::{GcHeap, GcPolicy};

/// Changes a heap's memory target, as in hw_gc_options. The heap may be factor_percent of its live
/// bytes. least is the fewest bytes between two collections, and most is the most bytes of the
/// heap. 0 stands for the default of each. A heap that is already larger than most gets no page
/// until a collection has made room. Any thread may call this.
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

/// From now on the heap grows by a square-root rule, in place of factor_percent (MemBalancer:
/// Kirisame, Shenoy, Panchekha, OOPSLA 2022). The rule uses the heap's live bytes, its allocation
/// rate and its slowness of marking. Of several heaps with the same bytes, a heap gets more memory
/// if that memory saves more time. A heap with bytes live bytes that allocates as fast as it is
/// marked may double. With 0, factor_percent counts again. Any thread may call this.
///
/// # Safety
///
/// heap is of hw_gc_create and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_balance(heap: *mut GcHeap, bytes: usize) {
    // SAFETY: as the caller promises.
    unsafe { heap_of(heap) }.balance(bytes);
}

/// Sets policy, which is called after each collection. policy returns how many bytes may be live
/// and garbage when the next collection ends. 0 leaves the choice to the heap. All mutators are
/// stopped during the call, so policy must call nothing of the heap and take no lock that a mutator
/// may hold. The heap's least and most still hold. NULL removes policy. Any thread may call this.
///
/// # Safety
///
/// heap is of hw_gc_create and was not destroyed; policy may be called until the next call of this
/// function, or until the heap ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_set_policy(
    heap: *mut GcHeap,
    policy: GcPolicy,
    context: *mut c_void,
) {
    // SAFETY: both types are pointers to functions that take the same struct's address.
    let policy =
        unsafe { core::mem::transmute::<GcPolicy, Option<heapwright::gc::Policy>>(policy) };
    // SAFETY: by the contract the heap lives.
    let heap = unsafe { heap_of(heap) };
    // SAFETY: as the caller promises.
    unsafe { heap.set_policy(policy, context) };
}
