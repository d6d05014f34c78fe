//! The collected heaps of `include/heapwright.h`.
//!
//! A thin layer over the library's `gc::raw`. `heapwright_gc.h` has the inline fast paths, which
//! use the heads of the structs declared here, and lists a caller's duties. cbindgen copies the
//! comments on the public items into the header.
//!
//! ```text
//!   here         heaps, mutators, allocation, write barriers
//!   tracing      a runtime's reports                  handles      strong and weak cells
//!   safepoints   where threads stop                   collecting   when, and how far
//!   off_heap     memory outside that objects keep     finalizers   calls for dead objects
//!   guardians    objects that retrieve dead objects
//!   sizing       a heap's growth                      weak_passes  tables of the runtime's own
//!   inspection   queries about a heap
//! ```

use core::ffi::c_void;
use core::mem::ManuallyDrop;
use core::ptr;

use crate::errno;
use crate::hw_gc_types::{GcHeap, GcMutator, GcOptions, GcRuntime, GcTracer};
use crate::hw_pool::LONGEST;
use heapwright::gc::raw::{Heap, Mutator, Options, Runtime, Tracer};
use heapwright::gc::{FREED, LEAF, USER};

// The modules are in the header's order. (rustfmt would sort them if they stood together.)
pub mod tracing;

pub mod handles;

pub mod safepoints;

pub mod collecting;

pub mod off_heap;

pub mod finalizers;

pub mod guardians;

pub mod weak_passes;

pub mod sizing;

pub mod inspection;

/// # Safety
///
/// As [`Heap::from_ptr`].
unsafe fn heap_of(heap: *mut GcHeap) -> ManuallyDrop<Heap> {
    // SAFETY: by the contract the heap is live; the handle made of it is not dropped.
    ManuallyDrop::new(unsafe { Heap::from_ptr(heap.cast()) })
}

/// # Safety
///
/// As [`Mutator::from_ptr`].
#[inline]
unsafe fn of(mutator: *mut GcMutator) -> Mutator {
    // SAFETY: by the contract the pointer leads to an attached mutator.
    unsafe { Mutator::from_ptr(mutator.cast()) }
}

/// # Safety
///
/// `tracer` is an argument of a callback that runs.
unsafe fn tracer_of<'a>(tracer: *mut GcTracer) -> &'a Tracer {
    // SAFETY: by the contract this is a tracer, which begins with the fields declared here.
    unsafe { &*tracer.cast() }
}

/// Makes a heap. options and runtime may be NULL. Both structs are copied. Each begins with its
/// size: sizeof, as the program knows it.
///
/// Returns NULL with errno EINVAL for options that do not exist, and for a nonzero field that this
/// version does not know. The same holds for a size that no version of the struct has (0, or more
/// than 64 KiB). Returns NULL with errno ENOMEM if there is no memory.
///
/// # Safety
///
/// The structs are as long as they say; the runtime keeps the duties listed in heapwright_gc.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_create(
    options: *const GcOptions,
    runtime: *const GcRuntime,
) -> *mut GcHeap {
    let mut chosen = GcOptions {
        size: 0,
        layout: 0,
        factor_percent: 0,
        verify: 0,
        least: 0,
        most: 0,
        step_ns: 0,
        incremental: false,
        generations: false,
        markers: 0,
        compact: false,
        conservative: false,
        uncleared: false,
    };
    // SAFETY: as the caller promises; zero is valid for all fields.
    let valid = unsafe { read_known(options, &raw mut chosen) };
    let mut kept = Runtime::new();
    // SAFETY: as the caller promises; null is valid for all fields, and the layouts are equal.
    if !valid || !unsafe { read_known(runtime, (&raw mut kept).cast::<GcRuntime>()) } {
        return errno::fail(libc::EINVAL).cast();
    }
    let layout = match chosen.layout {
        0 => heapwright::gc::Layout::Fine,
        1 => heapwright::gc::Layout::Ruby,
        2 => heapwright::gc::Layout::Powers,
        3 => heapwright::gc::Layout::Single,
        _ => return errno::fail(libc::EINVAL).cast(),
    };
    if chosen.verify > 7 || (1..=100).contains(&chosen.factor_percent) {
        return errno::fail(libc::EINVAL).cast();
    }
    let options = Options {
        layout,
        factor_percent: chosen.factor_percent,
        verify: chosen.verify,
        least: chosen.least,
        most: chosen.most,
        step_ns: chosen.step_ns,
        incremental: chosen.incremental,
        generations: chosen.generations,
        markers: chosen.markers,
        compact: chosen.compact,
        conservative: chosen.conservative,
        uncleared: chosen.uncleared,
        ..Options::new()
    };
    match Heap::new(options, kept) {
        Some(heap) => heap.into_ptr().cast(),
        None => errno::fail(libc::ENOMEM).cast(),
    }
}

