//! The pools of `include/heapwright.h`: many objects of one size.
//!
//! A thin layer over the library's raw pool. The pool's record lies in a block of the process's
//! heap, with its name. cbindgen copies the comments on the public items into the header.

use core::alloc::Layout;
use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;

use crate::errno;
use crate::owned::Owned;
use heapwright::debug::Owner;
use heapwright::heap;
use heapwright::pool::{RawPool, Reset};

/// Objects of one size. Make one with hw_pool_create.
pub struct Pool {
    _opaque: [u8; 0],
}

/// The size of a pool, in bytes and objects. Later versions add fields at the end: pass
/// hw_pool_stats the size of the struct you were compiled with.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct PoolStatistics {
    /// Objects in use.
    pub live: u64,
    /// Objects that there is memory for.
    pub capacity: u64,
    /// Bytes from one object to the next.
    pub slot_size: u64,
    /// Runs of memory that hold the objects.
    pub segments: u64,
    /// Address space of these runs. Unused and trimmed memory is not resident.
    pub reserved_bytes: u64,
}

/// The function that hw_pool_walk calls for each object. Return false to stop the walk.
pub type ObjectVisitor =
    Option<unsafe extern "C" fn(object: *mut c_void, context: *mut c_void) -> bool>;

/// Bytes of a name that are kept.
const NAME: usize = 47;

/// Settings of a pool for hw_pool_create_with. Later versions add fields at the end, whose zero is
/// the default. Set all fields to zero first, and pass the size of the struct you were compiled
/// with.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct PoolOptions {
    /// The name of the objects in messages, copied up to 47 bytes; NULL is "raw".
    pub name: *const c_char,
    /// The most objects in use at a time; 0 is no limit.
    pub limit: u32,
    /// Whether each object is checked when it is freed: a wrong or a second free ends the program
    /// with a line. In mode=debug all pools are checked. A checked pool is slower: each object is a
    /// block of the process's heap.
    pub checked: bool,
}

struct Whole {
    pool: RawPool,
    name: [u8; NAME],
    checked: Option<Checked>,
}

/// A pool whose objects are blocks of the process's heap.
struct Checked {
    objects: Owned,
    layout: Layout,
    limit: u32,
    /// The pool's name, filled up with NULs.
    name: [u8; NAME],
}

/// Returns the pool of a handle, or `Err` if the pool is checked.
///
/// # Safety
///
/// The handle is one of hw_pool_create that was not destroyed, and no other thread uses it now.
#[inline(always)]
unsafe fn of<'a>(pool: *mut Pool) -> Result<&'a mut RawPool, &'a mut Checked> {
    // SAFETY: by the contract the handle leads to a pool, which no other thread uses now.
    let whole = unsafe { &mut *pool.cast::<Whole>() };
    match &mut whole.checked {
        Some(checked) => Err(checked),
        None => Ok(&mut whole.pool),
    }
}

impl Checked {
    fn has_room(&self, count: usize) -> bool {
        self.limit == 0 || self.objects.count().saturating_add(count) <= self.limit as usize
    }

    #[cold]
    fn allocate(&mut self) -> *mut u8 {
        if !self.has_room(1) {
            return core::ptr::null_mut();
        }
        self.objects.allocate(self.layout.size(), self.layout.align(), false)
    }

    #[cold]
    fn free(&mut self, object: *mut u8) {
        let end = self.name.iter().position(|&byte| byte == 0).unwrap_or(NAME);
        let name = if end == 0 { b"raw" } else { &self.name[..end] };
        self.objects.free(object, "hw_pool_free", name);
    }
}

