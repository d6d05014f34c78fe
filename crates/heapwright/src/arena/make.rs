//! Values, slices and strings in the memory of any arena.
//!
//! ```text
//!   methods   the public names              ArenaVec, ArenaString
//!       |                                           |
//!     make    room, make, write; note the value if the memory drops values
//!       |
//!    Memory   place, resize, give           Core, SharedArena, and Dropping, which notes values
//! ```
//!
//! Most functions take the room before they call the program's code. So the closure or iterator may
//! allocate from the same arena, or panic.

#![allow(clippy::mut_from_ref, reason = "each makes memory that nobody else has")]

use core::alloc::Layout;
use core::fmt::{self, Write};
use core::mem::{self, MaybeUninit};
use core::ptr::NonNull;
use core::{slice, str};

use super::buffer::Buffer;
use super::methods::no_room;
use crate::refused::{IN_REGISTERS, Refused};

/// The memory of an arena.
///
/// # Safety
///
/// A block of [`Memory::place`] has its layout. The block stays valid and belongs to the caller
/// alone while the memory is borrowed, or until it is given back.
pub(crate) unsafe trait Memory {
    /// The note of a slice of values to drop.
    type Note;

    /// Returns a block, or `None` if there is no memory or the limit is reached.
    fn place(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// Returns a block of the current chunk, if it has room.
    fn place_here(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// Changes a block's size in place. False if the block must move.
    ///
    /// # Safety
    ///
    /// The block is this memory's and the caller's, and has `old` bytes. `new` is at most
    /// `isize::MAX`.
    unsafe fn resize(&self, block: NonNull<u8>, old: usize, new: usize) -> bool;

    /// Frees a block. Its memory is reused if it is the last block.
    ///
    /// # Safety
    ///
    /// The block is this memory's and the caller's, has `size` bytes, and is not used any more.
    unsafe fn give(&self, block: NonNull<u8>, size: usize);

    /// Returns the layout of a value with its note.
    #[inline(always)]
    fn layout<T>() -> Layout {
        Layout::new::<T>()
    }

    /// Returns the place of the value in a block of [`Memory::layout`].
    #[inline(always)]
    fn inside<T>(block: NonNull<u8>) -> NonNull<T> {
        block.cast()
    }

    /// Notes that the value in a block of [`Memory::layout`] is written.
    ///
    /// # Safety
    ///
    /// The block is this memory's, and a value was just written at [`Memory::inside`]. No other
    /// code drops it.
    #[inline(always)]
    unsafe fn written<T>(&self, _block: NonNull<u8>) {}

    /// Takes room for a slice's note, before its elements are made. `None` if there is no memory.
    fn note<T>(&self) -> Option<Self::Note>;

    /// Notes that elements are written.
    ///
    /// # Safety
    ///
    /// The note is of [`Memory::note`] for this type, and is used once. `count` elements from
    /// `first` on lie in this memory and are written. No other code drops them.
    unsafe fn written_slice<T>(&self, note: Self::Note, first: NonNull<T>, count: usize);

    /// Returns a block of the layout `new` with the bytes of `block`, maybe the same block. `None`
    /// if there is no memory. Then the block is unchanged.
    ///
    /// # Safety
    ///
    /// The block is this memory's and the caller's, and has the layout `old`.
    #[inline]
    unsafe fn move_to(&self, block: NonNull<u8>, old: Layout, new: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the caller promises that the block is its own and has the old size.
        let stays = || unsafe { self.resize(block, old.size(), new.size()) };
        if block.addr().get().is_multiple_of(new.align()) && stays() {
            return Some(block);
        }
        let moved = self.place(new)?;
        let kept = old.size().min(new.size());
        // SAFETY: both blocks have `kept` bytes, and the new one overlaps no other block.
        unsafe { block.copy_to_nonoverlapping(moved, kept) };
        Some(moved)
    }
}

#[inline(always)]
pub(super) fn room<M: Memory>(memory: &M, layout: Layout) -> NonNull<u8> {
    match memory.place_here(layout) {
        Some(block) => block,
        None => room_cold(memory, layout),
    }
}

#[cold]
#[inline(never)]
fn room_cold<M: Memory>(memory: &M, layout: Layout) -> NonNull<u8> {
    memory.place(layout).unwrap_or_else(|| no_room())
}

/// Writes a value to a block and notes it.
///
/// # Safety
///
/// The block is `memory`'s and has the value's [`Memory::layout`]. No other code has the block.
#[inline(always)]
unsafe fn put<M: Memory, T>(memory: &M, block: NonNull<u8>, value: T) -> &mut T {
    let mut at = M::inside::<T>(block);
    // SAFETY: the caller promises room for the value that no other code has.
    unsafe { at.write(value) };
    // SAFETY: the value was just written, and the returned reference does not drop it.
    unsafe { memory.written::<T>(block) };
    // SAFETY: the value is written, and no other code has it while the memory is borrowed.
    unsafe { at.as_mut() }
}

#[inline(always)]
pub(super) fn value<M: Memory, T>(memory: &M, value: T) -> &mut T {
    let block = match memory.place_here(M::layout::<T>()) {
        Some(block) => block,
        None if size_of::<T>() <= IN_REGISTERS => return value_cold(memory, value),
        None => room_cold(memory, M::layout::<T>()),
    };
    // SAFETY: the block has this layout, and no other code has it.
    unsafe { put(memory, block, value) }
}

/// A tail call of `value`, for a value in registers, so that the fast path saves no registers.
#[cold]
#[inline(never)]
fn value_cold<M: Memory, T>(memory: &M, value: T) -> &mut T {
    let block = room_cold(memory, M::layout::<T>());
    // SAFETY: the block has this layout, and no other code has it.
    unsafe { put(memory, block, value) }
}

#[inline]
pub(super) fn try_value<M: Memory, T>(memory: &M, value: T) -> Result<&mut T, Refused<T>> {
    match memory.place(M::layout::<T>()) {
        // SAFETY: the block has this layout, and no other code has it.
        Some(block) => Ok(unsafe { put(memory, block, value) }),
        None => Err(Refused(value)),
    }
}

#[inline(always)]
pub(super) fn with<M: Memory, T>(memory: &M, make: impl FnOnce() -> T) -> &mut T {
    let block = room(memory, M::layout::<T>());
    // SAFETY: the block has this layout, and no other code has it.
    unsafe { put(memory, block, make()) }
}

#[inline(always)]
pub(super) fn try_with<M: Memory, T>(
    memory: &M,
    make: impl FnOnce() -> T,
) -> Result<&mut T, Refused<()>> {
    let block = memory.place(M::layout::<T>()).ok_or(Refused(()))?;
    // SAFETY: the block has this layout, and no other code has it.
    Ok(unsafe { put(memory, block, make()) })
}

/// A value of up to this number of bytes moves out of its `Result`. A larger value stays where it
/// was made, unless it needs a note.
const MOVED: usize = 64;

/// Makes a value in room that `take` returns for its layout. Gives the room back if `make` fails.
#[inline(always)]
pub(super) fn fallible<M: Memory, T, E>(
    memory: &M,
    take: impl FnOnce(Layout) -> Option<NonNull<u8>>,
    make: impl FnOnce() -> Result<T, E>,
) -> Option<Result<&mut T, E>> {
    if size_of::<T>() > MOVED && M::layout::<T>().size() == size_of::<T>() {
        let layout = Layout::new::<Result<T, E>>();
        let block = take(layout)?;
        let mut made = block.cast::<Result<T, E>>();
        // SAFETY: the block has this layout, and no other code has it.
        unsafe { made.write(make()) };
        // SAFETY: the result was just written.
        if let Some(mut value) = unsafe { made.as_mut() }.as_mut().ok().map(NonNull::from) {
            // SAFETY: the value is written, and no other code has it while the memory is borrowed.
            return Some(Ok(unsafe { value.as_mut() }));
        }
        // SAFETY: the result was written, and is read once.
        let made = unsafe { made.read() };
        // SAFETY: the block was just taken, and its value is moved out.
        unsafe { memory.give(block, layout.size()) };
        return made.err().map(Err);
    }
    let layout = M::layout::<T>();
    let block = take(layout)?;
    match make() {
        // SAFETY: the block has this layout, and no other code has it.
        Ok(value) => Some(Ok(unsafe { put(memory, block, value) })),
        Err(error) => {
            // SAFETY: the block was just taken, and nothing was written to it.
            unsafe { memory.give(block, layout.size()) };
            Some(Err(error))
        }
    }
}

#[inline(always)]
fn room_for<M: Memory, T>(memory: &M, length: usize) -> Result<NonNull<T>, Refused<()>> {
    let layout = Layout::array::<T>(length).map_err(|_| Refused(()))?;
    Ok(memory.place(layout).ok_or(Refused(()))?.cast())
}

#[inline]
pub(super) fn uninit<M: Memory, T>(memory: &M) -> Result<&mut MaybeUninit<T>, Refused<()>> {
    let block = memory.place(Layout::new::<T>()).ok_or(Refused(()))?;
    // SAFETY: the block has this layout, and no other code has it; any bytes are valid.
    Ok(unsafe { block.cast().as_mut() })
}

#[inline]
pub(super) fn uninit_slice<M: Memory, T>(
    memory: &M,
    length: usize,
) -> Result<&mut [MaybeUninit<T>], Refused<()>> {
    let first = room_for::<_, MaybeUninit<T>>(memory, length)?;
    // SAFETY: the room is for this many elements, and no other code has it; any bytes are valid.
    Ok(unsafe { slice::from_raw_parts_mut(first.as_ptr(), length) })
}

#[inline]
pub(super) fn copy<'a, M: Memory, T: Copy>(
    memory: &'a M,
    from: &[T],
) -> Result<&'a mut [T], Refused<()>> {
    let first = memory.place(Layout::for_value(from)).ok_or(Refused(()))?.cast::<T>();
    // SAFETY: the memory has the slice's layout, and no other code has it.
    unsafe { first.as_ptr().copy_from_nonoverlapping(from.as_ptr(), from.len()) };
    // SAFETY: all elements were just written.
    Ok(unsafe { slice::from_raw_parts_mut(first.as_ptr(), from.len()) })
}

