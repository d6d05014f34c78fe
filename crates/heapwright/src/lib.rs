#![doc = include_str!("lib.md")]
#![no_std]
#![cfg_attr(feature = "nightly", feature(allocator_api))]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(docsrs, doc(auto_cfg(hide(loom))))]
// loom tests the lock-free parts, which are in other crates.
#![cfg(not(loom))]
#![cfg_attr(
    not(all(
        target_os = "linux",
        not(miri),
        any(target_arch = "x86_64", target_arch = "aarch64")
    )),
    allow(dead_code, reason = "some items serve only Linux's signals, assembly and leak checks")
)]
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_types,
        clippy::disallowed_macros,
        reason = "tests run on std, whose allocator is not this one"
    )
)]

/// For the derive, in programs that rename `core`.
#[doc(hidden)]
pub use core::{mem::needs_drop as __needs_drop, ops::Drop as __Drop};

/// For the derive: tells whether a type is [`Send`], as a constant. The inherent constant exists
/// only if the type is `Send`, and then hides the trait's constant.
#[doc(hidden)]
pub struct __IsSend<T: ?Sized>(core::marker::PhantomData<T>);

#[doc(hidden)]
impl<T: ?Sized + Send> __IsSend<T> {
    pub const YES: bool = true;
}

#[doc(hidden)]
pub trait __MayNotBeSend {
    const YES: bool = false;
}

impl<T: ?Sized> __MayNotBeSend for __IsSend<T> {}

// The crates below this one, under their own names.
#[cfg(feature = "debug")]
use heapwright_stacks as stacks;
use heapwright_substrate::{
    address_map, chunk, describe, files, fork, ids, leases, memory_limit, misuse, names, os,
    poisson, purge_delay, refused, registry, remote, runs, size_class, slab, substrate, sync, text,
    ticks, unit_list, unit_record, unwinding, verdict,
};
#[cfg(feature = "debug")]
use heapwright_substrate::{digits, segments};

mod adapters;
pub mod arena;
mod cache;
#[cfg(test)]
#[path = "../../heapwright-substrate/src/testing/cases.rs"]
mod cases;
#[cfg(feature = "debug")]
pub mod debug;
mod drawn;
mod extent;
pub mod gc;
mod hardened;
pub mod heap;
mod hooks;
mod libc_block;
pub mod limit;
#[cfg(feature = "debug")]
mod paged_table;
pub mod pool;
#[cfg(feature = "debug")]
pub mod profile;
#[cfg(feature = "debug")]
mod recorder;
mod request;
#[cfg(feature = "debug")]
mod samples;
#[cfg(feature = "debug")]
mod spill;
pub mod stats;
pub mod status;
#[cfg(feature = "debug")]
mod tallies;
#[cfg(any(feature = "std", feature = "debug"))]
mod tally;
mod trace;
mod walk;
#[cfg(feature = "std")]
pub use adapters::testing;

