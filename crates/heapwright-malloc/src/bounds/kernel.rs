//! The memory that system calls access, and the way a call is made after a finding.
//!
//! ```text
//!   stat(path, to)   looked_at   checks path and to; no finding: the real function
//!                    in_spite    the same checks again. A failed check now makes a copy or lifts
//!                                guard pages, and reports nothing:
//!                                  path     a copy is passed, with an end behind the block's bytes
//!                                  to       a copy is passed; the part that fits is copied back
//!                                longer memory is passed itself: its guard pages are lifted
//!                                the real function
//!                                the guard pages are put back
//! ```
//!
//! A limit may exceed the block although the function writes no more than the block has (`fgets`,
//! `read`). So [`Room::judge`] compares the result with the block after the call.
//!
//! The kernel must not meet a guard page: it would answer `EFAULT`. Behind a block the kernel reads
//! zeros, and its writes there are dropped after the call. So no path or struct depends on the
//! debug heap's bytes behind the block.
//!
//! **Foreign memory.** The kernel refuses an invalid pointer; the check does not. The checks read
//! lengths and lists of parts themselves, after [`is_there`] has found them readable.
//!
//! **Anywhere.** Signal handlers make these calls, and so does code between `vfork` and `exec`. So
//! nothing here allocates, and guard pages are lifted only if no call of the heap was interrupted.

use super::{Access, bounded};
use crate::errno;
use core::cell::Cell;
use heapwright::heap;
use heapwright::limit::is_in_sandbox;
use libc::{c_char, c_int};

/// The most ranges whose guard pages are lifted for one call.
const RANGES: usize = 16;
/// The most bytes of all copies for one call, and the most copies. (Longer memory is not copied:
/// its guard pages are lifted.)
const BYTES: usize = 512;
const COPIED: usize = 4;
const ALIGN: usize = 16;
/// For a string of unknown length, guard pages are lifted up to the kernel's limit for a path.
#[cfg(heapwright_reads)]
const PATH: usize = 4096;

/// The effect of a failed check.
#[derive(Clone, Copy)]
pub(super) enum Stage<'a> {
    Look(&'a Cell<bool>),
    GoThrough(&'a Room),
}

impl Stage<'_> {
    pub(super) fn refuse(self, name: &'static str, access: Access, address: usize, bytes: usize) {
        match self {
            Self::Look(is_wrong) => {
                is_wrong.set(true);
                heap::out_of_bounds(name, access, address, bytes);
            }
            Self::GoThrough(room) => room.lift(address, bytes),
        }
    }
}

/// The copies and lifted guard pages with which a call is made.
#[repr(align(16))]
pub(super) struct Room {
    /// Ranges whose guard pages are lifted: address and bytes.
    lifted: [Cell<(usize, usize)>; RANGES],
    /// The memory that is copied for the call, and the copies' bytes.
    copied: [Cell<Copied>; COPIED],
    bytes: [Cell<u8>; BYTES],
    used: Cell<usize>,
    limit: Cell<Option<Limit>>,
}

/// The meaning of a function's result: the bytes that the function has written.
#[derive(Clone, Copy)]
pub(super) enum Filled {
    Bytes,
    /// The result counts objects of this size.
    Items(usize),
    /// The function has written a string and its end, unless the result is null or an error.
    Text,
    Wide,
}

/// A limit beyond the block that is written to.
#[derive(Clone, Copy)]
struct Limit {
    to: *mut u8,
    bytes: usize,
    filled: Filled,
}

#[derive(Clone, Copy)]
struct Copied {
    from: *mut u8,
    /// Bytes of the copy, or 0 if this entry is unused.
    bytes: usize,
    /// The copy's index in `Room::bytes`.
    start: usize,
    /// Bytes that are copied back after the call.
    written: usize,
    is_text: bool,
}

impl Copied {
    const NOTHING: Self =
        Self { from: core::ptr::null_mut(), bytes: 0, start: 0, written: 0, is_text: false };
}

impl Room {
    #[cold]
    #[inline(never)]
    pub(super) fn new() -> Self {
        Self {
            lifted: [const { Cell::new((0, 0)) }; RANGES],
            copied: [const { Cell::new(Copied::NOTHING) }; COPIED],
            bytes: [const { Cell::new(0) }; BYTES],
            used: Cell::new(0),
            limit: Cell::new(None),
        }
    }