/// Makes a pool of objects of size bytes, at multiples of alignment, which is a power of two. At
/// most limit objects may be in use at a time; 0 is no limit. With a limit, address space for all
/// objects is reserved in one piece if possible. Messages about the objects use name, which is
/// copied, up to 47 bytes; NULL is "raw".
///
/// Takes no memory for objects yet. Returns NULL with errno EINVAL for an alignment
/// that is no power of two, ENOMEM if there is no memory or no such size.
///
/// # Safety
///
/// name is NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_pool_create(
    size: usize,
    alignment: usize,
    limit: u32,
    name: *const c_char,
) -> *mut Pool {
    // SAFETY: as the caller promises.
    unsafe { create(size, alignment, PoolOptions { name, limit, checked: false }) }
}

/// Like hw_pool_create, with options, which is options_size bytes: pass
/// sizeof(hw_pool_options). A smaller struct of an older program leaves the other fields zero.
///
/// Takes no memory for objects yet. Returns NULL with errno EINVAL for an alignment that is no
/// power of two, or for a size of options that no version has. Returns NULL with errno ENOMEM if
/// there is no memory or no such size.
///
/// # Safety
///
/// options points to options_size bytes; their name is NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_pool_create_with(
    size: usize,
    alignment: usize,
    options: *const PoolOptions,
    options_size: usize,
) -> *mut Pool {
    let mut all = PoolOptions { name: core::ptr::null(), limit: 0, checked: false };
    if options.is_null() || options_size == 0 || options_size > LONGEST {
        return errno::fail(libc::EINVAL).cast();
    }
    let (to, both) = (&raw mut all, options_size.min(size_of::<PoolOptions>()));
    // SAFETY: both structs have `both` bytes; the caller's bytes are valid values of these fields.
    unsafe { core::ptr::copy_nonoverlapping(options.cast::<u8>(), to.cast::<u8>(), both) };
    // SAFETY: as the caller promises.
    unsafe { create(size, alignment, all) }
}

/// # Safety
///
/// The name is null or a string.
unsafe fn create(
    size: usize,
    alignment: usize,
    PoolOptions { name, limit, checked: is_checked }: PoolOptions,
) -> *mut Pool {
    if !alignment.is_power_of_two() {
        return errno::fail(libc::EINVAL).cast();
    }
    let layout = Layout::from_size_align(size, alignment);
    let Some(layout) = layout.ok().filter(|_| size <= 1 << 40 && alignment <= 1 << 32) else {
        return errno::fail(libc::ENOMEM).cast();
    };
    let at: *mut Whole = heap::malloc_aligned(size_of::<Whole>(), align_of::<Whole>()).cast();
    if at.is_null() {
        return errno::fail(libc::ENOMEM).cast();
    }
    let mut kept = [0; NAME];
    let mut length = 0;
    while !name.is_null() && length < NAME {
        // SAFETY: the string has not ended before this byte.
        let byte = unsafe { name.cast::<u8>().wrapping_add(length).read() };
        if byte == 0 {
            break;
        }
        // A byte that is not ASCII becomes a question mark, as everywhere in messages.
        kept[length] = if byte.is_ascii() { byte } else { b'?' };
        length += 1;
    }
    let mut builder = RawPool::builder(layout);
    // SAFETY: `at` has room for the record, and only this call knows it.
    let name_at = unsafe { &raw mut (*at).name };
    // SAFETY: the record has room for the name, and only this call knows it.
    unsafe { name_at.write(kept) };
    if length > 0 {
        // SAFETY: the name lives as long as the pool, which is dropped before the record is freed.
        let bytes = unsafe { core::slice::from_raw_parts(name_at.cast::<u8>(), length) };
        builder = builder.name(core::str::from_utf8(bytes).unwrap_or("raw"));
    }
    if limit > 0 {
        builder = builder.limit(limit);
    }
    // SAFETY: `at` has room for the record, and only this call knows it.
    let pool_at = unsafe { &raw mut (*at).pool };
    // SAFETY: the record has room for the pool, and only this call knows it.
    unsafe { pool_at.write(builder.build()) };
    let objects = Owned::new(Owner::Pool);
    let checked = Checked { objects, layout, limit, name: kept };
    let checked = (is_checked || heap::debugging()).then_some(checked);
    // SAFETY: `at` has room for the record, and only this call knows it.
    let checked_at = unsafe { &raw mut (*at).checked };
    // SAFETY: the record has room for the value, and only this call knows it.
    unsafe { checked_at.write(checked) };
    at.cast()
}

