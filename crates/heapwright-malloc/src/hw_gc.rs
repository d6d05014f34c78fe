//! The collected heaps of `include/heapwright.h`: memory that is found to be free.
//!
//! A thin layer over the library's `gc::raw`. The fast paths (allocating, storing a reference,
//! reporting one, polling) are inline functions of `heapwright_gc.h`, written by hand,
//! over the heads of the structs that are declared here. The comments on the public items
//! are the header's documentation; the duties of a caller are listed in `heapwright_gc.h`.

use core::ffi::c_void;
use core::mem::ManuallyDrop;
use core::ptr;

use crate::errno;
use crate::hw_gc_types::{
    GcFinalizer, GcHeap, GcMutator, GcOptions, GcRuntime, GcStatistics, GcTracer, GcVisitor,
};
use crate::hw_pool::write_known;
use heapwright::gc::raw::{self, Heap, Mutator, Options, Runtime, Tracer};
use heapwright::heap;

/// # Safety
///
/// As [`Heap::from_ptr`].
unsafe fn heap_of(heap: *mut GcHeap) -> ManuallyDrop<Heap> {
    // SAFETY: by the contract the pointer is a heap's that lives; the handle made of it is not
    // dropped.
    ManuallyDrop::new(unsafe { Heap::from_ptr(heap.cast()) })
}

/// # Safety
///
/// As [`Mutator::from_ptr`].
#[inline]
unsafe fn of(mutator: *mut GcMutator) -> Mutator {
    // SAFETY: by the contract the pointer is an attached mutator's.
    unsafe { Mutator::from_ptr(mutator.cast()) }
}

/// # Safety
///
/// `tracer` is what a callback was given.
unsafe fn tracer_of<'a>(tracer: *mut GcTracer) -> &'a Tracer {
    // SAFETY: by the contract; a tracer begins with what is declared here.
    unsafe { &*tracer.cast() }
}

/// Makes a heap. options may be NULL; both structs are copied, as far as their size says.
///
/// Returns NULL with errno EINVAL for options that do not exist, ENOMEM if there is no memory.
///
/// # Safety
///
/// The structs are as long as they say; the runtime keeps the duties listed in
/// heapwright_gc.h.
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
    };
    // SAFETY: as the caller promises; zero is valid for all fields.
    unsafe { read_known(options, &raw mut chosen) };
    let mut kept = Runtime::new();
    // SAFETY: as the caller promises; null is valid for all fields, and both structs are one.
    unsafe { read_known(runtime, (&raw mut kept).cast::<GcRuntime>()) };
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
        ..Options::new()
    };
    match Heap::new(options, kept) {
        Some(heap) => heap.into_ptr().cast(),
        None => errno::fail(libc::ENOMEM).cast(),
    }
}

/// Copies a caller's struct, as much of it as it says it has, and we know. Null: nothing.
///
/// # Safety
///
/// `from` is null or begins with its length in bytes, and is as long; `to` may hold any bytes
/// of it.
unsafe fn read_known<T>(from: *const T, to: *mut T) {
    if from.is_null() {
        return;
    }
    // SAFETY: by the contract.
    let size = unsafe { from.cast::<usize>().read() };
    let both = size.min(size_of::<T>());
    // SAFETY: both have as many bytes.
    unsafe { ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast::<u8>(), both) };
}

/// Ends a heap: objects of kind HW_GC_FREED are freed, and all its memory goes back. NULL is
/// ignored.
///
/// # Safety
///
/// heap is NULL or of hw_gc_create and was not destroyed; no mutator is attached to it, and
/// nobody uses an object of it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_destroy(heap: *mut GcHeap) {
    if !heap.is_null() {
        // SAFETY: as the caller promises.
        drop(unsafe { Heap::from_ptr(heap.cast()) });
    }
}

/// The calling thread joins a heap: a thread has one mutator a heap. Waits while a collection is
/// at work.
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

/// The calling thread leaves its heap.
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

/// Gives memory for an object of size bytes, aligned to 8 bytes (to 16 in the fine layout).
/// kind is HW_GC_TRACED or HW_GC_LEAF, and HW_GC_FREED or not. The inline hw_gc_new does the
/// same, faster. May collect.
///
/// Returns NULL with errno ENOMEM if there is no memory, or none under the limit after a
/// collection.
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
        return errno::fail(libc::ENOMEM);
    }
    object.cast()
}