/// Copies a caller's struct, as far as its size says and this version knows. Returns false if no
/// version has this size, or if a field is set that this version does not know.
///
/// # Safety
///
/// `from` is null or begins with its length in bytes, and has this length. `to` may hold any bytes
/// of that struct.
unsafe fn read_known<T>(from: *const T, to: *mut T) -> bool {
    if from.is_null() {
        return true;
    }
    // SAFETY: by the contract the caller's struct begins with its size.
    let size = unsafe { from.cast::<usize>().read() };
    // A struct with a size has a second field, and its length is a multiple of its alignment.
    if size <= size_of::<usize>() || size > LONGEST || !size.is_multiple_of(align_of::<T>()) {
        return false;
    }
    let both = size.min(size_of::<T>());
    // SAFETY: both structs have `both` bytes.
    unsafe { ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast::<u8>(), both) };
    (both..size).all(|at| {
        // SAFETY: by the contract the caller's struct has `size` bytes.
        unsafe { from.cast::<u8>().wrapping_add(at).read() == 0 }
    })
}

/// Ends a heap: objects of kind HW_GC_FREED are freed, and all its memory goes back. NULL is
/// ignored. A verified heap ends the program if a mutator is attached to it.
///
/// # Safety
///
/// heap is NULL or of hw_gc_create and was not destroyed; no mutator is attached to it, and no
/// thread uses an object of it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_destroy(heap: *mut GcHeap) {
    if !heap.is_null() {
        // SAFETY: as the caller promises.
        drop(unsafe { Heap::from_ptr(heap.cast()) });
    }
}

/// Attaches the calling thread to a heap: a thread has one mutator in each heap. Waits while the
/// world is stopped. A thread that ends attached is detached.
///
/// Returns NULL with errno ENOMEM if there is no memory, EBUSY if the thread has a mutator of
/// this heap.
///
/// # Safety
///
/// heap is of hw_gc_create and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_attach(heap: *mut GcHeap) -> *mut GcMutator {
    // SAFETY: as the caller promises.
    let heap = unsafe { heap_of(heap) };
    if heap.is_attached() {
        return errno::fail(libc::EBUSY).cast();
    }
    match heap.attach() {
        Some(mutator) => mutator.into_ptr().cast(),
        None => errno::fail(libc::ENOMEM).cast(),
    }
}

/// Makes a mutator without a thread, as after hw_gc_leave. The thread that calls hw_gc_enter gets
/// the mutator. This is for a runtime whose threads take turns, or that prepares a thread before it
/// starts. Does not wait while the world is stopped: the calling thread may have a mutator.
///
/// Returns NULL with errno ENOMEM if there is no memory.
///
/// # Safety
///
/// heap is of hw_gc_create and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_attach_away(heap: *mut GcHeap) -> *mut GcMutator {
    // SAFETY: as the caller promises.
    match unsafe { heap_of(heap) }.attach_away() {
        Some(mutator) => mutator.into_ptr().cast(),
        None => errno::fail(libc::ENOMEM).cast(),
    }
}

/// Detaches the calling thread from its heap.
///
/// # Safety
///
/// mutator is this thread's, of hw_gc_attach, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_detach(mutator: *mut GcMutator) {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    unsafe { mutator.detach() };
}