    /// Compares a limit with the call's result, and reports a mistake.
    #[inline(never)]
    pub(super) fn judge<R>(&self, name: &'static str, result: &R) {
        let Some(Limit { to, bytes, filled }) = self.limit.get() else { return };
        let word = match size_of::<R>() {
            // SAFETY: the result is a word, an integer or a pointer.
            8 => unsafe { core::mem::transmute_copy::<R, i64>(result) },
            // SAFETY: the result is an integer.
            4 => i64::from(unsafe { core::mem::transmute_copy::<R, i32>(result) }),
            _ => 0,
        };
        let (at, most) = (to.cast_const(), bytes);
        let count = usize::try_from(word).unwrap_or(0);
        let wrote = match filled {
            // (With `MSG_TRUNC` the result may be larger than the limit.)
            Filled::Bytes => count.min(bytes),
            Filled::Items(size) => count.saturating_mul(size),
            Filled::Text | Filled::Wide if word == 0 || word == -1 => 0,
            Filled::Text => super::text::length(at.cast::<c_char>(), most).saturating_add(1),
            Filled::Wide => {
                let wide = size_of::<libc::wchar_t>();
                let characters = super::text::length(at.cast::<libc::wchar_t>(), most / wide);
                characters.saturating_add(1).saturating_mul(wide)
            }
        };
        let name = super::plain_name(name);
        if wrote > heap::room(to.addr()) {
            heap::out_of_bounds(name, Access::Write, to.addr(), wrote);
        } else if heap::checks_limits() {
            heap::out_of_bounds(name, Access::Limit, to.addr(), bytes);
        }
    }

    fn lift(&self, address: usize, bytes: usize) {
        if let Some(free) = self.lifted.iter().find(|range| range.get().1 == 0)
            && heap::lift_guards(address, bytes)
        {
            free.set((address, bytes));
        }
    }

    /// After the call: copies bytes back, and restores guard pages.
    #[inline(never)]
    pub(super) fn put_back(&self) {
        for Copied { from, start, written, .. } in self.copied.iter().map(Cell::get) {
            for at in 0..written {
                // SAFETY: the block had `written` bytes from here on when the call began.
                unsafe { from.wrapping_add(at).write(self.bytes[start + at].get()) };
            }
        }
        for (address, bytes) in self.lifted.iter().map(Cell::get).filter(|range| range.1 > 0) {
            heap::put_guards_back(address, bytes);
        }
    }

    /// Copies the `left` bytes that the block has at `from`, with zeros behind them, up to `bytes`.
    /// After a write the `left` bytes are copied back. Without an `access`, the bytes are a string.
    /// Returns false without room for a copy, or if the block has more bytes (poisoned ones, say).
    #[inline(never)]
    fn copy(&self, from: *mut u8, left: usize, bytes: usize, access: Option<Access>) -> bool {
        let (start, is_there) = (self.used.get(), heap::poisoned_bytes(from.addr() + left, 1));
        let free = self.copied.iter().find(|copy| copy.get().bytes == 0);
        let to = self.bytes[start..].get(..bytes);
        let (Some(free), Some(to), false) = (free, to, is_there == Some(1)) else { return false };
        for (at, to) in to[..left].iter().enumerate() {
            // SAFETY: the block has `left` bytes from here on.
            to.set(unsafe { from.wrapping_add(at).read() });
        }
        self.used.set((start + bytes).next_multiple_of(ALIGN).min(BYTES));
        let written = if matches!(access, Some(Access::Write)) { left } else { 0 };
        free.set(Copied { from, bytes, start, written, is_text: access.is_none() });
        true
    }

    /// The argument for the real function: the copy's address if the memory was copied.
    #[inline(always)]
    pub(super) fn pass<T: Copy>(&self, argument: T) -> T {
        if size_of::<T>() != size_of::<usize>() {
            return argument;
        }
        // SAFETY: the argument is a word, an integer or a pointer, and is read as an address.
        let word = unsafe { core::mem::transmute_copy::<T, usize>(&argument) };
        let is_read = core::any::type_name::<T>().starts_with("*const");
        let Some(copy) = self.copy_of(word, is_read) else { return argument };
        // SAFETY: the argument is the address of copied memory, so its type is a pointer's.
        unsafe { core::mem::transmute_copy::<*mut u8, T>(&copy) }
    }

    /// Returns the copy of the memory at an address. A string's copy replaces only an argument that
    /// the kernel reads: `readlink(p, p, n)` reads one argument and writes the other.
    #[inline(never)]
    fn copy_of(&self, address: usize, is_read: bool) -> Option<*mut u8> {
        let is_it = |copy: &Copied| {
            copy.bytes > 0 && copy.from.addr() == address && (is_read || !copy.is_text)
        };
        let copies = || self.copied.iter().map(Cell::get).filter(is_it);
        // If the call reads and writes the memory, both arguments get the copy that is copied back.
        let copy = copies().find(|copy| copy.written > 0).or_else(|| copies().next())?;
        Some(self.bytes[copy.start].as_ptr())
    }
}

impl<const READS: bool> super::Glance<READS> {
    #[inline(always)]
    pub(super) fn fills_up_to<T>(self, to: *mut T, bytes: usize, _filled: Filled) -> bool {
        self.writes(to, bytes)
    }