pub mod options {
    //! The options are one string, which is read once, at the first allocation or earlier.
    //!
    //! ```text
    //! HEAPWRIGHT="stats=exit,purge=100"
    //! ```
    //!
    //! | option | values | meaning |
    //! |---|---|---|
    //! | `mode` | `fast`, `debug`, `hardened` (or `hardened:light`), `hardened:full` | which heap serves `malloc` |
    //! | `on_misuse` | `abort`, `report` | hardened: end the process at misuse, or print a line and go on |
    //! | `cache` | `auto`, `exclusive`, `shared`, `shared:K`, `percpu` | how threads share caches |
    //! | `stats` | `exit`, `off` | print where the memory is when the program ends |
    //! | `stats_file` | a path | write these figures to `PATH.<pid>`, for the command to read |
    //! | `trace` | a path | write every call to `PATH.<pid>` for `heapwright replay` |
    //! | `timeline` | a path | write the collections of collected heaps to `PATH.<pid>` for `heapwright run --timeline` and `heapwright heap --timeline` |
    //! | `purge` | milliseconds, `MIN..MAX`, `never` | how long free pages wait before they go back to the kernel; between two bounds, the wait grows if the program soon touches many of these pages again |
    //! | `huge_pages` | `dense`, `never` | huge pages under slabs that will be filled, or nowhere |
    //! | `window` | bytes, with `k`, `m`, `g`, `t` | the most address space to reserve |
    //! | `sample` | bytes from `1k` to `1g`, `off` | sample one block per so many bytes, for the heap profile (feature `debug`) |
    //! | `profile` | a path | write the heap profile to `PATH.<pid>`, now and then and at the end; implies `sample=512k` |
    //! | `limit` | `auto`, `off`, bytes | the memory limit to stay below: that of the control groups, none, or one for the process alone (the preloaded library) |
    //! | `publish` | `yes`, `no` | show the process to `heapwright top` (the preloaded library alone does so by itself) |
    //! | `record` | a path | debug: write findings to `PATH.<pid>`, too |
    //! | `sites` | a path | debug: guard the sites with findings in an earlier run's record |
    //! | `traces` | 0 to 64 | debug: frames of each stack |
    //! | `guard` | `sample`, `sample:N` | a few blocks stand between guard pages: at a pace, or one of `N` (the preloaded library); the options `record`, `sites`, `traces` and `memory` then also have an effect |
    //! | `guard` | `never`, `sample`, `all` | debug: which blocks stand between guard pages |
    //! | `memory` | bytes | debug: the most that freed blocks and their records may cost |
    //! | `stop` | `first`, `never` | debug: end the process at the first finding |
    //! | `detect` | `-` or `+`, and a name | debug, hardened: switch a detection off or on |
    //! | `retain` | `all`, `budget` | debug: how many freed blocks are remembered |
    //! | `slots` | 1 to 4096 | debug: slots a bucket, at most |
    //! | `log` | `all`, `off` | debug: a line for each operation |
    //! | `quiet` | `yes`, `no` | debug: findings are in the record, and not printed |
    //! | `fill` | `off`, a number | debug: uninitialised bytes hold zeros (0) or a pattern (`heapwright check --twice`) |
    //! | `leaks` | `exit`, `off` | debug: look for leaks when the program ends |
    //! | `leak_signal` | a signal | debug: look for leaks when this signal arrives |
    //! | `growth` | `on`, `off` | debug: count live blocks now and then, in the record |
    //! | `reachable` | `top`, `all`, `none` | debug: which reachable blocks are reported one by one |
    //! | `heuristics` | `all`, `none`, memcheck's names joined by `+` | debug: which pointers to the middle of a block surely lead to it |
    //! | `rules` | a path | debug: a sealed file for what processes share: unwind rules, entries without a file (`heapwright check` makes it) |
    //!
    //! A bad option is ignored, with one line on standard error. An option without effect in the
    //! chosen mode, or in a copy that a program links, is treated the same. Set-uid programs ignore
    //! the string.

    #[doc(inline)]
    pub use heapwright_substrate::options::{stats_at_exit, stats_file};
    #[doc(inline)]
    pub use heapwright_substrate::purge_delay::{set_purge_delay_ms, wanted_ms};

    pub(crate) use heapwright_substrate::options::*;
}

pub mod process {
    //! Functions of the process for the C layer.

    /// Writes bytes to standard error with plain `write`. The call does not allocate, buffer or
    /// format. After the heap's start, bytes only go to the file that standard error was at that
    /// time.
    ///
    /// ```
    /// heapwright::process::write_stderr(b"heapwright: hello\n");
    /// ```
    pub fn write_stderr(bytes: &[u8]) {
        crate::os::write_stderr(bytes);
    }

    /// Makes the heap use the program's new standard error from now on.
    ///
    /// ```
    /// heapwright::process::stderr_is_new();
    /// ```
    pub fn stderr_is_new() {
        crate::os::renew_stderr();
    }

    /// Returns whether the kernel can read the word at an address (a multiple of 8).
    #[cfg(feature = "debug")]
    #[must_use]
    pub fn is_readable(address: usize) -> bool {
        crate::os::is_readable(address)
    }

    /// Sleeps for at most a millisecond, and keeps `errno`.
    ///
    /// ```
    /// heapwright::process::nap();
    /// ```
    #[cfg(feature = "debug")]
    pub fn nap() {
        crate::os::nap();
    }