/// Reports that a reference to child was stored into parent: what hw_gc_write calls while the
/// heap marks, and for parents that are old. parent may be NULL while the heap marks, which keeps
/// child; old objects are not remembered for it then.
///
/// # Safety
///
/// mutator is this thread's; both are objects of its heap or no addresses in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_shade(
    mutator: *mut GcMutator,
    parent: *mut c_void,
    child: *mut c_void,
) {
    // SAFETY: by the contract the mutator is attached, and the caller's.
    let mutator = unsafe { of(mutator) };
    // SAFETY: both are objects of its heap or no addresses in it, as the caller promises.
    unsafe { mutator.shade(parent.cast(), child.cast()) };
}

/// As hw_gc_shade, and says to which slot of parent the reference was stored: cheaper while
/// objects are moved. hw_gc_write calls it.
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
    // SAFETY: by the contract the mutator is attached, and the caller's.
    let mutator = unsafe { of(mutator) };
    // SAFETY: both are objects of its heap or no addresses in it, and the slot lies in the parent,
    // as the caller promises.
    unsafe { mutator.wrote(parent.cast(), slot.cast(), child.cast()) };
}

/// Reports that something was stored into parent, or will be before the next safepoint: for a memcpy of
/// many references, or a store of which nobody knows what it stores.
///
/// # Safety
///
/// mutator is this thread's; parent is an object of its heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_touch(mutator: *mut GcMutator, parent: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { of(mutator) }.touch(parent.cast());
}

/// Reports a reference: what hw_gc_mark calls when there is no room.
///
/// # Safety
///
/// tracer is what the running callback was given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_mark_full(tracer: *mut GcTracer, object: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { tracer_of(tracer) }.mark(object.cast());
}

/// hw_gc_mark_slot, while objects are to be moved.
///
/// # Safety
///
/// As hw_gc_mark_slot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_mark_slot_moving(tracer: *mut GcTracer, slot: *mut *mut c_void) {
    // SAFETY: by the contract the tracer is what the running callback was given.
    let tracer = unsafe { tracer_of(tracer) };
    // SAFETY: by the contract the slot is a reference in the object that the callback traces.
    unsafe { tracer.mark_slot(slot.cast()) };
}

/// Reports the references in count words at slots, which lie within the object that is being traced.
/// They are looked at later, some at a time, so an object may have millions.
///
/// # Safety
///
/// tracer is what the running callback was given; the slots can be read for as long as
/// the object lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_mark_range(
    tracer: *mut GcTracer,
    slots: *mut *mut c_void,
    count: usize,
) {
    // SAFETY: by the contract the tracer is what the running callback was given.
    let tracer = unsafe { tracer_of(tracer) };
    // SAFETY: by the contract the slots can be read for as long as the object lives.
    unsafe { tracer.mark_range(slots.cast(), count) };
}

/// Reports that the reference in slot is weak: the object that it leads to may die, and slot becomes
/// NULL then, before the object's finalizers run.
///
/// # Safety
///
/// tracer is what the running callback was given; slot lies in the object that is being traced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_mark_weak(tracer: *mut GcTracer, slot: *mut *mut c_void) {
    // SAFETY: as the caller promises.
    let tracer = unsafe { tracer_of(tracer) };
    // SAFETY: as the caller promises.
    unsafe { tracer.mark_weak(slot.cast()) };
}

/// Reports an ephemeron: the reference in key is weak, and the one in value leads to its object for as
/// long as the key's lives. When that has died, both become NULL. A key that is no object of the
/// heap lives for ever, but for NULL.
///
/// # Safety
///
/// tracer is what the running callback was given; key and value lie in the object that is being
/// traced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_mark_ephemeron(
    tracer: *mut GcTracer,
    key: *mut *mut c_void,
    value: *mut *mut c_void,
) {
    // SAFETY: as the caller promises.
    let tracer = unsafe { tracer_of(tracer) };
    // SAFETY: as the caller promises.
    unsafe { tracer.mark_ephemeron(key.cast(), value.cast()) };
}

/// Reports a word that may be an address within an object, or anything else.
///
/// # Safety
///
/// tracer is what the running callback was given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_mark_maybe(tracer: *mut GcTracer, word: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { tracer_of(tracer) }.mark_maybe(word.cast());
}