    #[inline(always)]
    pub(super) fn names(self, path: *const c_char) -> bool {
        self.reads_text(path, usize::MAX)
    }

    #[cfg(heapwright_reads)]
    #[inline(always)]
    pub(super) fn fills_said<T>(self, to: *mut T, length: *mut libc::socklen_t) -> bool {
        !READS || to.is_null() && length.is_null()
    }

    #[inline(always)]
    pub(super) fn fills_peer<T>(self, to: *mut T, _length: *mut libc::socklen_t) -> bool {
        !READS || to.is_null()
    }

    #[inline(always)]
    pub(super) fn receives<T>(self, to: *mut T, n: usize, _socket: c_int, _flags: c_int) -> bool {
        self.writes(to, n)
    }
}

impl<const READS: bool> super::Check<'_, READS> {
    /// The function will write at most `bytes` bytes to `to`.
    #[inline(always)]
    pub(super) fn fills_up_to<T>(self, to: *mut T, bytes: usize, filled: Filled) {
        let left = heap::room(to.addr());
        if bytes <= left {
            return;
        }
        // (If `left` is 0, no live block is here, and any write is wrong.)
        if !READS || left == 0 || !heap::debugging() {
            return self.refuse(Access::Write, to.addr(), bytes);
        }
        match self.stage {
            Stage::Look(is_wrong) => is_wrong.set(true),
            Stage::GoThrough(room) => {
                room.limit.set(Some(Limit { to: to.cast(), bytes, filled }));
                room.lift(to.addr(), bytes);
            }
        }
    }

    /// The kernel will read the string at `path`, with its end.
    #[inline(never)]
    pub(super) fn names(self, path: *const c_char) {
        if let Stage::GoThrough(room) = self.stage
            && let Some(left) = bounded(path)
            && super::text::length(path, left) == left
            && room.copy(path.cast_mut().cast(), left, left + 1, None)
        {
            return;
        }
        self.reads_text(path, usize::MAX);
    }

    /// The kernel will write at most `*length` bytes to `to`, and the full number to `*length`.
    #[inline(always)]
    pub(super) fn fills_said<T>(self, to: *mut T, length: *mut libc::socklen_t) {
        #[cfg(heapwright_reads)]
        if READS {
            self.fills_bytes(length, size_of::<libc::socklen_t>());
            if !to.is_null() && is_there(length, size_of::<libc::socklen_t>()) {
                // SAFETY: the length can be read, and the kernel reads it next.
                self.fills_bytes(to, unsafe { length.read_unaligned() } as usize);
            }
        }
        let _ = (to, length);
    }

    /// As [`fills_said`](Self::fills_said). Without memory for the peer's name, the kernel ignores
    /// the length.
    #[inline(always)]
    pub(super) fn fills_peer<T>(self, to: *mut T, length: *mut libc::socklen_t) {
        if !to.is_null() {
            self.fills_said(to, length);
        }
    }

    /// The kernel will write at most `n` received bytes to `to`.
    #[inline(always)]
    pub(super) fn receives<T>(self, to: *mut T, n: usize, socket: c_int, flags: c_int) {
        if n > heap::room(to.addr()) && !drops(socket, flags) {
            self.fills_up_to(to, n, Filled::Bytes);
        }
    }
}

/// Whether a socket drops the bytes that it receives: TCP does with `MSG_TRUNC`. In a sandbox the
/// kernel is not asked.
#[cold]
#[inline(never)]
fn drops(socket: c_int, flags: c_int) -> bool {
    if flags & (libc::MSG_TRUNC | libc::MSG_ERRQUEUE) != libc::MSG_TRUNC || is_in_sandbox() {
        return false;
    }
    let errno = errno::get();
    let option = |name: c_int| {
        let (mut value, mut length): (c_int, _) = (0, size_of::<c_int>() as libc::socklen_t);
        let (to, n) = (&raw mut value, &raw mut length);
        // SAFETY: the kernel writes an int, and its length.
        let got =
            unsafe { libc::syscall(libc::SYS_getsockopt, socket, libc::SOL_SOCKET, name, to, n) };
        (got == 0).then_some(value)
    };
    let is_tcp = option(libc::SO_TYPE) == Some(libc::SOCK_STREAM)
        && matches!(option(libc::SO_PROTOCOL), Some(libc::IPPROTO_TCP | libc::IPPROTO_MPTCP));
    errno::set(errno);
    is_tcp
}

#[cfg(heapwright_reads)]
pub(super) use lists::{checked, execl, execle, execlp, is_there, syscall};
#[cfg(heapwright_reads)]
pub(crate) use lists::{controls_process, exchange};

#[cfg(heapwright_reads)]
mod lists {
    use super::super::text::length;
    use super::super::{Check, Checks, Glance, Slot, copies, format::Arguments, product, programs};
    use super::*;
    use crate::sandbox;
    use core::sync::atomic::Ordering;
    use heapwright::process::is_readable;
    use heapwright_entry_reads::SLOTS;
    use libc::{c_long, c_uint, c_ulong, c_void, iovec, mmsghdr, msghdr};

