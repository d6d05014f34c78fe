//! The arenas of `include/heapwright.h`: blocks one after another, freed all at once.
//!
//! A thin layer over the library's arena, whose record lies in a block of the process's heap.
//! cbindgen copies the comments on the public items into the header.

use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr::NonNull;

use crate::errno;
use crate::hw_pool::write_known;
use crate::owned::Owned;
use heapwright::arena::{Arena as Library, Mark};
use heapwright::debug::Owner;
use heapwright::heap;

/// Memory that is given back all at once. Make one with hw_arena_create.
pub struct Arena {
    _opaque: [u8; 0],
}

/// A position in an arena. hw_arena_mark makes it, and hw_arena_rewind uses it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ArenaMark {
    /// The next free byte.
    pub position: *mut c_void,
    /// The chunk of this byte.
    pub chunk: usize,
}

/// The size of an arena, in bytes. Later versions add fields at the end: pass hw_arena_stats the
/// size of the struct you were compiled with.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ArenaStatistics {
    /// Bytes handed out, padding included.
    pub used_bytes: u64,
    /// Bytes of all chunks.
    pub reserved_bytes: u64,
}

/// The alignment of the blocks of `hw_arena_alloc`.
const NATURAL: usize = 16;

struct Whole {
    arena: Library,
    /// In `mode=debug` each block is a block of the debug heap.
    checked: Option<Checked>,
}

struct Checked {
    blocks: Owned,
    /// The bytes of the blocks, and their limit, which is 0 if there is none.
    bytes: usize,
    limit: usize,
}

impl Checked {
    fn allocate(&mut self, layout: Layout) -> *mut c_void {
        let bytes = self.bytes.saturating_add(layout.size());
        if self.limit != 0 && bytes > self.limit {
            return errno::fail(libc::ENOMEM);
        }
        let block = self.blocks.allocate(layout.size(), layout.align(), false);
        if block.is_null() {
            return errno::fail(libc::ENOMEM);
        }
        self.bytes = bytes;
        block.cast()
    }

    fn free(&mut self, block: *mut u8, size: usize) {
        self.bytes = self.bytes.saturating_sub(size);
        self.blocks.free(block, "hw_arena_free", b"arena");
    }

    fn free_from(&mut self, from: usize) {
        self.bytes = self.bytes.saturating_sub(self.blocks.free_from(from));
    }
}

/// Returns the arena of a handle, or `Err` if the arena's blocks are checked.
///
/// # Safety
///
/// The handle is one of hw_arena_create that was not destroyed, and no other thread uses it now.
#[inline(always)]
unsafe fn of<'a>(arena: *mut Arena) -> Result<&'a mut Library, &'a mut Checked> {
    // SAFETY: by the contract the handle leads to an arena, which no other thread uses now.
    let whole = unsafe { &mut *arena.cast::<Whole>() };
    match &mut whole.checked {
        Some(checked) => Err(checked),
        None => Ok(&mut whole.arena),
    }
}

/// Makes an arena that takes at most limit bytes of memory; 0 is no limit. Takes no
/// memory for blocks yet.
///
/// Returns NULL with errno ENOMEM if there is no memory.
#[unsafe(no_mangle)]
pub extern "C" fn hw_arena_create(limit: usize) -> *mut Arena {
    let at: *mut Whole = heap::malloc_aligned(size_of::<Whole>(), align_of::<Whole>()).cast();
    if at.is_null() {
        return errno::fail(libc::ENOMEM).cast();
    }
    let arena = if limit == 0 { Library::new() } else { Library::with_limit(limit) };
    let blocks = Owned::new(Owner::Arena);
    let checked = heap::debugging().then_some(Checked { blocks, bytes: 0, limit });
    // SAFETY: `at` has room for the record, and only this call knows it.
    unsafe { at.write(Whole { arena, checked }) };
    at.cast()
}