#[inline]
pub(super) fn text<'a, M: Memory>(memory: &'a M, from: &str) -> Result<&'a mut str, Refused<()>> {
    let bytes = copy(memory, from.as_bytes())?;
    // SAFETY: the bytes are a copy of a string, so they are UTF-8.
    Ok(unsafe { str::from_utf8_unchecked_mut(bytes) })
}

#[inline]
pub(super) fn clone<'a, M: Memory, T: Clone>(
    memory: &'a M,
    from: &[T],
) -> Result<&'a mut [T], Refused<()>> {
    let mut row = Row::new(memory, from.len())?;
    for value in from {
        // SAFETY: the row has room for as many elements as the slice.
        unsafe { row.write(value.clone()) };
    }
    Ok(row.finish())
}

/// A slice that is being made. Its drop notes the elements made so far, even during a panic.
struct Row<'a, M: Memory, T> {
    memory: &'a M,
    note: Option<M::Note>,
    first: NonNull<T>,
    count: usize,
}

impl<'a, M: Memory, T> Row<'a, M, T> {
    #[inline(always)]
    fn new(memory: &'a M, length: usize) -> Result<Self, Refused<()>> {
        let note = memory.note::<T>().ok_or(Refused(()))?;
        Ok(Self { memory, note: Some(note), first: room_for(memory, length)?, count: 0 })
    }