    const MOST_PARTS: usize = 1024;
    /// Words of `execl` that lie in a small frame, and in larger ones.
    const FEW_WORDS: usize = 256;
    const MANY_WORDS: usize = 1024;
    const MOST_WORDS: usize = 4096;
    const PAGE: usize = 4096;
    /// Bytes above a function's own frame that belong to the frames of its callers.
    const CALLERS: usize = 64 << 10;

    /// Whether `bytes` bytes can be read: a block has them, or the kernel can read them.
    pub(crate) fn is_there<T>(from: *const T, bytes: usize) -> bool {
        if let Some(room) = bounded(from) {
            return room >= bytes;
        }
        let (first, last) = (from.addr(), from.addr().saturating_add(bytes.saturating_sub(1)));
        let here = (&raw const first).addr();
        if first.wrapping_sub(here) < CALLERS && last.wrapping_sub(here) < CALLERS {
            return last / PAGE == here / PAGE || is_readable(last & !7);
        }
        let pages = (first / PAGE + 1..=last / PAGE).map(|page| page * PAGE);
        // (The kernel reads nothing at a null pointer.)
        first >= PAGE && core::iter::once(first & !7).chain(pages).all(is_readable)
    }

    /// Checks of addresses in the window are out of line. They cost less than the system call.
    impl<const READS: bool> Glance<READS> {
        #[inline(always)]
        pub(crate) fn takes_bytes<T>(self, from: *const T, _bytes: usize) -> bool {
            heap::is_outside(from.addr())
        }

        #[inline(always)]
        pub(crate) fn fills_bytes<T>(self, to: *mut T, _bytes: usize) -> bool {
            heap::is_outside(to.addr())
        }

        #[inline(always)]
        pub(crate) fn fills<T>(self, to: *mut T) -> bool {
            heap::is_outside(to.addr())
        }

        #[inline(always)]
        pub(crate) fn takes<T>(self, from: *const T) -> bool {
            heap::is_outside(from.addr())
        }

        #[inline(always)]
        pub(crate) fn fills_list<T>(self, to: *mut T, _count: usize) -> bool {
            heap::is_outside(to.addr())
        }

        #[inline(always)]
        pub(crate) fn takes_list<T>(self, from: *const T, _count: usize) -> bool {
            heap::is_outside(from.addr())
        }

        #[inline(always)]
        pub(crate) fn reads_parts<N>(self, _parts: *const iovec, _count: N) -> bool {
            false
        }

        #[inline(always)]
        pub(crate) fn writes_parts<N>(self, _parts: *const iovec, _count: N) -> bool {
            false
        }

        #[inline(always)]
        pub(crate) fn reads_message(self, _message: *const msghdr) -> bool {
            false
        }

        #[inline(always)]
        pub(crate) fn writes_message(self, _message: *const msghdr) -> bool {
            false
        }

        #[inline(always)]
        pub(crate) fn reads_messages(self, _messages: *const mmsghdr, _count: c_uint) -> bool {
            false
        }

        #[inline(always)]
        pub(crate) fn writes_messages(self, _messages: *const mmsghdr, _count: c_uint) -> bool {
            false
        }

        #[inline(always)]
        pub(crate) fn fills_handle(self, handle: *mut c_uint) -> bool {
            heap::is_outside(handle.addr())
        }

        #[inline(always)]
        pub(crate) fn controls(self, _command: c_int, what: *mut c_void) -> bool {
            heap::is_outside(what.addr())
        }

        #[inline(always)]
        pub(crate) fn requests(self, _request: c_ulong, what: *mut c_void) -> bool {
            heap::is_outside(what.addr())
        }
    }

    impl<const READS: bool> Check<'_, READS> {
        /// The kernel will read `bytes` bytes at `from`.
        #[inline(always)]
        pub(crate) fn takes_bytes<T>(self, from: *const T, bytes: usize) {
            self.asks_for(Access::Read, from.cast_mut().cast(), bytes);
        }

        /// The kernel will write `bytes` bytes at `to`, and may read them first.
        #[inline(always)]
        pub(crate) fn fills_bytes<T>(self, to: *mut T, bytes: usize) {
            self.asks_for(Access::Write, to.cast(), bytes);
        }

        #[inline(never)]
        fn asks_for(self, access: Access, at: *mut u8, bytes: usize) {
            if heap::has_debugged_room(at.addr(), bytes) {
                return;
            }
            if let Some(left) = bounded(at)
                && left < bytes
            {
                match self.stage {
                    Stage::GoThrough(room) if room.copy(at, left, bytes, Some(access)) => {}
                    _ => self.refuse(access, at.addr(), bytes),
                }
            }
        }