/// Gives size bytes, aligned to 16, uninitialised. They live until the arena is
/// reset, rewound to before them, or destroyed.
///
/// Returns NULL with errno ENOMEM if there is no memory or the limit is reached.
///
/// # Safety
///
/// arena is an arena of hw_arena_create that was not destroyed, and this thread's now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_arena_alloc(arena: *mut Arena, size: usize) -> *mut c_void {
    // SAFETY: as the caller promises.
    unsafe { hw_arena_alloc_aligned(arena, size, NATURAL) }
}

/// Like hw_arena_alloc, at a multiple of alignment, which is a power of two.
///
/// Returns NULL with errno EINVAL if alignment is no power of two, ENOMEM if there is no memory or
/// the limit is reached.
///
/// # Safety
///
/// arena is an arena of hw_arena_create that was not destroyed, and this thread's now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_arena_alloc_aligned(
    arena: *mut Arena,
    size: usize,
    alignment: usize,
) -> *mut c_void {
    if !alignment.is_power_of_two() {
        return errno::fail(libc::EINVAL);
    }
    let Ok(layout) = Layout::from_size_align(size, alignment) else {
        return errno::fail(libc::ENOMEM);
    };
    // SAFETY: as the caller promises.
    let arena = match unsafe { of(arena) } {
        Ok(arena) => arena,
        Err(checked) => return checked.allocate(layout),
    };
    match arena.try_alloc_layout(layout) {
        Ok(block) => block.as_ptr().cast(),
        Err(_) => errno::fail(libc::ENOMEM),
    }
}

/// Changes the size of a block of at least hw_arena_alloc's alignment from old_size to size bytes.
/// The block stays in place if it is the last block made, or if it shrinks. Otherwise its bytes
/// move to a new block. A NULL block makes a new block.
///
/// Returns NULL with errno ENOMEM if there is no memory; the block is as it was.
///
/// # Safety
///
/// arena is an arena of hw_arena_create that was not destroyed, and this thread's now; block is
/// NULL or a block of this arena of old_size bytes. Afterwards only the returned block is used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_arena_resize(
    arena: *mut Arena,
    block: *mut c_void,
    old_size: usize,
    size: usize,
) -> *mut c_void {
    let Some(at) = NonNull::new(block.cast::<u8>()) else {
        // SAFETY: as the caller promises.
        return unsafe { hw_arena_alloc(arena, size) };
    };
    let Ok(old) = Layout::from_size_align(old_size, NATURAL) else {
        return errno::fail(libc::ENOMEM);
    };
    // SAFETY: as the caller promises.
    let arena = match unsafe { of(arena) } {
        Ok(arena) => arena,
        Err(checked) => {
            let Ok(layout) = Layout::from_size_align(size, NATURAL) else {
                return errno::fail(libc::ENOMEM);
            };
            let new = checked.allocate(layout);
            if !new.is_null() {
                let both = old_size.min(size);
                // SAFETY: both blocks have `both` bytes, and only this call knows the new one.
                unsafe { core::ptr::copy_nonoverlapping(at.as_ptr(), new.cast(), both) };
                checked.free(at.as_ptr(), old_size);
            }
            return new;
        }
    };
    // SAFETY: as the caller promises; a size that is too large is refused.
    match unsafe { arena.resize(at, old, size) } {
        Some(block) => block.as_ptr().cast(),
        None => errno::fail(libc::ENOMEM),
    }
}

/// Gives a block of size bytes back. Its memory is used again if it was the last block made. NULL
/// is ignored.
///
/// # Safety
///
/// arena is an arena of hw_arena_create that was not destroyed, and this thread's now; block is
/// NULL or a block of this arena of size bytes, and not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_arena_free(arena: *mut Arena, block: *mut c_void, size: usize) {
    if let Some(block) = NonNull::new(block.cast()) {
        // SAFETY: as the caller promises.
        match unsafe { of(arena) } {
            // SAFETY: as the caller promises.
            Ok(arena) => unsafe { arena.free(block, size) },
            Err(checked) => checked.free(block.as_ptr(), size),
        }
    }
}

