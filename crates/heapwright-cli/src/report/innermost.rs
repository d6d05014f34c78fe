//! The calls with which memcheck's stacks begin: its own `malloc` or `free`. Our stacks begin in
//! the caller. Suppressions name these calls in their first lines. So the calls are put in front of
//! our stacks before a comparison, and into suppressions that are generated.
//!
//! ```text
//!   memcheck's    malloc    strdup  load  main        memalign  posix_memalign  load  main
//!   ours                    strdup  load  main                                  load  main
//!                 \----/ Origin::Malloc               \-----------------------/ PosixMemalign
//! ```

use heapwright_record::debug::{Call, Finding, Function, Origin, Role};

/// The calls that memcheck's stack has before the first call of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Innermost {
    /// An allocating function.
    Allocated(Origin),
    Freed(Call),
    /// The C library's function that made an access.
    Accessed(Function),
}

type Calls = &'static [&'static str];

/// The calls that memcheck's versions show for an allocating function; suggestions use the first.
const ALLOCATORS: [(Origin, &[Calls]); 13] = [
    (Origin::Malloc, &[&["malloc"], &["malloc", "realloc"]]),
    (Origin::Calloc, &[&["calloc"]]),
    (Origin::Realloc, &[&["realloc"]]),
    (Origin::Aligned, &[&["memalign"], &["memalign", "valloc"], &["valloc"], &["aligned_alloc"]]),
    (Origin::PosixMemalign, &[&["memalign", "posix_memalign"], &["posix_memalign"]]),
    (Origin::New, &[&["_Znwm"], &["_ZnwmRKSt9nothrow_t"]]),
    (Origin::NewArray, &[&["_Znam"], &["_ZnamRKSt9nothrow_t"]]),
    (Origin::AlignedNew, &[&["_ZnwmSt11align_val_t"], &["_ZnwmSt11align_val_tRKSt9nothrow_t"]]),
    (
        Origin::AlignedNewArray,
        &[&["_ZnamSt11align_val_t"], &["_ZnamSt11align_val_tRKSt9nothrow_t"]],
    ),
    (Origin::Rust, &[&["malloc"], &["calloc"], &["realloc"], &["memalign", "posix_memalign"]]),
    (Origin::Pool, &[&["hw_pool_alloc"]]),
    (Origin::Arena, &[&["hw_arena_alloc"]]),
    (Origin::Heap, &[&["hw_heap_alloc"]]),
];

/// The calls that memcheck's versions show for a call that frees a block.
const FREES: [(Call, &[Calls]); 9] = [
    (Call::Free, &[&["free"], &["cfree"]]),
    (Call::FreeSized, &[&["free"], &["free_sized"], &["free_aligned_sized"]]),
    (Call::Realloc, &[&["realloc"]]),
    (
        Call::Delete,
        &[
            &["_ZdlPv"],
            &["_ZdlPvm"],
            &["_ZdlPvSt11align_val_t"],
            &["_ZdlPvmSt11align_val_t"],
            &["_ZdlPvRKSt9nothrow_t"],
            &["_ZdlPvSt11align_val_tRKSt9nothrow_t"],
        ],
    ),
    (
        Call::DeleteArray,
        &[
            &["_ZdaPv"],
            &["_ZdaPvm"],
            &["_ZdaPvSt11align_val_t"],
            &["_ZdaPvmSt11align_val_t"],
            &["_ZdaPvRKSt9nothrow_t"],
            &["_ZdaPvSt11align_val_tRKSt9nothrow_t"],
        ],
    ),
    (Call::UsableSize, &[&["malloc_usable_size"]]),
    (Call::PoolFree, &[&["hw_pool_free"]]),
    (Call::ArenaFree, &[&["hw_arena_free"]]),
    (Call::HeapFree, &[&["hw_heap_free"]]),
];

/// The path of memcheck's library, on Debian.
pub(super) const MODULE: &str = "/usr/libexec/valgrind/vgpreload_memcheck-amd64-linux.so";

impl Innermost {
    pub(crate) fn of(finding: &Finding, role: Role) -> Self {
        match role {
            Role::Here if finding.is_access() => Self::Accessed(finding.function),
            Role::Here => Self::Freed(finding.call),
            Role::Freed => Self::Freed(Call::Unknown),
            Role::Allocated => Self::Allocated(finding.origin),
        }
    }

    /// Returns the calls that memcheck's versions show, the form of version 3.19 first: all forms
    /// if the call is unknown, and none for an access, whose function has many names.
    pub(super) fn forms(self) -> Vec<Calls> {
        let known = match self {
            Self::Accessed(_) => return Vec::new(),
            Self::Allocated(origin) => find(&ALLOCATORS, origin),
            Self::Freed(call) => find(&FREES, call),
        };
        known.map_or_else(|| every().collect(), <[Calls]>::to_vec)
    }

    /// Returns whether the first form is the most likely one.
    pub(super) fn is_known(self) -> bool {
        let (unknown, rust) = (Self::Allocated(Origin::Unknown), Self::Allocated(Origin::Rust));
        let delete = [Self::Freed(Call::Delete), Self::Freed(Call::DeleteArray)];
        ![unknown, rust, Self::Freed(Call::Unknown)].contains(&self) && !delete.contains(&self)
    }

    /// Returns the patterns to generate, innermost first.
    pub(crate) fn shown(self) -> Vec<String> {
        match self {
            Self::Accessed(Function::Unknown) | Self::Freed(Call::Unknown) => Vec::new(),
            Self::Accessed(function) => vec![function.word().to_owned()],
            Self::Allocated(_) | Self::Freed(_) => {
                let calls = self.forms().first().copied().unwrap_or_default();
                calls.iter().copied().map(pattern).collect()
            }
        }
    }
}

/// Returns a pattern for a function and its forms with more parameters. Records do not tell
/// `new(std::nothrow)` from `new`, nor a sized `delete` from `delete`.
fn pattern(name: &str) -> String {
    if name.starts_with("_Z") { format!("{name}*") } else { name.to_owned() }
}

fn find<T: PartialEq>(table: &'static [(T, &'static [Calls])], one: T) -> Option<&'static [Calls]> {
    table.iter().find(|(of, _)| *of == one).map(|(_, forms)| *forms)
}

fn every() -> impl Iterator<Item = Calls> {
    let allocators = ALLOCATORS.iter().flat_map(|(_, forms)| forms.iter());
    let frees = FREES.iter().flat_map(|(_, forms)| forms.iter());
    allocators.chain(frees).copied()
}

pub(super) fn is_any(matches: impl Fn(&str) -> bool) -> bool {
    every().flatten().any(|name| matches(name))
}