    /// Writes bytes to an open file. Returns false if not all were written.
    ///
    /// ```
    /// assert!(heapwright::process::write_all(2, b"heapwright: hello\n"));
    /// ```
    #[must_use]
    pub fn write_all(file: i32, bytes: &[u8]) -> bool {
        crate::os::write_all(file, bytes)
    }

    /// Returns the process's id. In a sandbox this is the id that was read earlier; a forked child
    /// has its own id. (In a sandbox, a child of `vfork` gets its parent's id.)
    #[must_use]
    pub fn id() -> u32 {
        crate::os::process_id()
    }

    /// Returns the calling thread's id.
    #[must_use]
    pub fn thread_id() -> u32 {
        crate::os::thread_id()
    }

    /// Gives the process's record (option `record`) from user `from` to user `to`. A root process
    /// that changes its user, or returns to root, can then continue its record. Other users' files
    /// stay unchanged.
    ///
    /// ```
    /// heapwright::process::give_record(0, 1000);
    /// ```
    #[cfg(feature = "debug")]
    pub fn give_record(from: u32, to: u32) {
        crate::debug::give_record(from, to);
    }

    /// Notes in the record that a program starts without heapwright, because it gets other
    /// environment variables. The report then names the program. `process` is 0 if its id is not
    /// known yet. Does nothing without a record (option `record`). A child of `vfork` may call
    /// this, because the function takes no lock and keeps `errno`.
    ///
    /// ```
    /// heapwright::process::note_unchecked(77, b"/usr/bin/env");
    /// ```
    #[cfg(feature = "debug")]
    pub fn note_unchecked(process: u32, program: &[u8]) {
        crate::debug::note_unchecked(process, program);
    }

    /// As [`note_unchecked`], with another note: `what` is a constant of `heapwright_record::debug`,
    /// and `words` follow the process.
    ///
    /// ```
    /// heapwright::process::note_process("child: ", 77, &[b"/usr/bin/env"]);
    /// ```
    #[cfg(feature = "debug")]
    pub fn note_process(what: &str, process: u32, words: &[&[u8]]) {
        crate::debug::note_process(what, process, words);
    }

    /// Takes a note of [`note_unchecked`] back, because the program did not start.
    ///
    /// ```
    /// heapwright::process::note_not_started(77);
    /// ```
    #[cfg(feature = "debug")]
    pub fn note_not_started(process: u32) {
        crate::debug::note_not_started(process);
    }

    /// Makes or replaces a file that only this user can access. The path ends with a zero byte.
    /// Readers never see a partial file, and no link is followed. Returns false if the file was not
    /// written.
    ///
    /// ```
    /// assert!(!heapwright::process::save_file(b"/no/such/folder/file\0", b"text"));
    /// ```
    #[must_use]
    pub fn save_file(path: &[u8], bytes: &[u8]) -> bool {
        crate::os::save_file(path, |file| crate::os::write_all(file, bytes))
    }

    /// Returns whether the memory is the calling process's own. False in a child of `vfork`, which
    /// borrows its parent's memory.
    #[must_use]
    pub fn is_original_process() -> bool {
        crate::substrate::is_original_process()
    }
}

pub use adapters::Heapwright;
#[doc(inline)]
pub use describe::{BlockState, Description, Kind};
pub use heapwright_record::Stats;

/// Describes the block that contains an address.
///
/// Takes constant time and never touches memory at the address, so any value is allowed: null,
/// freed, unmapped or invalid. Other threads may change the answer at any time. The idea comes from
/// snmalloc's pagemap and Zig's address masking. The metadata is out of band, so pointers into a
/// block have an answer, too.
///
/// ```
/// let block = heapwright::heap::malloc(100);
/// let inside = block.wrapping_add(60);
/// let found = heapwright::describe(inside);
/// assert_eq!(found.kind, heapwright::Kind::Small);
/// assert_eq!(found.block, block as usize);
/// assert_eq!((found.offset, found.size), (60, 112));
/// let local = 0u8;
/// assert_eq!(heapwright::describe(&local).kind, heapwright::Kind::Foreign);
/// // SAFETY: allocated above and freed once.
/// unsafe { heapwright::heap::free(block) };
/// ```
#[inline]
#[must_use]
pub fn describe(address: *const u8) -> Description {
    describe::describe(address)
}

/// The project's README, whose Rust examples must compile and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct ProjectReadme;