/// Allocates an uninitialised object. Constant time, except for system calls when the pool grows.
///
/// Returns NULL with errno ENOMEM if there is no memory or the limit is reached.
///
/// # Safety
///
/// pool is a pool of hw_pool_create that was not destroyed, and this thread's now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_pool_alloc(pool: *mut Pool) -> *mut c_void {
    // SAFETY: as the caller promises.
    let object = match unsafe { of(pool) } {
        Ok(pool) => pool.alloc(),
        Err(checked) => checked.allocate(),
    };
    if object.is_null() {
        return errno::fail(libc::ENOMEM);
    }
    object.cast()
}

/// Frees an object of a pool. NULL is ignored; errno is kept. Constant time.
///
/// If the pool finds that the object is foreign or already free, the program ends with a line that
/// names the object's owner. A checked pool always finds such a mistake. In mode=debug the mistake
/// is a finding, and the program goes on.
///
/// # Safety
///
/// pool is a pool of hw_pool_create that was not destroyed, and this thread's now;
/// object is NULL or an object of it that was not given back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_pool_free(pool: *mut Pool, object: *mut c_void) {
    if !object.is_null() {
        // SAFETY: as the caller promises.
        match unsafe { of(pool) } {
            // SAFETY: as the caller promises.
            Ok(pool) => unsafe { pool.free(object.cast()) },
            Err(checked) => checked.free(object.cast()),
        }
    }
}

/// Whether an address lies in the memory of a pool. Any address is allowed; constant time.
///
/// # Safety
///
/// pool is a pool of hw_pool_create that was not destroyed, and this thread's now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_pool_contains(pool: *mut Pool, address: *const c_void) -> bool {
    // SAFETY: as the caller promises.
    match unsafe { of(pool) } {
        Ok(pool) => pool.contains(address.cast()),
        Err(checked) => checked.objects.has(heapwright::describe(address.cast()).block),
    }
}

/// Makes room for count more objects, which then need no memory from the kernel. If touch is true,
/// faults their pages in now. Fresh objects come in address order.
///
/// Returns false if there is no memory or the limit is reached.
///
/// # Safety
///
/// pool is a pool of hw_pool_create that was not destroyed, and this thread's now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_pool_preheat(pool: *mut Pool, count: usize, touch: bool) -> bool {
    // SAFETY: as the caller promises.
    match unsafe { of(pool) } {
        Ok(pool) => pool.preheat(count, touch),
        Err(checked) => checked.has_room(count),
    }
}

/// Visits every object in use, in address order. visit may neither use the pool nor throw.
///
/// Returns whether the walk came to the end.
///
/// # Safety
///
/// pool is a pool of hw_pool_create that was not destroyed, and this thread's now;
/// visit is a function that obeys these rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_pool_walk(
    pool: *mut Pool,
    visit: ObjectVisitor,
    context: *mut c_void,
) -> bool {
    let Some(visit) = visit else { return true };
    // SAFETY: as the caller promises.
    let visit = |object: *mut u8| unsafe { visit(object.cast(), context) };
    // SAFETY: as the caller promises.
    match unsafe { of(pool) } {
        Ok(pool) => pool.walk(visit),
        Err(checked) => checked.objects.walk(visit),
    }
}

/// Frees all objects, and keeps memory for keep objects. 0 gives all memory back; SIZE_MAX keeps
/// all.
///
/// # Safety
///
/// pool is a pool of hw_pool_create that was not destroyed, and this thread's now.
/// Objects of it are not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_pool_reset(pool: *mut Pool, keep: usize) {
    let how = match keep {
        0 => Reset::FreeAll,
        usize::MAX => Reset::RetainCapacity,
        keep => Reset::RetainUpTo(keep),
    };
    // SAFETY: as the caller promises.
    match unsafe { of(pool) } {
        Ok(pool) => pool.reset(how),
        Err(checked) => _ = checked.objects.free_from(0),
    }
}