/// Gives memory for an object of size bytes, aligned to 8 bytes (to 16 in the fine layout). kind is
/// HW_GC_TRACED or HW_GC_LEAF, with or without HW_GC_FREED and HW_GC_USER. The inline hw_gc_new
/// does the same, faster. May collect.
///
/// Returns NULL with errno ENOMEM if there is no memory. The same happens if a collection leaves no
/// memory under the limit, and the runtime's out_of_memory (if it has one) has given up. Returns
/// NULL with errno EINVAL for a kind that does not exist (a verified heap ends the program then).
///
/// # Safety
///
/// mutator is this thread's; the duties listed in heapwright_gc.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_alloc(
    mutator: *mut GcMutator,
    size: usize,
    kind: u32,
) -> *mut c_void {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    let object = unsafe { mutator.alloc(size, kind) };
    if object.is_null() {
        let is_known = kind & !(LEAF | FREED | USER) == 0;
        return errno::fail(if is_known { libc::ENOMEM } else { libc::EINVAL });
    }
    object.cast()
}

/// Reports that a reference to child was stored into parent. hw_gc_write calls this while the heap
/// marks, and for old parents. While the heap marks, parent may be NULL: this keeps child, and does
/// not change the remembered set.
///
/// # Safety
///
/// mutator is this thread's; parent and child are objects of its heap, or no addresses in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_shade(
    mutator: *mut GcMutator,
    parent: *mut c_void,
    child: *mut c_void,
) {
    // SAFETY: by the contract the mutator is attached and belongs to the caller.
    let mutator = unsafe { of(mutator) };
    // SAFETY: both are objects of the mutator's heap or no addresses in it, as the caller promises.
    unsafe { mutator.shade(parent.cast(), child.cast()) };
}

/// As hw_gc_shade, and names the slot of parent that was stored to: cheaper while objects are
/// moved. hw_gc_write calls this.
///
/// # Safety
///
/// As hw_gc_shade; slot lies in parent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_wrote(
    mutator: *mut GcMutator,
    parent: *mut c_void,
    slot: *mut *mut c_void,
    child: *mut c_void,
) {
    // SAFETY: by the contract the mutator is attached and belongs to the caller.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises, both are objects of the mutator's heap or no addresses in it,
    // and the slot lies in the parent.
    unsafe { mutator.wrote(parent.cast(), slot.cast(), child.cast()) };
}

/// The slow path of hw_gc_touch in heapwright_gc.h: reports that parent was stored into, or will be
/// before the next safepoint.
///
/// # Safety
///
/// mutator is this thread's; parent is an object of its heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_touched(mutator: *mut GcMutator, parent: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { of(mutator) }.touch(parent.cast());
}

/// The slow path of hw_gc_touch_slot in heapwright_gc.h: as hw_gc_touched, for one slot of parent.
///
/// # Safety
///
/// As hw_gc_touched; slot lies in parent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_touched_slot(
    mutator: *mut GcMutator,
    parent: *mut c_void,
    slot: *mut *mut c_void,
) {
    // SAFETY: by the contract the mutator is attached and belongs to the caller.
    let mutator = unsafe { of(mutator) };
    // SAFETY: the slot lies in the parent, as the caller promises.
    unsafe { mutator.touch_slot(parent.cast(), slot.cast()) };
}

/// Exempts the object from the reports of stores for as long as it lives. Every collection, also a
/// minor one, reads the object, and the objects that it leads to do not move. This is for objects
/// that foreign code writes into.
///
/// Returns false with errno ENOMEM if there is no memory.
///
/// # Safety
///
/// mutator is this thread's; object is an object of its heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_unprotect(mutator: *mut GcMutator, object: *mut c_void) -> bool {
    // SAFETY: by the contract the mutator is attached and belongs to the caller.
    let mutator = unsafe { of(mutator) };
    // SAFETY: by the contract the object is in the mutator's heap.
    errno::or_no_memory(unsafe { mutator.unprotect(object.cast()) })
}
