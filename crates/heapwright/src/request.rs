//! Requests and returns: the facts that a call passes to a heap, and the call's kind.
//!
//! The fast heap ignores the kind. For a debug or hardened heap some calls are errors: `free` of a
//! block of `new[]`, a sized delete with another size, a Rust `Layout` with another alignment.
//!
//! ```text
//!   malloc(n)          -> miss -> table: malloc(n)                         \
//!   operator new(n)    -> miss -> table: allocate(n, 1, New)                \   Request
//!   delete(p, n)       -> miss -> table: give_back(p, Said::free(New), n)   /   Return
//!   GlobalAlloc        -> miss -> table: give_back(p, Said::free(Rust), n)  /
//! ```
//!
//! The kind is a constant of each slow path, and the block's facts stay in the registers of the
//! call. So the kind costs the fast paths nothing. Used by `heap`, `cache`, `hardened`, `debug` and
//! the observers of calls.

use heapwright_record::debug as record;

use crate::misuse::Call;
use crate::size_class;

/// The kind of call that makes or frees a block; see [`Origin::is_freed_by`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Origin {
    /// Made by `malloc`, `calloc` or `realloc`, and freed by `free`.
    Malloc = 0,
    /// Made by `aligned_alloc` and similar, and freed by `free`.
    Aligned = 1,
    /// Made by C++'s `operator new`, and freed by `operator delete`.
    New = 2,
    /// Made by C++'s `operator new[]`, and freed by `operator delete[]`.
    NewArray = 3,
    /// Made and freed by Rust's `GlobalAlloc` or `Allocator`.
    Rust = 4,
    /// Made by `posix_memalign`, and freed by `free`.
    PosixMemalign = 5,
    /// Made by `realloc` of a block in a debug heap, and freed by `free`.
    Realloc = 6,
    /// Made and freed by a pool of C in debug mode.
    Pool = 7,
    /// Made and freed by an arena of C in debug mode.
    Arena = 8,
    /// Made by a first-class heap of C in debug mode, and also freed by `free`.
    Heap = 9,
}

/// [`Origin::Malloc`], as a parameter of a function.
pub const MALLOC: u8 = Origin::Malloc as u8;
/// [`Origin::Aligned`], as a parameter of a function.
pub const ALIGNED: u8 = Origin::Aligned as u8;
/// [`Origin::New`], as a parameter of a function.
pub const NEW: u8 = Origin::New as u8;
/// [`Origin::NewArray`], as a parameter of a function.
pub const NEW_ARRAY: u8 = Origin::NewArray as u8;
/// [`Origin::Rust`], as a parameter of a function.
pub const RUST: u8 = Origin::Rust as u8;
/// [`Origin::PosixMemalign`], as a parameter of a function.
pub const POSIX_MEMALIGN: u8 = Origin::PosixMemalign as u8;

impl Origin {
    /// Returns the origin for the parameter `FROM` of a function, for example [`NEW`]. Other
    /// numbers than these constants do not compile.
    ///
    /// ```
    /// use heapwright::heap::{NEW, Origin};
    /// assert_eq!(Origin::of::<NEW>(), Origin::New);
    /// ```
    #[inline(always)]
    #[must_use]
    pub const fn of<const FROM: u8>() -> Self {
        const { assert!(FROM <= POSIX_MEMALIGN, "no origin has this number") };
        match FROM {
            MALLOC => Self::Malloc,
            ALIGNED => Self::Aligned,
            NEW => Self::New,
            NEW_ARRAY => Self::NewArray,
            RUST => Self::Rust,
            _ => Self::PosixMemalign,
        }
    }

    /// Returns whether a call of `other` may free a block of this origin.
    ///
    /// ```
    /// use heapwright::heap::Origin;
    /// assert!(Origin::Aligned.is_freed_by(Origin::Malloc));
    /// assert!(!Origin::NewArray.is_freed_by(Origin::New));
    /// ```
    #[must_use]
    pub const fn is_freed_by(self, other: Self) -> bool {
        const fn family(origin: Origin) -> u8 {
            match origin {
                Origin::Aligned | Origin::PosixMemalign | Origin::Realloc | Origin::Heap => MALLOC,
                other => other as u8,
            }
        }
        family(self) == family(other)
    }

    #[cfg(feature = "debug")]
    #[inline(always)]
    pub(crate) const fn record(self) -> record::Origin {
        match self {
            Self::Malloc => record::Origin::Malloc,
            Self::Aligned => record::Origin::Aligned,
            Self::New => record::Origin::New,
            Self::NewArray => record::Origin::NewArray,
            Self::Rust => record::Origin::Rust,
            Self::PosixMemalign => record::Origin::PosixMemalign,
            Self::Realloc => record::Origin::Realloc,
            Self::Pool => record::Origin::Pool,
            Self::Arena => record::Origin::Arena,
            Self::Heap => record::Origin::Heap,
        }
    }