/// Reports every word from from up to to, as hw_gc_mark_maybe.
///
/// # Safety
///
/// tracer is what the running callback was given; the range can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_scan(tracer: *mut GcTracer, from: *const c_void, to: *const c_void) {
    // SAFETY: as the caller promises.
    let tracer = unsafe { tracer_of(tracer) };
    // SAFETY: as the caller promises.
    unsafe { tracer.scan(from.cast(), to.cast()) };
}

/// Makes a handle: a cell that keeps what it leads to, and may be read and written freely.
///
/// Returns NULL with errno ENOMEM if there is no memory.
///
/// # Safety
///
/// mutator is this thread's; object is NULL or an object of its heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_root_new(
    mutator: *mut GcMutator,
    object: *mut c_void,
) -> *mut *mut c_void {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    match unsafe { mutator.new_root(object.cast()) } {
        Some(cell) => cell.cast(),
        None => errno::fail(libc::ENOMEM).cast(),
    }
}

/// Frees a handle, of any mutator of the heap. NULL is ignored.
///
/// # Safety
///
/// mutator is this thread's; cell is NULL or of hw_gc_root_new and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_root_free(mutator: *mut GcMutator, cell: *mut *mut c_void) {
    if !cell.is_null() {
        // SAFETY: as the caller promises.
        let mutator = unsafe { of(mutator) };
        // SAFETY: as the caller promises.
        unsafe { mutator.free_root(cell.cast()) };
    }
}

/// Makes a weak handle: a cell that keeps nothing, may be read and written freely, and becomes NULL
/// when what it leads to has died, before the object's finalizers run.
///
/// Returns NULL with errno ENOMEM if there is no memory.
///
/// # Safety
///
/// mutator is this thread's; object is NULL or an object of its heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_weak_new(
    mutator: *mut GcMutator,
    object: *mut c_void,
) -> *mut *mut c_void {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    match unsafe { mutator.new_weak(object.cast()) } {
        Some(cell) => cell.cast(),
        None => errno::fail(libc::ENOMEM).cast(),
    }
}

/// Frees a weak handle, of any mutator of the heap. NULL is ignored.
///
/// # Safety
///
/// mutator is this thread's; cell is NULL or of hw_gc_weak_new and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_weak_free(mutator: *mut GcMutator, cell: *mut *mut c_void) {
    if !cell.is_null() {
        // SAFETY: as the caller promises.
        let mutator = unsafe { of(mutator) };
        // SAFETY: as the caller promises.
        unsafe { mutator.free_weak(cell.cast()) };
    }
}

/// From now on the calling thread's stack below base, and its registers, are scanned: every
/// word that is an address within an object keeps it. NULL: no more.
///
/// # Safety
///
/// mutator is this thread's; base is in this thread's stack, above every frame that holds
/// objects, as long as this holds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_scan_stack(mutator: *mut GcMutator, base: *const c_void) {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    unsafe { mutator.scan_stack(base.cast()) };
}

/// Stands still if a collection asks for it. hw_gc_poll calls it if so.
///
/// # Safety
///
/// mutator is this thread's; the duties listed in heapwright_gc.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_safepoint(mutator: *mut GcMutator) {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    unsafe { mutator.safepoint() };
}

/// A jump.
#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    () => {
        "jmp {}"
    };
}

/// A jump.
#[cfg(target_arch = "aarch64")]
macro_rules! jump {
    () => {
        "b {}"
    };
}

/// The thread is about to block: collections go on without it. Until hw_gc_enter it touches no
/// object and calls nothing here; the frame that called this does not return before.
///
/// # Safety
///
/// mutator is this thread's; the duties listed in heapwright_gc.h.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_leave(mutator: *mut GcMutator) {
    core::arch::naked_asm!(jump!(), sym raw::save_and_leave)
}

/// The thread is back. Waits while a collection is at work.
///
/// # Safety
///
/// Follows hw_gc_leave.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_enter(mutator: *mut GcMutator) {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    unsafe { mutator.enter() };
}

/// Collects for about budget_ns nanoseconds: sweeps, marks, and begins a collection if one is due.
/// Where stores are not reported, marking is one step, however long.
///
/// Returns whether nothing is left to do.
///
/// # Safety
///
/// mutator is this thread's; the duties listed in heapwright_gc.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_step(mutator: *mut GcMutator, budget_ns: u64) -> bool {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    unsafe { mutator.step(budget_ns) }
}