/// Gives every page without an object in use to the kernel, now. Returns the bytes of these pages.
///
/// # Safety
///
/// pool is a pool of hw_pool_create that was not destroyed, and this thread's now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_pool_trim(pool: *mut Pool) -> usize {
    // SAFETY: as the caller promises.
    unsafe { of(pool) }.map_or(0, RawPool::trim)
}

/// Writes a pool's size to *out, which is size bytes: pass sizeof(hw_pool_statistics). A smaller
/// struct gets the fields that it has. A larger struct gets zeros behind the fields that this
/// library knows.
///
/// Returns how many bytes of the struct this library knows. Returns 0 with errno EINVAL for a size
/// of 0 or beyond 64 KiB.
///
/// # Safety
///
/// pool is a pool of hw_pool_create that was not destroyed, and this thread's now;
/// out points to size bytes that can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_pool_stats(
    pool: *mut Pool,
    out: *mut PoolStatistics,
    size: usize,
) -> usize {
    // SAFETY: as the caller promises.
    let now = match unsafe { of(pool) } {
        Ok(pool) => {
            let stats = pool.stats();
            PoolStatistics {
                live: stats.live as u64,
                capacity: stats.capacity as u64,
                slot_size: stats.slot_size as u64,
                segments: stats.segments as u64,
                reserved_bytes: stats.reserved_bytes as u64,
            }
        }
        Err(checked) => {
            let live = checked.objects.count() as u64;
            let slot_size = checked.layout.pad_to_align().size() as u64;
            let reserved_bytes = live * slot_size;
            PoolStatistics { live, capacity: live, slot_size, segments: 0, reserved_bytes }
        }
    };
    // SAFETY: `now` is words without padding, and the caller's struct has `size` bytes.
    unsafe { write_known(&now, out, size) }
}

/// More bytes than any version of a struct of the interface has. A larger size is a mistake.
pub(crate) const LONGEST: usize = 64 << 10;

/// Copies `now` to the caller's struct, which may be shorter or longer. Returns the length of
/// `now`. For a size that no version has, returns 0 with errno EINVAL, and writes nothing.
///
/// # Safety
///
/// `T` has no padding; `out` points to `size` bytes that can be written.
pub(crate) unsafe fn write_known<T>(now: &T, out: *mut T, size: usize) -> usize {
    if size == 0 || size > LONGEST {
        errno::set(libc::EINVAL);
        return 0;
    }
    let both = size_of::<T>().min(size);
    let out = out.cast::<MaybeUninit<u8>>();
    // SAFETY: both structs have `both` bytes.
    unsafe { core::ptr::copy_nonoverlapping(core::ptr::from_ref(now).cast(), out, both) };
    // SAFETY: `both` is at most the size of the caller's struct.
    let rest = unsafe { out.add(both) };
    // SAFETY: the caller's struct has `size - both` bytes from here on.
    unsafe { core::ptr::write_bytes(rest, 0, size - both) };
    size_of::<T>()
}

/// Gives back a pool and every object in it. NULL is ignored.
///
/// # Safety
///
/// pool is NULL or a pool of hw_pool_create that was not destroyed. It and its
/// objects are not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_pool_destroy(pool: *mut Pool) {
    if pool.is_null() {
        return;
    }
    // SAFETY: as the caller promises.
    if let Err(checked) = unsafe { of(pool) } {
        checked.objects.free_from(0);
    }
    let whole = pool.cast::<Whole>();
    // SAFETY: `whole` is the record that `hw_pool_create` made, and no code uses it any more.
    unsafe { whole.drop_in_place() };
    // SAFETY: `hw_pool_create` allocated the block, and its contents are dropped.
    unsafe { heap::free(whole.cast()) };
}
