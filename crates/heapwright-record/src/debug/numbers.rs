//! The enums of a debug record. Their numbers are fixed forever: a number that
//! is no longer written is never used for something else.
//!
//! Number 0 is always "unknown". It stands for what the writer did not know and
//! for what a newer writer knows and this reader does not.

use super::wire::{Cursor, Field, Sink};

macro_rules! numbers {
    ($(
        $(#[$doc:meta])*
        $name:ident: $type:ident as $from:ident {
            $( $(#[$variant_doc:meta])* $variant:ident = $number:literal $word:literal, )*
        }
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
            #[repr($type)]
            #[non_exhaustive]
            pub enum $name {
                /// Not known, to the writer or to this reader.
                #[default]
                Unknown = 0,
                $( $(#[$variant_doc])* $variant = $number, )*
            }

            impl $name {
                /// All of them, in the order of their numbers.
                pub const ALL: &'static [Self] = &[Self::Unknown, $(Self::$variant,)*];

                /// The one that has this number.
                #[must_use]
                pub const fn $from(number: $type) -> Self {
                    match number {
                        $( $number => Self::$variant, )*
                        _ => Self::Unknown,
                    }
                }

                /// A word for it, the same in texts and in JSON.
                #[must_use]
                pub const fn word(self) -> &'static str {
                    match self {
                        Self::Unknown => "unknown",
                        $( Self::$variant => $word, )*
                    }
                }
            }

            impl<'a> Field<'a> for $name {
                fn put(&self, sink: &mut Sink<'_>) {
                    (*self as $type).put(sink);
                }
                fn take(cursor: &mut Cursor<'a>) -> Self {
                    Self::$from($type::take(cursor))
                }
            }
        )*
    };
}

numbers! {
    /// What kind of mistake.
    FindingKind: u16 as from_u16 {
        /// A block was freed that was free.
        DoubleFree = 1 "double-free",
        /// A pointer was freed that is no block's.
        InvalidFree = 2 "invalid-free",
        /// A pointer was freed that leads into a block, not to its start.
        InteriorFree = 3 "interior-free",
        /// A block was freed with another size than it was made with.
        SizeMismatch = 4 "size-mismatch",
        /// A block was freed with another alignment than it was made with.
        AlignmentMismatch = 5 "alignment-mismatch",
        /// A block was freed by the wrong function, such as `new[]` by `free`.
        AllocatorMismatch = 6 "allocator-mismatch",
        /// Behind the end of a block.
        Overflow = 7 "buffer-overflow",
        /// Before the start of a block.
        Underflow = 8 "buffer-underflow",
        /// A free block was found changed.
        WriteAfterFree = 9 "write-after-free",
        /// A free block was accessed, and caught at it.
        UseAfterFree = 10 "use-after-free",
        /// A pointer was given to realloc that is no block's.
        InvalidRealloc = 11 "invalid-realloc",
        /// A block was given to realloc that was free.
        ReallocAfterFree = 12 "realloc-after-free",
        /// A block was never freed, and nothing leads to it.
        Leak = 13 "leak",
    }

    /// In which call, or at which occasion, it was found.
    Call: u8 as from_u8 {
        /// `malloc`.
        Malloc = 1 "malloc",
        /// `calloc`.
        Calloc = 2 "calloc",
        /// `realloc`.
        Realloc = 3 "realloc",
        /// `free`.
        Free = 4 "free",
        /// `free_sized` and `free_aligned_sized`.
        FreeSized = 5 "free_sized",
        /// C++'s `operator new`.
        New = 6 "new",
        /// C++'s `operator new[]`.
        NewArray = 7 "new[]",
        /// C++'s `operator delete`.
        Delete = 8 "delete",
        /// C++'s `operator delete[]`.
        DeleteArray = 9 "delete[]",
        /// `malloc_usable_size`.
        UsableSize = 10 "malloc_usable_size",
        /// Rust's `dealloc`.
        RustDealloc = 11 "dealloc",
        /// Rust's `realloc`.
        RustRealloc = 12 "Rust's realloc",
        /// `hw_heap_free`.
        HeapFree = 13 "hw_heap_free",
        /// An access of the program, caught in the act.
        Access = 14 "access",
        /// A look at all blocks.
        Sweep = 15 "sweep",
        /// The look at the process's end.
        Exit = 16 "exit",
        /// The look at a freed block before its memory is used again.
        Retire = 17 "retire",
    }

    /// How a block was made.
    Origin: u8 as from_u8 {
        /// `malloc`, `calloc`, `realloc`.
        Malloc = 1 "malloc",
        /// `aligned_alloc`, `posix_memalign` and their kin.
        Aligned = 2 "aligned_alloc",
        /// C++'s `operator new`.
        New = 3 "new",
        /// C++'s `operator new[]`.
        NewArray = 4 "new[]",
        /// Rust's global allocator.
        Rust = 5 "Rust's allocator",
    }

    /// What a pointer leads to.
    Region: u8 as from_u8 {
        /// A block of the debug allocator, or the space between blocks.
        Block = 1 "block",
        /// A thread's stack.
        Stack = 2 "stack",
        /// The data of the program or of a library.
        Globals = 3 "globals",
        /// Code.
        Code = 4 "code",
        /// The C library's heap.
        OtherHeap = 5 "other-heap",
        /// A first-class heap.
        FirstClassHeap = 6 "first-class-heap",
        /// A pool.
        Pool = 7 "pool",
        /// An arena.
        Arena = 8 "arena",
        /// Nothing is mapped there.
        Nothing = 9 "nothing",
        /// Memory that the program mapped.
        Mapping = 10 "mapping",
        /// heapwright's own records.
        Metadata = 11 "metadata",
    }

    /// What an access did.
    Access: u8 as from_u8 {
        /// It read.
        Read = 1 "read",
        /// It wrote.
        Write = 2 "write",
    }

    /// Why a leak check was made.
    Occasion: u8 as from_u8 {
        /// The process ends.
        Exit = 1 "exit",
        /// A signal asked for it.
        Signal = 2 "signal",
        /// The program asked for it.
        Call = 3 "call",
        /// It was time for one: only what is live is counted, nothing is followed.
        Time = 4 "time",
        /// A heap profile: what is live is estimated from samples, nothing is followed.
        Profile = 5 "profile",
    }

    /// Whether something still leads to a block.
    Reach: u8 as from_u8 {
        /// Nothing does.
        Definite = 1 "definitely-lost",
        /// Only lost blocks do.
        Indirect = 2 "indirectly-lost",
        /// Only something that may be no pointer to it: one into its middle, or one of
        /// a thread that could not be asked.
        Possible = 3 "possibly-lost",
        /// The program still has a pointer to it, or to one that leads to it.
        Reachable = 4 "still-reachable",
    }

    /// Where a chain of pointers begins.
    Root: u8 as from_u8 {
        /// The data of the program or of a library.
        Globals = 1 "globals",
        /// A thread's stack.
        Stack = 2 "stack",
        /// A thread's registers.
        Registers = 3 "registers",
        /// A thread's own variables.
        ThreadLocal = 4 "thread-local",
        /// Memory that the program mapped.
        Mapping = 5 "mapping",
        /// Memory of another heap, a pool or an arena of heapwright's.
        OtherHeap = 6 "other-heap",
    }

    /// How a process ended.
    Ending: u32 as from_u32 {
        /// By `exit`, or by returning from `main`.
        Exit = 1 "exit",
        /// By `abort`, of heapwright or of the program.
        Abort = 2 "abort",
        /// It became another program.
        Exec = 3 "exec",
        /// A forked child that never became another program.
        ForkChild = 4 "fork-child",
        /// By a signal that it had no handler for: [`End::signal`](super::End) says which.
        Signal = 5 "signal",
    }

    /// What the blocks of a heap profile are.
    Memory: u8 as from_u8 {
        /// Blocks of `malloc` and of first-class heaps.
        Block = 1 "block",
        /// Segments of pools.
        Pool = 2 "pool",
        /// Chunks of arenas.
        Arena = 3 "arena",
        /// Pages of collected heaps.
        Collected = 4 "collected",
    }
}

impl FindingKind {
    /// The first words of a report.
    ///
    /// ```
    /// use heapwright_record::debug::FindingKind;
    /// assert_eq!(FindingKind::DoubleFree.heading(), "double-free");
    /// assert_eq!(FindingKind::from_u16(7).heading(), "buffer-overflow");
    /// ```
    #[must_use]
    pub const fn heading(self) -> &'static str {
        self.word()
    }
}

impl Occasion {
    /// Whether pointers were followed, so that what is leaked is known. Else only what is live is.
    #[must_use]
    pub const fn follows(self) -> bool {
        !matches!(self, Self::Time | Self::Profile)
    }
}