/// Collects from the beginning to the end. What nothing leads to is freed when it returns.
///
/// # Safety
///
/// mutator is this thread's; the duties listed in heapwright_gc.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_collect(mutator: *mut GcMutator) {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    unsafe { mutator.collect() };
}

/// Collects, moves objects to where they lie close together, and gives pages back that have none any
/// more. What is pinned, reported by hw_gc_mark, or may be led to by a stack that is scanned
/// stays, with what else lies in its page.
///
/// # Safety
///
/// The duties of heapwright_gc.h, also those for objects that move.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_compact(mutator: *mut GcMutator) {
    // SAFETY: by the contract the mutator is attached, and the caller's.
    let mutator = unsafe { of(mutator) };
    // SAFETY: by the contract the caller does what heapwright_gc.h asks for objects that
    // move.
    unsafe { mutator.compact() };
}

/// As hw_gc_compact, but in steps: hw_gc_step does it, by and by, and returns true when it has; then
/// hw_gc_trim gives pages back.
///
/// # Safety
///
/// As hw_gc_compact.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_ask_compact(mutator: *mut GcMutator) {
    // SAFETY: by the contract the mutator is attached, and the caller's.
    let mutator = unsafe { of(mutator) };
    // SAFETY: by the contract the caller does what heapwright_gc.h asks for objects that
    // move.
    unsafe { mutator.ask_compact() };
}

/// From now on the object stays where it is, until hw_gc_unpin was called as often. It is not
/// kept. Returns whether it is an object of the heap.
///
/// # Safety
///
/// The duties of heapwright_gc.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_pin(mutator: *mut GcMutator, object: *mut c_void) -> bool {
    // SAFETY: by the contract the mutator is attached, and the caller's.
    unsafe { of(mutator) }.pin(object.cast())
}

/// Ends a hw_gc_pin. Before the object dies.
///
/// # Safety
///
/// The object was pinned more often than unpinned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_unpin(mutator: *mut GcMutator, object: *mut c_void) {
    // SAFETY: by the contract the mutator is attached, and the caller's.
    let mutator = unsafe { of(mutator) };
    // SAFETY: by the contract the object was pinned more often than unpinned.
    unsafe { mutator.unpin(object.cast()) };
}

/// The object is to have size bytes. Returns whether it has them where it is. If not, or if a
/// smaller slot would do, it goes to a slot that suits when the heap is compacted next, if it may
/// be moved: then the runtime's wanted says the size again.
///
/// # Safety
///
/// An object of the heap, which is the caller's to change.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_resize(
    mutator: *mut GcMutator,
    object: *mut c_void,
    size: usize,
) -> bool {
    // SAFETY: by the contract the mutator is attached, and the caller's.
    let mutator = unsafe { of(mutator) };
    // SAFETY: by the contract an object of the heap, which is the caller's to change.
    unsafe { mutator.resize(object.cast(), size) }
}

/// Whether a collection is due or under way: a good moment for hw_gc_step.
///
/// # Safety
///
/// mutator is this thread's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_owed(mutator: *mut GcMutator) -> bool {
    // SAFETY: as the caller promises.
    unsafe { of(mutator) }.is_owed()
}

/// From now on a collection is due, so that hw_gc_step begins one: for a program that has time.
///
/// # Safety
///
/// mutator is this thread's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_ask(mutator: *mut GcMutator) {
    // SAFETY: as the caller promises.
    unsafe { of(mutator) }.ask();
}

/// Not now: until hw_gc_resume, allocation does no collecting of its own. Nests. The limit of
/// the heap still holds.
///
/// # Safety
///
/// mutator is this thread's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_defer(mutator: *mut GcMutator) {
    // SAFETY: as the caller promises.
    unsafe { of(mutator) }.defer();
}

/// Ends a hw_gc_defer.
///
/// # Safety
///
/// mutator is this thread's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_resume(mutator: *mut GcMutator) {
    // SAFETY: as the caller promises.
    unsafe { of(mutator) }.resume();
}

/// No major collection now: until hw_gc_resume_majors, collections look only at what is young, if
/// the heap has generations, and memory for it. For requests, between which there is time for the
/// rest. Nests, also with those of other mutators. Only within the first such scope of a heap there may
/// be a major collection, if it was chosen before.
///
/// # Safety
///
/// mutator is this thread's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_defer_majors(mutator: *mut GcMutator) {
    // SAFETY: as the caller promises.
    unsafe { of(mutator) }.defer_majors();
}

