//! Which call it was: how a block is made, or given back.
//!
//! The fast heap does not care. A debug heap does: a block of `new[]` that goes
//! to `free`, a sized delete with another size, a Rust `Layout` of another
//! alignment are errors, and only whoever made the call knows what it was.
//!
//! ```text
//!   malloc(n)          -> miss -> malloc_cold::<MALLOC>(n)           \
//!   operator new(n)    -> miss -> malloc_aligned_cold::<NEW>(n, 1)    \   Request
//!   delete(p, n)       -> miss -> free_sized_cold::<NEW>(p, n)        /   Return
//!   GlobalAlloc        -> miss -> free_sized_aligned_cold::<RUST>    /
//! ```
//!
//! The fast paths do not carry it. Each origin has cold functions of its own, to
//! which its fast paths jump with the arguments still in the registers they came
//! in; so what the caller said is found at the door, and costs nothing before it.

use crate::misuse::Call;

/// How a block is made, or given back.
///
/// Two of them may be given back by the same call: see [`Origin::is_freed_by`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Origin {
    /// `malloc`, `calloc`, `realloc`; `free`.
    Malloc = 0,
    /// `posix_memalign`, `aligned_alloc` and their kin; also goes back by `free`.
    Aligned = 1,
    /// C++'s `operator new`; `operator delete`.
    New = 2,
    /// C++'s `operator new[]`; `operator delete[]`.
    NewArray = 3,
    /// Rust's `GlobalAlloc` and `Allocator`, both ways.
    Rust = 4,
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

impl Origin {
    /// The origin that is the parameter `FROM` of a function: one of [`MALLOC`],
    /// [`ALIGNED`], [`NEW`], [`NEW_ARRAY`], [`RUST`]. Anything else does not
    /// compile.
    ///
    /// ```
    /// use heapwright::heap::{NEW, Origin};
    /// assert_eq!(Origin::of::<NEW>(), Origin::New);
    /// ```
    #[inline(always)]
    #[must_use]
    pub const fn of<const FROM: u8>() -> Self {
        const { assert!(FROM <= RUST, "no origin has this number") };
        match FROM {
            MALLOC => Self::Malloc,
            ALIGNED => Self::Aligned,
            NEW => Self::New,
            NEW_ARRAY => Self::NewArray,
            _ => Self::Rust,
        }
    }

    /// Whether a block of this origin is rightly given back by a call of `other`.
    ///
    /// ```
    /// use heapwright::heap::Origin;
    /// assert!(Origin::Aligned.is_freed_by(Origin::Malloc));
    /// assert!(!Origin::NewArray.is_freed_by(Origin::New));
    /// ```
    #[must_use]
    pub const fn is_freed_by(self, other: Self) -> bool {
        const fn family(origin: Origin) -> u8 {
            if matches!(origin, Origin::Aligned) { MALLOC } else { origin as u8 }
        }
        family(self) == family(other)
    }
}

/// A block is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    /// The bytes asked for; may be 0, and more than there can be.
    pub(crate) size: usize,
    /// The alignment asked for, a power of two; 1 where the call has none.
    pub(crate) align: usize,
    /// Whether the bytes must be zero.
    pub(crate) zero: bool,
    /// Which call it is.
    pub(crate) origin: Origin,
}

/// A block is given back, or handed over to be resized: what the caller says it
/// knows of it. `None`: this call does not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Return {
    /// What is done, in the words of a complaint.
    pub(crate) call: Call,
    /// Which call it is.
    pub(crate) origin: Origin,
    /// The size that was asked for when the block was made.
    pub(crate) size: Option<usize>,
    /// The alignment that was asked for.
    pub(crate) align: Option<usize>,
}
