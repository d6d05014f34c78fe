//! The settings of a debug heap. They resemble the configuration of Zig's `DebugAllocator`.
//!
//! The types are here because the option string sets them. `heapwright::debug` exports them.

pub use super::detect::Detect;
use super::{Wrong, number};

/// The blocks that get guard pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Guard {
    /// Only blocks of more than 28 KiB, at their ends. Past other blocks, a write is found later
    /// and a read is never found.
    Never,
    /// Of live blocks, the first 256 of the heap, and then the first two of every stack and fewer
    /// and fewer later ones. More blocks while guards take less than 3 % of the process's CPU time.
    /// Of emptied buckets, the first 4 of every class, and later one in 64.
    #[default]
    Sample,
    /// Every block and every emptied bucket. This is slow, and finds everything.
    All,
}

/// The settings of a debug heap.
///
/// ```
/// # mod heapwright { pub use heapwright_substrate::options::debug; }
/// use heapwright::debug::{Config, Guard};
/// let config = Config { traces: 8, guard: Guard::All, ..Config::DEFAULT };
/// assert_eq!(config.memory, 0);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The number of frames that are kept of each stack: 0 to 64. (Zig: `stack_trace_frames`.)
    pub traces: usize,
    /// The guarded blocks.
    pub guard: Guard,
    /// The mistakes to look for. (Zig: `safety`, `canary`.)
    pub detect: Detect,
    /// Bytes for freed blocks and their records; 0: 1/16 to 1/4 of the bytes in open buckets, at
    /// least 2 MiB.
    pub memory: usize,
    /// The most bytes that live blocks may have; 0: no limit. (Zig: `enable_memory_limit`.)
    pub limit: usize,
    /// The most slots of a bucket. (Zig before 2025: the constant 32.)
    pub slots: usize,
    /// No memory goes back before the heap ends. (Zig: `never_unmap`.)
    pub never_unmap: bool,
    /// Every freed block is remembered to the end. (Zig: `retain_metadata`.)
    pub retain: bool,
    /// The process stops at the first finding, for a debugger.
    pub stop_first: bool,
    /// Findings are not printed, for programs that read them.
    pub quiet: bool,
    /// Each operation prints a line on standard error. (Zig: `verbose_log`.)
    pub log: bool,
}

impl Config {
    /// 16 frames, sampled guards, all kinds of mistakes, and no stop at a finding.
    pub const DEFAULT: Self = Self {
        traces: 16,
        guard: Guard::Sample,
        detect: Detect::ALL,
        memory: 0,
        limit: 0,
        slots: 4096,
        never_unmap: false,
        retain: false,
        stop_first: false,
        quiet: false,
        log: false,
    };
}

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}

pub(super) fn set(config: &mut Config, name: &[u8], value: &[u8]) -> Option<Result<(), Wrong>> {
    let wrong = match (name, value) {
        (b"traces", value) => match number(value) {
            Some(frames @ 0..=64) => {
                config.traces = frames;
                return Some(Ok(()));
            }
            _ => "needs a number of frames from 0 (no stacks) to 64",
        },
        (b"guard", b"never") => return done(&mut config.guard, Guard::Never),
        (b"guard", b"sample") => return done(&mut config.guard, Guard::Sample),
        (b"guard", b"all") => return done(&mut config.guard, Guard::All),
        (b"guard", _) => "must be never, sample or all; without mode=debug, sample or sample:N",
        (b"memory", value) => match number(value) {
            Some(bytes) if bytes >= 64 << 10 => return done(&mut config.memory, bytes),
            _ => "needs at least 64k for freed blocks, such as memory=64m",
        },
        (b"slots", value) => match number(value) {
            Some(slots @ 1..=4096) => return done(&mut config.slots, slots),
            _ => "needs a number of slots per bucket, from 1 to 4096",
        },
        (b"stop", b"first") => return done(&mut config.stop_first, true),
        (b"stop", b"never") => return done(&mut config.stop_first, false),
        (b"stop", _) => "must be first or never",
        (b"retain", b"all") => return done(&mut config.retain, true),
        (b"retain", b"budget") => return done(&mut config.retain, false),
        (b"retain", _) => "must be all or budget",
        (b"quiet", b"yes") => return done(&mut config.quiet, true),
        (b"quiet", b"no") => return done(&mut config.quiet, false),
        (b"quiet", _) => "must be yes or no",
        (b"log", b"all") => return done(&mut config.log, true),
        (b"log", b"off") => return done(&mut config.log, false),
        (b"log", _) => "must be all or off",
        _ => return None,
    };
    Some(Err(Wrong::Value(wrong)))
}

fn done<T>(place: &mut T, value: T) -> Option<Result<(), Wrong>> {
    *place = value;
    Some(Ok(()))
}