        #[inline(always)]
        pub(crate) fn fills<T>(self, to: *mut T) {
            self.fills_bytes(to, size_of::<T>());
        }

        #[inline(always)]
        pub(crate) fn takes<T>(self, from: *const T) {
            self.takes_bytes(from, size_of::<T>());
        }

        #[inline(always)]
        pub(crate) fn fills_list<T>(self, to: *mut T, count: usize) {
            self.fills_bytes(to, product(count, size_of::<T>()));
        }

        #[inline(always)]
        pub(crate) fn takes_list<T>(self, from: *const T, count: usize) {
            self.takes_bytes(from, product(count, size_of::<T>()));
        }

        /// The kernel will read the pointers at `list` up to a null, and their strings.
        #[inline(never)]
        pub(crate) fn strings(self, list: *const *const c_char) {
            const STRIDE: usize = size_of::<*const c_char>();
            // (Only the calls that execute a program pass such lists.)
            crate::ending_signals::before_exec();
            for at in 0.. {
                let place = list.wrapping_add(at);
                if (at == 0 || place.addr() % PAGE < STRIDE || bounded(place).is_some())
                    && !is_there(place, STRIDE)
                {
                    self.takes_bytes(list, (at + 1) * STRIDE);
                    return;
                }
                // SAFETY: the pointer can be read, and the kernel reads it next.
                let text = unsafe { place.read_unaligned() };
                if text.is_null() {
                    return;
                }
                match self.stage {
                    Stage::Look(_) => self.reads_text(text, usize::MAX),
                    Stage::GoThrough(room)
                        if bounded(text).is_some_and(|left| length(text, left) == left) =>
                    {
                        room.lift(text.addr(), PATH)
                    }
                    Stage::GoThrough(_) => (),
                }
            }
        }

        fn accesses<T>(self, access: Access, at: *const T, bytes: usize) {
            if bytes > heap::room(at.addr()) {
                self.refuse(access, at.addr(), bytes);
            }
        }

        /// Checks each part. (The type of the count differs among the functions.)
        fn each_part(self, parts: *const iovec, count: impl TryInto<usize>, access: Access) {
            let count = count.try_into().unwrap_or(0).min(MOST_PARTS);
            let bytes = product(count, size_of::<iovec>());
            self.takes_bytes(parts, bytes);
            if !is_there(parts, bytes) {
                return;
            }
            for at in 0..count {
                // SAFETY: the part can be read, and the kernel reads it next.
                let part = unsafe { parts.wrapping_add(at).read_unaligned() };
                self.accesses(access, part.iov_base, part.iov_len);
            }
        }

        #[inline(never)]
        pub(crate) fn reads_parts(self, parts: *const iovec, count: impl TryInto<usize>) {
            self.each_part(parts, count, Access::Read);
        }

        #[inline(never)]
        pub(crate) fn writes_parts(self, parts: *const iovec, count: impl TryInto<usize>) {
            self.each_part(parts, count, Access::Write);
        }

        fn each_part_of(self, message: *const msghdr, access: Access) {
            match access {
                Access::Write => self.fills_bytes(message.cast_mut(), size_of::<msghdr>()),
                _ => self.takes_bytes(message, size_of::<msghdr>()),
            }
            if !is_there(message, size_of::<msghdr>()) {
                return;
            }
            // SAFETY: the message can be read, and the kernel reads it next.
            let message = unsafe { message.read_unaligned() };
            // (The kernel cuts a longer name.)
            let name = (message.msg_namelen as usize).min(size_of::<libc::sockaddr_storage>());
            self.accesses(access, message.msg_name, name);
            #[allow(clippy::unnecessary_cast, reason = "musl's are 32 bits wide")]
            let (count, control) = (message.msg_iovlen as usize, message.msg_controllen as usize);
            self.accesses(access, message.msg_control, control);
            self.each_part(message.msg_iov, count, access);
        }

        #[inline(never)]
        pub(crate) fn reads_message(self, message: *const msghdr) {
            self.each_part_of(message, Access::Read);
        }

        #[inline(never)]
        pub(crate) fn writes_message(self, message: *const msghdr) {
            self.each_part_of(message, Access::Write);
        }

        fn each_message(self, messages: *const mmsghdr, count: c_uint, access: Access) {
            let count = (count as usize).min(MOST_PARTS);
            let bytes = product(count, size_of::<mmsghdr>());
            self.fills_bytes(messages.cast_mut(), bytes);
            if is_there(messages, bytes) {
                (0..count)
                    .for_each(|at| self.each_part_of(messages.wrapping_add(at).cast(), access));
            }
        }

        #[inline(never)]
        pub(crate) fn reads_messages(self, messages: *const mmsghdr, count: c_uint) {
            self.each_message(messages, count, Access::Read);
        }