    #[cfg(feature = "debug")]
    pub(crate) const fn of_record(record: record::Origin) -> Self {
        match record {
            record::Origin::Aligned => Self::Aligned,
            record::Origin::New | record::Origin::AlignedNew => Self::New,
            record::Origin::NewArray | record::Origin::AlignedNewArray => Self::NewArray,
            record::Origin::Rust => Self::Rust,
            record::Origin::PosixMemalign => Self::PosixMemalign,
            record::Origin::Realloc => Self::Realloc,
            record::Origin::Pool => Self::Pool,
            record::Origin::Arena => Self::Arena,
            record::Origin::Heap => Self::Heap,
            _ => Self::Malloc,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    /// The bytes requested: any number, also 0.
    pub(crate) size: usize,
    /// The alignment requested, a power of two; 1 if the call has none.
    pub(crate) align: usize,
    pub(crate) zero: bool,
    pub(crate) origin: Origin,
}

impl Request {
    /// If no power of two is large enough for the alignment, the request is impossible.
    #[inline(always)]
    pub(crate) const fn new(size: usize, align: usize, zero: bool, origin: Origin) -> Self {
        let align = match align.checked_next_power_of_two() {
            Some(align) => align,
            None => usize::MAX,
        };
        Self { size, align, zero, origin }
    }

    #[inline(always)]
    pub(crate) const fn is_possible(self) -> bool {
        self.size <= isize::MAX as usize && self.align <= isize::MAX as usize
    }

    /// Returns the size class, or `None` for a large block.
    #[inline]
    pub(crate) fn class(self) -> Option<usize> {
        if self.align <= size_class::MIN_ALIGN {
            (self.size <= size_class::SLAB_MAX).then(|| size_class::of(self.size.max(1)))
        } else {
            size_class::of_aligned(self.size, self.align)
        }
    }
}

#[cfg(feature = "debug")]
impl Request {
    #[inline(always)]
    pub(crate) const fn call(self) -> record::Call {
        match self.origin {
            _ if self.zero => record::Call::Calloc,
            Origin::New => record::Call::New,
            Origin::NewArray => record::Call::NewArray,
            _ => record::Call::Malloc,
        }
    }

    /// The function that makes the block, as in records.
    #[inline(always)]
    pub(crate) const fn maker(self) -> record::Origin {
        match self.origin {
            Origin::Malloc if self.zero => record::Origin::Calloc,
            Origin::New if self.align > 1 => record::Origin::AlignedNew,
            Origin::NewArray if self.align > 1 => record::Origin::AlignedNewArray,
            origin => origin.record(),
        }
    }
}

/// A free, or the old block of a resize, with the facts that the caller passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Return {
    pub(crate) call: record::Call,
    /// The kind of call that must have made the block.
    pub(crate) origin: Origin,
    pub(crate) size: Option<usize>,
    pub(crate) align: Option<usize>,
}

/// The call that frees a block, and the facts that it passes, in one word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Said {
    pub(crate) call: record::Call,
    pub(crate) origin: Origin,
    pub(crate) size: bool,
    pub(crate) align: bool,
}

const _: () = assert!(size_of::<Said>() == size_of::<u32>());

impl Said {
    /// A call of `free`, which passes only the block.
    pub(crate) const PLAIN: Self = Self::free(Origin::Malloc, false, false);

    #[inline(always)]
    pub(crate) const fn free(origin: Origin, size: bool, align: bool) -> Self {
        let call = if size { Call::FreeSized } else { Call::Free };
        Self { call: Return::new(call, origin, None, None).call, origin, size, align }
    }
}

impl Return {
    /// `call` is the call in a report of misuse, which does not distinguish origins.
    #[inline(always)]
    pub(crate) const fn new(
        call: Call,
        origin: Origin,
        size: Option<usize>,
        align: Option<usize>,
    ) -> Self {
        let call = match (call, origin) {
            (Call::Realloc, Origin::Rust) => record::Call::RustRealloc,
            (Call::Realloc, _) => record::Call::Realloc,
            (Call::UsableSize, _) => record::Call::UsableSize,
            (Call::HeapFree, _) => record::Call::HeapFree,
            (_, Origin::New) => record::Call::Delete,
            (_, Origin::NewArray) => record::Call::DeleteArray,
            (_, Origin::Rust) => record::Call::RustDealloc,
            (Call::FreeSized, _) => record::Call::FreeSized,
            _ => record::Call::Free,
        };
        Self { call, origin, size, align }
    }

    #[inline(always)]
    pub(crate) const fn of(said: Said, size: usize, align: usize) -> Self {
        Self {
            call: said.call,
            origin: said.origin,
            size: if said.size { Some(size) } else { None },
            align: if said.align { Some(align) } else { None },
        }
    }

    pub(crate) const PLAIN: Self = Self::new(Call::Free, Origin::Malloc, None, None);

    pub(crate) const fn misused(&self) -> Call {
        match self.call {
            record::Call::Realloc | record::Call::RustRealloc => Call::Realloc,
            record::Call::UsableSize => Call::UsableSize,
            record::Call::HeapFree => Call::HeapFree,
            _ if self.size.is_some() => Call::FreeSized,
            _ => Call::Free,
        }
    }
}