/// Ends a hw_gc_defer_majors.
///
/// # Safety
///
/// mutator is this thread's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_resume_majors(mutator: *mut GcMutator) {
    // SAFETY: as the caller promises.
    unsafe { of(mutator) }.resume_majors();
}

/// Whether the next collection is to be a major one, and would be but for hw_gc_defer_majors.
/// hw_gc_ask and hw_gc_step make it, a little at a time.
///
/// # Safety
///
/// mutator is this thread's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_major_owed(mutator: *mut GcMutator) -> bool {
    // SAFETY: as the caller promises.
    unsafe { of(mutator) }.is_major_owed()
}

/// The runtime has bytes more, or less, in malloc that go with objects of the heap: they count
/// in its budget.
///
/// # Safety
///
/// mutator is this thread's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_external(mutator: *mut GcMutator, bytes: isize) {
    // SAFETY: as the caller promises.
    unsafe { of(mutator) }.external(bytes);
}

/// As malloc; the bytes count in the heap's budget.
///
/// # Safety
///
/// mutator is this thread's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_malloc(mutator: *mut GcMutator, size: usize) -> *mut c_void {
    let block = heap::malloc(size);
    if block.is_null() {
        return errno::fail(libc::ENOMEM);
    }
    // SAFETY: as the caller promises.
    unsafe { of(mutator) }.external(size.cast_signed());
    block.cast()
}

/// As realloc, of a block of hw_gc_malloc that has old_size bytes.
///
/// # Safety
///
/// mutator is this thread's; block is NULL (and old_size 0) or of hw_gc_malloc, and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_realloc(
    mutator: *mut GcMutator,
    block: *mut c_void,
    old_size: usize,
    size: usize,
) -> *mut c_void {
    // SAFETY: as the caller promises.
    let moved = unsafe { heap::realloc(block.cast(), size) };
    if moved.is_null() {
        return errno::fail(libc::ENOMEM);
    }
    // SAFETY: as the caller promises.
    unsafe { of(mutator) }.external(size.cast_signed().wrapping_sub(old_size.cast_signed()));
    moved.cast()
}

/// As free, of a block of hw_gc_malloc that has size bytes. In the runtime's free callback as
/// well. mutator may be NULL when the heap is being destroyed: nobody counts any more.
///
/// # Safety
///
/// mutator is this thread's, or as above; block is NULL (and size 0) or of hw_gc_malloc, and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_free(mutator: *mut GcMutator, block: *mut c_void, size: usize) {
    if !mutator.is_null() {
        // SAFETY: as the caller promises.
        unsafe { of(mutator) }.external(size.cast_signed().wrapping_neg());
    }
    // SAFETY: as the caller promises.
    unsafe { heap::free(block.cast()) };
}

/// Asks for run to be called with object and context once nothing leads to the object any more.
/// Then it and all it leads to are kept until run has been called, by hw_gc_run_finalizers.
///
/// Returns false with errno ENOMEM if there is no memory, EINVAL without a function.
///
/// # Safety
///
/// mutator is this thread's; object is an object of its heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_finalize(
    mutator: *mut GcMutator,
    object: *mut c_void,
    run: GcFinalizer,
    context: *mut c_void,
) -> bool {
    let Some(run) = run else {
        errno::fail(libc::EINVAL);
        return false;
    };
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    let added = unsafe { mutator.finalize(object.cast(), run, context) };
    if !added {
        errno::fail(libc::ENOMEM);
    }
    added
}

/// Forgets all finalizers of object that are not due yet. Takes time for each that any object has.
///
/// Returns how many there were.
///
/// # Safety
///
/// mutator is this thread's; object is an object of its heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_finalize_cancel(
    mutator: *mut GcMutator,
    object: *mut c_void,
) -> usize {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    unsafe { mutator.cancel_finalizers(object.cast()) }
}

/// Runs up to most finalizers that are due, in the order in which they were asked for. They may
/// allocate. Returns how many.
///
/// # Safety
///
/// mutator is this thread's; the duties listed in heapwright_gc.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_run_finalizers(mutator: *mut GcMutator, most: usize) -> usize {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    unsafe { mutator.run_finalizers(most) }
}