/// Returns an arena's position, for hw_arena_rewind.
///
/// # Safety
///
/// arena is an arena of hw_arena_create that was not destroyed, and this thread's now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_arena_mark(arena: *mut Arena) -> ArenaMark {
    // SAFETY: as the caller promises.
    match unsafe { of(arena) } {
        Ok(arena) => {
            let (position, chunk) = arena.mark().into_parts();
            ArenaMark { position: position.cast(), chunk }
        }
        Err(checked) => {
            ArenaMark { position: core::ptr::null_mut(), chunk: checked.blocks.count() }
        }
    }
}

/// Frees exactly the blocks made since a mark.
///
/// # Safety
///
/// arena is an arena of hw_arena_create that was not destroyed, and this thread's now. mark is a
/// mark of this arena. Since the mark the arena was neither reset, nor trimmed, nor rewound to an
/// earlier position. Blocks made since then are not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_arena_rewind(arena: *mut Arena, mark: ArenaMark) {
    // SAFETY: as the caller promises.
    match unsafe { of(arena) } {
        Ok(arena) => {
            let mark = Mark::from_parts(mark.position.cast(), mark.chunk);
            // SAFETY: as the caller promises.
            unsafe { arena.rewind(mark) };
        }
        Err(checked) => checked.free_from(mark.chunk),
    }
}

/// Frees all blocks and keeps the memory for later blocks.
///
/// # Safety
///
/// arena is an arena of hw_arena_create that was not destroyed, and this thread's
/// now. Blocks of it are not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_arena_reset(arena: *mut Arena) {
    // SAFETY: as the caller promises.
    match unsafe { of(arena) } {
        Ok(arena) => arena.reset(),
        Err(checked) => checked.free_from(0),
    }
}

/// Gives the memory behind the blocks in use to the kernel, now. Returns its bytes.
///
/// # Safety
///
/// arena is an arena of hw_arena_create that was not destroyed, and this thread's now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_arena_trim(arena: *mut Arena) -> usize {
    // SAFETY: as the caller promises.
    unsafe { of(arena) }.map_or(0, Library::trim)
}

/// Writes an arena's size to *out, which is size bytes: pass sizeof(hw_arena_statistics). A smaller
/// struct gets the fields that it has. A larger struct gets zeros behind the fields that this
/// library knows.
///
/// Returns how many bytes of the struct this library knows. Returns 0 with errno EINVAL for a size
/// of 0 or beyond 64 KiB.
///
/// # Safety
///
/// arena is an arena of hw_arena_create that was not destroyed, and this thread's
/// now; out points to size bytes that can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_arena_stats(
    arena: *mut Arena,
    out: *mut ArenaStatistics,
    size: usize,
) -> usize {
    // SAFETY: as the caller promises.
    let (used, reserved) = match unsafe { of(arena) } {
        Ok(arena) => (arena.used_bytes(), arena.reserved_bytes()),
        Err(checked) => (checked.bytes, checked.bytes),
    };
    let now = ArenaStatistics { used_bytes: used as u64, reserved_bytes: reserved as u64 };
    // SAFETY: `now` is words without padding, and the caller's struct has `size` bytes.
    unsafe { write_known(&now, out, size) }
}

/// Gives back an arena and every block in it. NULL is ignored.
///
/// # Safety
///
/// arena is NULL or an arena of hw_arena_create that was not destroyed. It and
/// its blocks are not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_arena_destroy(arena: *mut Arena) {
    if arena.is_null() {
        return;
    }
    // SAFETY: as the caller promises.
    if let Err(checked) = unsafe { of(arena) } {
        checked.free_from(0);
    }
    let whole = arena.cast::<Whole>();
    // SAFETY: as the caller promises.
    unsafe { whole.drop_in_place() };
    // SAFETY: `hw_arena_create` allocated the block, and its contents are dropped.
    unsafe { heap::free(whole.cast()) };
}