        #[inline(never)]
        pub(crate) fn writes_messages(self, messages: *const mmsghdr, count: c_uint) {
            self.each_message(messages, count, Access::Write);
        }

        /// `name_to_handle_at`: the handle begins with the length of the part behind its 8 bytes.
        #[inline(never)]
        pub(crate) fn fills_handle(self, handle: *mut c_uint) {
            self.fills_bytes(handle, 8);
            if is_there(handle, 8) {
                // SAFETY: the length can be read, and the kernel reads it next.
                let length = unsafe { handle.read_unaligned() } as usize;
                self.fills_bytes(handle, length.saturating_add(8));
            }
        }

        /// `fcntl`.
        #[inline(never)]
        pub(crate) fn controls(self, command: c_int, what: *mut c_void) {
            match command {
                libc::F_GETLK | libc::F_OFD_GETLK => {
                    self.fills_bytes(what, size_of::<libc::flock>())
                }
                libc::F_SETLK | libc::F_SETLKW | libc::F_OFD_SETLK | libc::F_OFD_SETLKW => {
                    self.takes_bytes(what, size_of::<libc::flock>());
                }
                // F_SETOWN_EX, F_GETOWN_EX: a kind and a number.
                15 => self.takes_bytes(what, 2 * size_of::<c_int>()),
                16 => self.fills_bytes(what, 2 * size_of::<c_int>()),
                // F_GETOWNER_UIDS; F_GET_RW_HINT, F_GET_FILE_RW_HINT; F_SET_*.
                17 => self.fills_bytes(what, 2 * size_of::<c_uint>()),
                1035 | 1037 => self.fills_bytes(what, size_of::<u64>()),
                1036 | 1038 => self.takes_bytes(what, size_of::<u64>()),
                _ => (),
            }
        }

        /// `ioctl`.
        #[inline(never)]
        pub(crate) fn requests(self, request: c_ulong, what: *mut c_void) {
            // PERF_EVENT_IOC_SET_FILTER, UI_SET_PHYS, DMA_BUF_SET_NAME (two numbers): a string.
            if matches!(request as u32, 0x4008_2406 | 0x4008_556c | 0x4008_6201 | 0x4004_6201) {
                return self.reads_text(what.cast::<c_char>(), usize::MAX);
            }
            match accessed_by(request) {
                (reads, 0) => self.takes_bytes(what, reads),
                (reads, writes) => self.fills_bytes(what, reads.max(writes)),
            }
            // SIOCGIFCONF: a length, and a pointer to as much memory.
            if request as u32 == 0x8912 && is_there(what, 16) {
                // SAFETY: both words can be read, and the kernel reads them next.
                let [length, to] = unsafe { what.cast::<[usize; 2]>().read_unaligned() };
                let to = core::ptr::without_provenance_mut::<c_void>(to);
                self.fills_bytes(to, usize::try_from(length as c_int).unwrap_or(0));
            }
        }