    /// Writes the next element.
    ///
    /// # Safety
    ///
    /// The room is for more elements than `count`.
    #[inline(always)]
    unsafe fn write(&mut self, value: T) {
        // SAFETY: the caller promises that this element is in the room.
        let at = unsafe { self.first.add(self.count) };
        // SAFETY: no other code has the room.
        unsafe { at.write(value) };
        self.count += 1;
    }

    #[inline(always)]
    fn finish(self) -> &'a mut [T] {
        let (first, count) = (self.first, self.count);
        drop(self);
        // SAFETY: this many elements are written, and no other code has them.
        unsafe { slice::from_raw_parts_mut(first.as_ptr(), count) }
    }
}

impl<M: Memory, T> Drop for Row<'_, M, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(note) = self.note.take() {
            // SAFETY: this many elements are written, and only the memory may drop them.
            unsafe { self.memory.written_slice(note, self.first, self.count) };
        }
    }
}

#[inline]
pub(super) fn fill<M: Memory, T>(
    memory: &M,
    length: usize,
    mut make: impl FnMut(usize) -> T,
) -> Result<&mut [T], Refused<()>> {
    let mut row = Row::new(memory, length)?;
    for at in 0..length {
        // SAFETY: the row has room for `length` elements.
        unsafe { row.write(make(at)) };
    }
    Ok(row.finish())
}