/// The object of a heap that an address lies in, or NULL. Any address may be asked about.
/// Constant time, but for objects that were just allocated.
///
/// # Safety
///
/// heap is of hw_gc_create and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_find(heap: *mut GcHeap, address: *const c_void) -> *mut c_void {
    // SAFETY: as the caller promises.
    let found = unsafe { heap_of(heap) }.find(address.cast());
    found.map_or(ptr::null_mut(), <*mut u8>::cast)
}

/// Bytes of an object's slot; of a large object, those that were asked for. 0 for what is in
/// no collected heap.
#[unsafe(no_mangle)]
pub extern "C" fn hw_gc_object_size(object: *const c_void) -> usize {
    raw::object_size(object.cast())
}

/// Bytes of the slot that an object of size bytes gets.
///
/// # Safety
///
/// heap is of hw_gc_create and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_slot_size(heap: *mut GcHeap, size: usize) -> usize {
    // SAFETY: as the caller promises.
    unsafe { heap_of(heap) }.slot_size(size)
}

/// The largest size that lies in a slot of one of the heap's pools: what is larger is a large
/// object, with pages of its own.
///
/// # Safety
///
/// heap is of hw_gc_create and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_largest_slot(heap: *mut GcHeap) -> usize {
    // SAFETY: as the caller promises.
    unsafe { heap_of(heap) }.largest_slot()
}

/// Writes what there is of a heap to *out, which is size bytes: pass sizeof(hw_gc_statistics). A
/// smaller struct gets the fields it knows; of a larger one the rest is set to zero.
///
/// Returns how many bytes of the struct this library knows.
///
/// # Safety
///
/// heap is of hw_gc_create and was not destroyed; out points to size bytes that can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_stats(
    heap: *mut GcHeap,
    out: *mut GcStatistics,
    size: usize,
) -> usize {
    // SAFETY: as the caller promises.
    let now = unsafe { heap_of(heap) }.statistics();
    // SAFETY: both structs have the same fields, and no padding.
    unsafe { write_known(&now, out.cast(), size) }
}

/// Gives all pages without objects back. Returns bytes.
///
/// # Safety
///
/// heap is of hw_gc_create and was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_trim(heap: *mut GcHeap) -> usize {
    // SAFETY: as the caller promises.
    unsafe { heap_of(heap) }.trim()
}

/// Visits every object, while all mutators stand still. visit calls nothing of the heap.
///
/// Returns whether the walk came to the end.
///
/// # Safety
///
/// mutator is this thread's; the duties listed in heapwright_gc.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_walk(
    mutator: *mut GcMutator,
    visit: GcVisitor,
    context: *mut c_void,
) -> bool {
    let Some(visit) = visit else { return true };
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    let each = |object: *mut u8, size, kind| {
        // SAFETY: as the caller promises.
        unsafe { visit(object.cast(), size, kind, context) }
    };
    // SAFETY: as the caller promises.
    unsafe { mutator.walk(each) }
}

/// Writes a heap dump to a file descriptor, for `heapwright heap`. All mutators stand still
/// meanwhile.
///
/// Returns false where it could not be written whole: with errno of write, or ENOMEM.
///
/// # Safety
///
/// mutator is this thread's; the duties listed in heapwright_gc.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_dump(mutator: *mut GcMutator, descriptor: i32) -> bool {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    let mut failed = false;
    let sink = |mut bytes: &[u8]| {
        while !bytes.is_empty() && !failed {
            // SAFETY: the pointer and the length are the slice's.
            let wrote = unsafe { libc::write(descriptor, bytes.as_ptr().cast(), bytes.len()) };
            if let Ok(wrote) = usize::try_from(wrote) {
                bytes = bytes.get(wrote..).unwrap_or_default();
            } else {
                failed = errno::get() != libc::EINTR;
            }
        }
        !failed
    };
    // SAFETY: as the caller promises.
    let whole = unsafe { mutator.dump(sink) };
    if !whole && !failed {
        errno::fail(libc::ENOMEM);
    }
    whole
}

/// Looks at everything that roots lead to. What is wrong is said on stderr, with the path to
/// it. Returns how many things are.
///
/// # Safety
///
/// mutator is this thread's; the duties listed in heapwright_gc.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_gc_verify(mutator: *mut GcMutator) -> usize {
    // SAFETY: as the caller promises.
    let mutator = unsafe { of(mutator) };
    // SAFETY: as the caller promises.
    unsafe { mutator.verify() }
}