        /// The kernel has refused `address`. If it is out of bounds, reports it and returns true.
        fn faulted(self, address: usize) -> bool {
            let place = core::ptr::without_provenance::<u8>(address);
            let Some(room) = bounded(place) else { return false };
            if room == 0 || heap::is_guarded(address.saturating_add(room).next_multiple_of(PAGE)) {
                self.refuse(Access::Unknown, address, room.saturating_add(1));
                return true;
            }
            false
        }
    }

    /// The bytes that a request reads, and the bytes that it writes. (The numbers of old requests,
    /// for terminals and interfaces, do not contain these sizes.)
    fn accessed_by(request: c_ulong) -> (usize, usize) {
        const INT: usize = size_of::<c_int>();
        /// The kernel's `struct termios`, `struct winsize` and `struct ifreq`.
        const TERMINAL: usize = 36;
        const WINDOW: usize = 8;
        const INTERFACE: usize = 40;
        /// The kernel's `struct termio`, and `struct in6_ifreq` or three words.
        const OLD_TERMINAL: usize = 18;
        const INTERFACE_OF_IP6: usize = 24;
        let size = (request >> 16 & 0x3fff) as usize;
        match request as u32 {
            // TCGETS; TCSETS, TCSETSW, TCSETSF.
            0x5401 => (0, TERMINAL),
            0x5402..=0x5404 => (TERMINAL, 0),
            // TCGETA; TCSETA, TCSETAW, TCSETAF.
            0x5405 => (0, OLD_TERMINAL),
            0x5406..=0x5408 => (OLD_TERMINAL, 0),
            // TIOCGPGRP, TIOCOUTQ, TIOCMGET, FIONREAD, TIOCGETD, TIOCGSID; TIOCSPGRP, TIOCMBIS,
            // TIOCMBIC, TIOCMSET, TIOCPKT, FIONBIO, TIOCSETD, FIOASYNC; TIOCSTI, a character.
            0x540f | 0x5411 | 0x5415 | 0x541b | 0x5424 | 0x5429 => (0, INT),
            0x5410 | 0x5416..=0x5418 | 0x5420 | 0x5421 | 0x5423 | 0x5452 => (INT, 0),
            0x5412 => (1, 0),
            // FIBMAP, FIGETBSZ; BLKROSET, BLKROGET, BLKGETSIZE, BLKSSZGET.
            1 => (INT, INT),
            2 | 0x125e | 0x1268 => (0, INT),
            0x125d => (INT, 0),
            0x1260 => (0, size_of::<c_ulong>()),
            // TIOCGWINSZ, TIOCSWINSZ.
            0x5413 => (0, WINDOW),
            0x5414 => (WINDOW, 0),
            // FIOSETOWN, SIOCSPGRP; FIOGETOWN, SIOCGPGRP, SIOCATMARK.
            0x8901 | 0x8902 => (INT, 0),
            0x8903..=0x8905 => (0, INT),
            // SIOCGIFCONF takes a length and a pointer. Addresses of IPv6 and bridges take less
            // than an interface, which the other SIOC*, TUNSETIFF, TUNSETQUEUE and TUNGETIFF take.
            0x8912 => (0, 16),
            0x8916 | 0x8918 | 0x8936 | 0x8940 | 0x8941 => (0, INTERFACE_OF_IP6),
            0x8910..=0x8949 | 0x4004_54ca | 0x4004_54d9 | 0x8004_54d2 => (0, INTERFACE),
            // FS_IOC_GETFLAGS, FS_IOC_GETVERSION, BLKBSZGET; _SETFLAGS, _SETVERSION, BLKBSZSET;
            // ext4's versions, reservations and groups; PPS_GETCAP: the numbers state a `long`, but
            // the kernel accesses an int.
            0x8008_6601 | 0x8008_6603 | 0x8008_6605 | 0x8008_7601 | 0x8008_1270 | 0x8008_70a3 => {
                (0, INT)
            }
            0x4008_6602 | 0x4008_6604 | 0x4008_6606 | 0x4008_6607 | 0x4008_7602 | 0x4008_1271 => {
                (INT, 0)
            }
            request => match request >> 30 {
                1 => (size, 0),
                2 => (0, size),
                3 => (size, size),
                _ => (0, 0),
            },
        }
    }

    /// For calls that another module interposes: runs the checks that a line of the table (`lines`)
    /// would run. Then makes the call, even after a finding.
    pub(crate) fn checked<R>(
        function: &'static str,
        look: impl Fn(Check<'_, true>),
        call: impl Fn(Option<&Room>) -> R,
    ) -> R {
        let is_wrong = Cell::new(false);
        if matches!(super::super::asked_for(), Checks::Both) {
            look(Check { function, stage: Stage::Look(&is_wrong) });
        }
        if !is_wrong.get() {
            return call(None);
        }
        let room = Room::new();
        look(Check { function, stage: Stage::GoThrough(&room) });
        let result = call(Some(&room));
        room.put_back();
        result
    }

    /// [`checked`] for a call that reads one struct and writes another.
    pub(crate) fn exchange<T>(
        function: &'static str,
        new: *const T,
        old: *mut T,
        call: impl Fn(*const T, *mut T) -> c_int,
    ) -> c_int {
        let look = |check: Check<'_, true>| {
            check.takes(new);
            check.fills(old);
        };
        checked(function, look, |room| match room {
            None => call(new, old),
            Some(room) => call(room.pass(new), room.pass(old)),
        })
    }

    /// [`checked`] for `prctl`, whose second argument is an address or a number.
    pub(crate) fn controls_process(
        option: c_int,
        second: c_ulong,
        call: impl Fn(c_ulong) -> c_int,
    ) -> c_int {
        const NAME: usize = 16;
        let at = core::ptr::with_exposed_provenance_mut::<c_void>(second as usize);
        let look = |check: Check<'_, true>| match option {
            // (The kernel cuts a longer name.)
            libc::PR_SET_NAME => check.reads_text(at.cast::<c_char>(), NAME - 1),
            libc::PR_GET_NAME => check.fills_bytes(at, NAME),
            libc::PR_GET_TID_ADDRESS => check.fills_bytes(at, size_of::<usize>()),
            libc::PR_GET_PDEATHSIG
            | libc::PR_GET_CHILD_SUBREAPER
            | libc::PR_GET_TSC
            | libc::PR_GET_UNALIGN
            | libc::PR_GET_FPEMU
            | libc::PR_GET_FPEXC
            | libc::PR_GET_ENDIAN => check.fills_bytes(at, size_of::<c_int>()),
            _ => (),
        };
        checked("prctl", look, |room| call(room.map_or(second, |room| room.pass(second))))
    }

    type Execve = unsafe extern "C" fn(*const c_char, Strings, Strings) -> c_int;
    type Strings = *const *const c_char;

    /// `execl`: calls `execv`, through its slot, with the list's words.
    ///
    /// # Safety
    ///
    /// As the C library's, with a list of the arguments behind the path.
    pub(crate) unsafe fn execl<const READS: bool, R>(
        _: Check<'_, READS>,
        _: R,
        path: *const c_char,
        list: *mut c_void,
    ) -> c_int {
        // SAFETY: as the caller promises.
        unsafe { execute(&SLOTS.execv, path, list, false) }
    }

    /// # Safety
    ///
    /// As [`execl`].
    pub(crate) unsafe fn execlp<const READS: bool, R>(
        _: Check<'_, READS>,
        _: R,
        path: *const c_char,
        list: *mut c_void,
    ) -> c_int {
        // SAFETY: as the caller promises.
        unsafe { execute(&SLOTS.execvp, path, list, false) }
    }

    /// # Safety
    ///
    /// As [`execl`]; behind the null is the list of variables.
    pub(crate) unsafe fn execle<const READS: bool, R>(
        _: Check<'_, READS>,
        _: R,
        path: *const c_char,
        list: *mut c_void,
    ) -> c_int {
        // SAFETY: as the caller promises.
        unsafe { execute(&SLOTS.execve, path, list, true) }
    }

    /// Calls a function of the table with a list's words up to the null. If the list
    /// `has_variables`, they follow the null.
    ///
    /// # Safety
    ///
    /// As the function, with a `va_list` of pointers that a null ends.
    unsafe fn execute(
        slot: &Slot,
        path: *const c_char,
        list: *mut c_void,
        has_variables: bool,
    ) -> c_int {
        // SAFETY: as the caller promises.
        unsafe { execute_few::<FEW_WORDS>(slot, path, list, has_variables) }
            // SAFETY: as the caller promises.
            .or_else(|| unsafe { execute_few::<MANY_WORDS>(slot, path, list, has_variables) })
            // SAFETY: as the caller promises.
            .or_else(|| unsafe { execute_few::<MOST_WORDS>(slot, path, list, has_variables) })
            .unwrap_or_else(|| {
                errno::set(libc::E2BIG);
                -1
            })
    }

    /// [`execute`] with fewer than `MOST` words. `None`: there are more.
    ///
    /// # Safety
    ///
    /// As [`execute`].
    #[inline(never)]
    unsafe fn execute_few<const MOST: usize>(
        slot: &Slot,
        path: *const c_char,
        list: *mut c_void,
        has_variables: bool,
    ) -> Option<c_int> {
        // SAFETY: the list is a `va_list`, as the caller promises.
        let mut arguments = unsafe { list.cast::<Arguments>().read() };
        // SAFETY: the list has pointers up to the null, and the variables behind it.
        let mut next = || unsafe { arguments.word().cast::<*const c_char>().read() };
        let mut words = [core::ptr::null(); MOST];
        words.iter_mut().find_map(|word| {
            *word = next();
            word.is_null().then_some(())
        })?;
        let variables = if has_variables { next().cast() } else { core::ptr::null() };
        let function = slot.entry.load(Ordering::Relaxed);
        // SAFETY: the slot's function takes these arguments, or the first two of them.
        let function = unsafe { core::mem::transmute::<*mut c_void, Execve>(function) };
        // SAFETY: as the caller promises.
        Some(unsafe { function(path, words.as_ptr(), variables) })
    }

    type Syscall = unsafe extern "C" fn(c_long, usize, usize, usize, usize, usize, usize) -> c_long;

    /// `syscall`. No table states which arguments are addresses. So the arguments are verified only
    /// after the kernel has refused an address.
    ///
    /// # Safety
    ///
    /// As the C library's.
    #[allow(clippy::too_many_arguments, reason = "the C library's, and what is done with them")]
    pub(crate) unsafe fn syscall<const READS: bool>(
        check: Check<'_, READS>,
        real: Syscall,
        number: c_long,
        one: usize,
        two: usize,
        three: usize,
        four: usize,
        five: usize,
        six: usize,
    ) -> c_long {
        let result = if sandbox::controls(number) {
            let [one, two, three, four, five] =
                [one, two, three, four, five].map(|word| word as c_ulong);
            // SAFETY: as the caller promises.
            unsafe { sandbox::controlled_by_number(number, one, two, three, four, five) }
        } else {
            let started = programs::started_by(number, one, three);
            // SAFETY: as the caller promises.
            let result = unsafe { real(number, one, two, three, four, five, six) };
            programs::returned(started);
            copies::by_number(number, one, result);
            result
        };
        if result == -1 && errno::get() == libc::EFAULT {
            // (The last words may be old contents of registers, which the program did not pass.)
            [one, two, three, four, five, six].into_iter().any(|word| check.faulted(word));
            errno::set(libc::EFAULT);
        }
        result
    }
}