/// Fills a slice with results. At an error, gives the room back if no element needs dropping.
#[inline]
pub(super) fn fill_fallible<M: Memory, T, E>(
    memory: &M,
    from: impl IntoIterator<Item = Result<T, E>, IntoIter: ExactSizeIterator>,
) -> Result<Result<&mut [T], E>, Refused<()>> {
    let from = from.into_iter();
    let length = from.len();
    let mut row = Row::new(memory, length)?;
    for made in from.take(length) {
        match made {
            // SAFETY: the row has room for `length` elements.
            Ok(value) => unsafe { row.write(value) },
            Err(error) => {
                let first = row.first;
                drop(row);
                if !mem::needs_drop::<T>() {
                    // SAFETY: the room is of this size, and no code uses it any more.
                    unsafe { memory.give(first.cast(), length * size_of::<T>()) };
                }
                return Ok(Err(error));
            }
        }
    }
    Ok(Ok(row.finish()))
}

#[inline]
pub(super) fn fill_iter<M: Memory, T>(
    memory: &M,
    from: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
) -> Result<&mut [T], Refused<()>> {
    let from = from.into_iter();
    let length = from.len();
    let mut row = Row::new(memory, length)?;
    for value in from.take(length) {
        // SAFETY: the row has room for `length` elements.
        unsafe { row.write(value) };
    }
    Ok(row.finish())
}

#[inline]
pub(super) fn iter<M: Memory, T>(
    memory: &M,
    from: impl IntoIterator<Item = T>,
) -> Result<&mut [T], Refused<()>> {
    let note = memory.note::<T>().ok_or(Refused(()))?;
    let from = from.into_iter();
    // If the buffer is the last block, as it usually is, excess room goes back.
    let guess = (256 / size_of::<T>().max(1)).max(from.size_hint().0);
    let mut buffer = Buffer::with_capacity(memory, guess).unwrap_or_else(|_| Buffer::new(memory));
    buffer.extend(from)?;
    let (first, count) = buffer.into_parts();
    // SAFETY: the buffer wrote this many elements, and no longer drops them.
    unsafe { memory.written_slice(note, first, count) };
    // SAFETY: the elements are written, and no other code has them.
    Ok(unsafe { slice::from_raw_parts_mut(first.as_ptr(), count) })
}

pub(super) struct Text<'a, M: Memory> {
    pub(super) bytes: Buffer<'a, M, u8>,
    is_full: bool,
}

impl<M: Memory> Write for Text<'_, M> {
    #[inline]
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        self.bytes.copy(piece.as_bytes()).map_err(|_| {
            self.is_full = true;
            fmt::Error
        })
    }
}

/// Formats into a buffer in the arena.
///
/// # Panics
///
/// If a `Display` of the program fails while there is memory.
pub(super) fn format<'a, M: Memory>(
    memory: &'a M,
    what: fmt::Arguments<'_>,
) -> Result<Buffer<'a, M, u8>, Refused<()>> {
    let mut text = Text { bytes: Buffer::new(memory), is_full: false };
    match text.write_fmt(what) {
        Ok(()) => Ok(text.bytes),
        Err(_) if text.is_full => Err(Refused(())),
        Err(_) => panic!("a formatting trait returned an error"),
    }
}

#[inline]
pub(super) fn formatted<'a, M: Memory>(
    memory: &'a M,
    what: fmt::Arguments<'_>,
) -> Result<&'a mut str, Refused<()>> {
    if let Some(fixed) = what.as_str() {
        return text(memory, fixed);
    }
    let (first, count) = format(memory, what)?.into_parts();
    // SAFETY: the buffer wrote this many bytes, and no other code has them.
    let bytes = unsafe { slice::from_raw_parts_mut(first.as_ptr(), count) };
    // SAFETY: the bytes are a row of whole strings, so they are UTF-8.
    Ok(unsafe { str::from_utf8_unchecked_mut(bytes) })
}
