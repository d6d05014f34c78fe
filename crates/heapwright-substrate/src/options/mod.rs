//! Options: one string, which the process reads once, at the latest for its first allocation.
//!
//! ```text
//! HEAPWRIGHT="stats=exit,purge=100"
//! ```
//!
//! The documentation of `heapwright::options` lists the options. A new option goes into this file
//! and into that list. An option that is wrong, or has no effect in this mode or copy, is ignored
//! with one line on standard error. Set-uid programs ignore the string. Parsing has no effects;
//! only `load` reads the environment.

#[cfg(feature = "debug")]
pub mod debug;
mod detect;
#[cfg(feature = "debug")]
pub mod fill;
#[cfg(feature = "debug")]
pub mod leaks;

use core::cell::UnsafeCell;
use core::ffi::CStr;

use crate::memory_limit::LEAST_LIMIT;
use crate::os;
use crate::purge_delay;
use crate::sync::Lock;
#[cfg(not(feature = "interpose"))]
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::text::Line;

pub use detect::Detect;

const PATH_MAX: usize = 512;
/// The default sampling distance of the heap profile in bytes.
#[cfg(feature = "debug")]
pub const DEFAULT_SAMPLE: usize = 512 << 10;
/// The least sampling distance.
#[cfg(feature = "debug")]
pub const LEAST_SAMPLE: usize = 1 << 10;
/// The largest sampling distance.
#[cfg(feature = "debug")]
pub const MOST_SAMPLE: usize = 1 << 30;
/// The value of `Options::guards` for guards that take a fixed share of the time. Other values are
/// the number of allocations from one guarded block to the next.
#[cfg(feature = "debug")]
pub const GUARDS_PACED: usize = usize::MAX;
/// The most allocations from one guarded block to the next.
#[cfg(feature = "debug")]
pub const MOST_GUARDS: usize = 1 << 30;
const TEXT_MAX: usize = 2048;
const DEFAULT_MAX: usize = 64;
/// The most caches that threads can share.
pub const MOST_SHARED: usize = 1024;

/// The options of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Whether to print statistics at exit.
    pub stats_at_exit: bool,
    /// Ends with a zero.
    stats_file: [u8; PATH_MAX],
    /// The way in which threads share caches.
    pub cache: CacheModel,
    /// Ends with a zero.
    trace: [u8; PATH_MAX],
    /// Ends with a zero.
    timeline: [u8; PATH_MAX],
    /// The shortest purge delay, in milliseconds; negative: free pages wait for ever.
    pub purge_ms: i32,
    /// The longest purge delay, in milliseconds.
    pub purge_max_ms: i32,
    /// Whether slabs that the program will probably fill may lie in huge pages.
    pub huge_pages: bool,
    /// The largest window, in bytes.
    pub window: usize,
    /// A pretended page size, or 0. Only tests can set it.
    pub page: usize,
    /// The memory limit to respect.
    pub limit: MemoryLimit,
    /// Whether the process shows figures while it runs.
    pub publish: bool,
    /// Whether `malloc` is the hardened heap's, and its degree of hardening.
    pub hardening: Hardening,
    /// Whether the hardened heap reports misuse and continues. If false, misuse ends the process.
    pub reports_misuse: bool,
    /// The mistakes that the hardened heap looks for.
    pub detect: Detect,
    /// Whether `malloc` is the debug heap's.
    #[cfg(feature = "debug")]
    pub debugs: bool,
    /// The settings of the debug heap.
    #[cfg(feature = "debug")]
    pub debug: debug::Config,
    /// Without the debug heap: one of this many blocks is guarded; or [`GUARDS_PACED`]; 0: none.
    #[cfg(feature = "debug")]
    pub guards: usize,
    #[cfg(feature = "debug")]
    leaks: leaks::Leaks,
    #[cfg(feature = "debug")]
    fill: fill::Fill,
    #[cfg(feature = "debug")]
    record: [u8; PATH_MAX],
    #[cfg(feature = "debug")]
    sites: [u8; PATH_MAX],
    #[cfg(feature = "debug")]
    rules: [u8; PATH_MAX],
    /// The sampling distance of the heap profile in bytes; 0: none.
    #[cfg(feature = "debug")]
    pub sample: usize,
    #[cfg(feature = "debug")]
    profile: [u8; PATH_MAX],
}

impl Options {
    /// The default options.
    pub const DEFAULT: Self = Self {
        stats_at_exit: false,
        stats_file: [0; PATH_MAX],
        cache: CacheModel::Auto,
        trace: [0; PATH_MAX],
        timeline: [0; PATH_MAX],
        purge_ms: purge_delay::DEFAULT_MIN_MS,
        purge_max_ms: purge_delay::DEFAULT_MAX_MS,
        huge_pages: true,
        window: os::MAX_WINDOW,
        page: 0,
        limit: MemoryLimit::Auto,
        publish: true,
        hardening: Hardening::Off,
        reports_misuse: false,
        detect: Detect::ALL,
        #[cfg(feature = "debug")]
        debugs: false,
        #[cfg(feature = "debug")]
        debug: debug::Config::DEFAULT,
        #[cfg(feature = "debug")]
        guards: 0,
        #[cfg(feature = "debug")]
        leaks: leaks::Leaks::DEFAULT,
        #[cfg(feature = "debug")]
        fill: fill::Fill::DEFAULT,
        #[cfg(feature = "debug")]
        record: [0; PATH_MAX],
        #[cfg(feature = "debug")]
        sites: [0; PATH_MAX],
        #[cfg(feature = "debug")]
        rules: [0; PATH_MAX],
        #[cfg(feature = "debug")]
        sample: 0,
        #[cfg(feature = "debug")]
        profile: [0; PATH_MAX],
    };
}

/// The memory limit to respect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryLimit {
    /// The limit of the process's control groups.
    Auto,
    /// No limit.
    Off,
    /// This many bytes for the process.
    Bytes(usize),
}

/// The degree of hardening.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hardening {
    /// No hardened heap.
    Off,
    /// The hardened heap with its cheaper checks.
    Light,
    /// More guards, more random choices, a longer quarantine, and exact comparison of sizes.
    Full,
}

/// The way in which threads share caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CacheModel {
    /// Up to 2 x CPUs + 1 threads have a cache each. All other threads, and threads that hand many
    /// blocks over to others, use the cache of their CPU.
    Auto,
    /// Each thread has its own cache.
    Exclusive,
    /// This many caches for all threads; 0: the number of CPUs, at most 32.
    Shared(usize),
    /// Each CPU has one cache.
    PerCpu,
}

impl CacheModel {
    fn parse(text: &[u8]) -> Option<Self> {
        match text {
            b"auto" => Some(Self::Auto),
            b"exclusive" => Some(Self::Exclusive),
            b"shared" => Some(Self::Shared(0)),
            b"percpu" => Some(Self::PerCpu),
            _ => {
                let count = number(text.strip_prefix(b"shared:")?)?;
                (1..=MOST_SHARED).contains(&count).then_some(Self::Shared(count))
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wrong {
    Unknown,
    Value(&'static str),
    /// A valid option that only the debug heap has.
    #[cfg(feature = "debug")]
    Alone,
    /// A valid option that only the debug heap and other heaps' guards have.
    #[cfg(feature = "debug")]
    WithoutGuards,
    /// A valid option that the debug heap does not have.
    #[cfg(feature = "debug")]
    InDebugMode,
    /// A valid option that the hardened heap does not have.
    InHardenedMode,
    /// A valid option that only the hardened heap has.
    NotHardened,
}

#[cfg(not(feature = "debug"))]
const KNOWN: &str = "mode, cache, stats, stats_file, trace, timeline, limit, publish, purge, huge_pages, window; with mode=hardened also detect, on_misuse";
#[cfg(feature = "debug")]
const KNOWN: &str = "mode, cache, stats, stats_file, trace, timeline, sample, profile, limit, publish, purge, huge_pages, window, guard; with mode=hardened also detect, on_misuse; with mode=debug or guard=sample also traces, memory, record, sites; with mode=debug also detect, stop, retain, slots, log, quiet, fill, leaks, leak_signal, growth, reachable, heuristics, rules";

fn parse(text: &[u8], mut complain: impl FnMut(&[u8], Wrong)) -> Options {
    let mut options = Options::DEFAULT;
    for option in text.split(|&b| b == b',' || b == b';') {
        let option = option.trim_ascii();
        if option.is_empty() {
            continue;
        }
        let at = option.iter().position(|&b| b == b'=').unwrap_or(option.len());
        let value = option.get(at + 1..).unwrap_or(b"");
        if let Err(wrong) = set(&mut options, &option[..at], value) {
            complain(option, wrong);
        }
    }
    #[cfg(feature = "debug")]
    {
        options.debug.detect = options.detect;
    }
    // The hardened heap has guards by default. But a guard ends the program. So if misuse is only
    // reported, guards must be requested by name. A library without a fault handler has none.
    #[cfg(all(feature = "debug", any(feature = "interpose", test)))]
    if options.hardening != Hardening::Off
        && !options.reports_misuse
        && options.guards == 0
        && options.debug.guard != debug::Guard::Never
    {
        options.guards = GUARDS_PACED;
    }
    #[cfg(feature = "debug")]
    if options.hardening != Hardening::Off && (options.sample != 0 || options.profile[0] != 0) {
        complain(b"sample", Wrong::InHardenedMode);
        (options.sample, options.profile) = (0, [0; PATH_MAX]);
    }
    if options.hardening != Hardening::Off && options.cache != CacheModel::Auto {
        complain(b"cache", Wrong::InHardenedMode);
    }
    if options.hardening == Hardening::Off && options.reports_misuse {
        complain(b"on_misuse", Wrong::NotHardened);
    }
    #[cfg(feature = "debug")]
    if options.debugs {
        if options.sample != 0 || options.profile[0] != 0 {
            complain(b"sample", Wrong::InDebugMode);
        }
        (options.sample, options.profile) = (0, [0; PATH_MAX]);
        if !matches!(options.guards, 0 | GUARDS_PACED) {
            complain(b"guard=sample:N", Wrong::InDebugMode);
        }
        options.guards = 0;
    } else {
        without_debugging(text, &options, &mut complain);
        if options.profile[0] != 0 && options.sample == 0 {
            options.sample = DEFAULT_SAMPLE;
        }
    }
    options
}

#[cfg(feature = "debug")]
fn without_debugging(text: &[u8], options: &Options, mut complain: impl FnMut(&[u8], Wrong)) {
    let (has_guards, is_hardened) = (options.guards != 0, options.hardening != Hardening::Off);
    let mut scratch = Options::DEFAULT;
    for option in text.split(|&b| b == b',' || b == b';').map(<[u8]>::trim_ascii) {
        let Some(at) = option.iter().position(|&b| b == b'=') else { continue };
        let (name, value) = (&option[..at], &option[at + 1..]);
        let is_of_guards = matches!(name, b"record" | b"sites" | b"traces" | b"memory");
        let is_of_debug_heap = match name {
            b"detect" if is_hardened => false,
            _ if is_of_guards && has_guards => false,
            b"guard" if value.starts_with(b"sample") => false,
            b"guard" if is_hardened && value == b"never" => false,
            b"detect" | b"record" | b"sites" | b"rules" => set(&mut scratch, name, value).is_ok(),
            _ => debug::set(&mut scratch.debug, name, value)
                .or_else(|| leaks::set(&mut scratch.leaks, name, value))
                .or_else(|| fill::set(&mut scratch.fill, name, value))
                .is_some_and(|result| result.is_ok()),
        };
        if is_of_debug_heap {
            complain(option, if is_of_guards { Wrong::WithoutGuards } else { Wrong::Alone });
        }
    }
}

fn set(options: &mut Options, name: &[u8], value: &[u8]) -> Result<(), Wrong> {
    #[cfg(feature = "debug")]
    if name == b"guard" {
        options.guards = match value {
            b"sample" => GUARDS_PACED,
            _ => 0,
        };
        if let Some(every) = value.strip_prefix(b"sample:") {
            match number(every) {
                Some(every @ 1..=MOST_GUARDS) => options.guards = every,
                _ => {
                    return Err(Wrong::Value(
                        "needs a number of allocations from 1 to 1g: sample:5000",
                    ));
                }
            }
            options.debug.guard = debug::Guard::Sample;
            return Ok(());
        }
    }
    #[cfg(feature = "debug")]
    if let Some(result) = debug::set(&mut options.debug, name, value) {
        return result;
    }
    #[cfg(feature = "debug")]
    if let Some(result) = leaks::set(&mut options.leaks, name, value) {
        return result;
    }
    #[cfg(feature = "debug")]
    if let Some(result) = fill::set(&mut options.fill, name, value) {
        return result;
    }
    match (name, value) {
        (b"detect", value) => detect::set(&mut options.detect, value)?,
        (b"on_misuse", b"abort") => options.reports_misuse = false,
        (b"on_misuse", b"report") => options.reports_misuse = true,
        (b"on_misuse", _) => return Err(Wrong::Value("must be abort or report")),
        (b"mode", mode) => set_mode(options, mode)?,
        #[cfg(feature = "debug")]
        (b"record", path) => set_path(&mut options.record, path)?,
        #[cfg(feature = "debug")]
        (b"sites", path) => set_path(&mut options.sites, path)?,
        #[cfg(feature = "debug")]
        (b"rules", path) => set_path(&mut options.rules, path)?,
        #[cfg(feature = "debug")]
        (b"sample", b"off") => options.sample = 0,
        #[cfg(feature = "debug")]
        (b"sample", value) => match number(value) {
            Some(bytes) if (LEAST_SAMPLE..=MOST_SAMPLE).contains(&bytes) => options.sample = bytes,
            _ => return Err(Wrong::Value("needs bytes, from 1k to 1g, such as 512k, or off")),
        },
        #[cfg(feature = "debug")]
        (b"profile", path) => set_path(&mut options.profile, path)?,
        (b"cache", model) => match CacheModel::parse(model) {
            Some(model) => options.cache = model,
            None => {
                return Err(Wrong::Value(
                    "is unknown; use auto, exclusive, shared, shared:K with K from 1 to 1024, or percpu",
                ));
            }
        },
        (b"stats", b"exit") => options.stats_at_exit = true,
        (b"stats", b"off") => options.stats_at_exit = false,
        (b"stats", _) => {
            return Err(Wrong::Value("is not understood; use stats=exit or stats=off"));
        }
        (b"stats_file", path) => set_path(&mut options.stats_file, path)?,
        (b"trace", path) => set_path(&mut options.trace, path)?,
        (b"timeline", path) => set_path(&mut options.timeline, path)?,
        (b"purge", b"never") => (options.purge_ms, options.purge_max_ms) = (-1, -1),
        (b"purge", value) => match range(value) {
            Some((min, max)) => (options.purge_ms, options.purge_max_ms) = (min, max),
            None => {
                return Err(Wrong::Value("needs milliseconds, such as 250 or 250..5500, or never"));
            }
        },
        (b"huge_pages", b"dense") => options.huge_pages = true,
        (b"huge_pages", b"never") => options.huge_pages = false,
        (b"huge_pages", _) => return Err(Wrong::Value("must be dense or never")),
        (b"window", value) => match number(value) {
            Some(bytes) if bytes >= 4 << 20 => options.window = bytes,
            _ => {
                return Err(Wrong::Value("needs at least 4m of address space, such as window=64g"));
            }
        },
        (b"limit", b"auto") => options.limit = MemoryLimit::Auto,
        (b"limit", b"off") => options.limit = MemoryLimit::Off,
        (b"limit", value) => match number(value) {
            Some(bytes) if bytes >= LEAST_LIMIT => options.limit = MemoryLimit::Bytes(bytes),
            _ => {
                return Err(Wrong::Value("needs bytes, at least 1m, such as 512m, or auto or off"));
            }
        },
        (b"publish", b"yes") => options.publish = true,
        (b"publish", b"no") => options.publish = false,
        (b"publish", _) => return Err(Wrong::Value("must be yes or no")),
        #[cfg(any(test, feature = "testing"))]
        (b"page", b"4k") => options.page = 4 << 10,
        #[cfg(any(test, feature = "testing"))]
        (b"page", b"16k") => options.page = 16 << 10,
        #[cfg(any(test, feature = "testing"))]
        (b"page", b"64k") => options.page = 64 << 10,
        #[cfg(any(test, feature = "testing"))]
        (b"page", _) => return Err(Wrong::Value("must be 4k, 16k or 64k")),
        _ => return Err(Wrong::Unknown),
    }
    Ok(())
}

fn set_mode(options: &mut Options, mode: &[u8]) -> Result<(), Wrong> {
    let debugs = mode == b"debug";
    let hardening = match mode {
        b"fast" | b"debug" => Hardening::Off,
        b"hardened" | b"hardened:light" => Hardening::Light,
        b"hardened:full" => Hardening::Full,
        _ => {
            return Err(Wrong::Value(
                "is unknown; use fast, debug, hardened (or hardened:light), or hardened:full",
            ));
        }
    };
    #[cfg(not(feature = "debug"))]
    if debugs {
        return Err(Wrong::Value("is not in this build of the library (feature `debug`)"));
    }
    #[cfg(feature = "debug")]
    {
        options.debugs = debugs;
    }
    options.hardening = hardening;
    Ok(())
}

/// Copies a path. Leaves room for a dot, a process id and the zero.
fn set_path(place: &mut [u8; PATH_MAX], path: &[u8]) -> Result<(), Wrong> {
    if path.is_empty() || path.len() + 12 > PATH_MAX {
        return Err(Wrong::Value("needs a path of at most 500 bytes"));
    }
    *place = [0; PATH_MAX];
    place[..path.len()].copy_from_slice(path);
    Ok(())
}

/// Parses a number. An optional suffix multiplies it by a power of 1024.
fn number(text: &[u8]) -> Option<usize> {
    let (digits, shift) = match text.split_last()? {
        (b'k' | b'K', rest) => (rest, 10),
        (b'm' | b'M', rest) => (rest, 20),
        (b'g' | b'G', rest) => (rest, 30),
        (b't' | b'T', rest) => (rest, 40),
        _ => (text, 0),
    };
    if digits.is_empty() {
        return None;
    }
    let number = digits.iter().try_fold(0usize, |n, &b| {
        let digit = (b as char).to_digit(10)?;
        n.checked_mul(10)?.checked_add(digit as usize)
    })?;
    number.checked_mul(1 << shift)
}

/// Parses `N` or `MIN..MAX`, where `MIN` is at most `MAX`.
fn range(text: &[u8]) -> Option<(i32, i32)> {
    let ms = |text| number(text).and_then(|ms| i32::try_from(ms).ok());
    let dots = text.windows(2).position(|two| two == b"..");
    let (min, max) = match dots {
        Some(at) => (ms(&text[..at])?, ms(&text[at + 2..])?),
        None => (ms(text)?, ms(text)?),
    };
    (min <= max).then_some((min, max))
}

struct Loaded(UnsafeCell<Options>);

// SAFETY: only `load` writes, under `READING`, before `READY` is set. Readers check `READY` first.
unsafe impl Sync for Loaded {}

static LOADED: Loaded = Loaded(UnsafeCell::new(Options::DEFAULT));
static READY: AtomicBool = AtomicBool::new(false);
static DETAILED: AtomicBool = AtomicBool::new(false);
static READING: Lock<()> = Lock::new(());

/// The process's options. The first call reads them.
pub fn get() -> &'static Options {
    if !READY.load(Ordering::Acquire) {
        let _reading = READING.lock();
        if !READY.load(Ordering::Relaxed) {
            load();
        }
    }
    // SAFETY: written before `READY` was set, and never again.
    unsafe { &*LOADED.0.get() }
}

fn load() {
    let is_given = os::has_variable(b"HEAPWRIGHT") && !os::is_privileged();
    let default = os::default_options();
    if is_given || !default.is_empty() {
        load_given(default, is_given);
    }
    // `LOADED` contains the defaults from the start.
    READY.store(true, Ordering::Release);
}

#[cold]
#[inline(never)]
fn load_given(default: &[u8], is_given: bool) {
    let mut text = [0; DEFAULT_MAX + 1 + TEXT_MAX];
    let start = default.len().min(DEFAULT_MAX);
    text[..start].copy_from_slice(&default[..start]);
    text[start] = b',';
    let start = start + 1;
    let given = if is_given { os::environment(b"HEAPWRIGHT", &mut text[start..]) } else { None };
    let mut length = start + given.unwrap_or(0);
    if length > start + TEXT_MAX {
        length = start;
        Line::new()
            .text("the option string HEAPWRIGHT is longer than ")
            .number(TEXT_MAX)
            .text(" bytes (ignored)")
            .write();
    }
    let options = parse(&text[..length], |option, wrong| {
        let line = Line::new().text("option \"").bytes(option).text("\": ");
        match wrong {
            Wrong::Unknown => line.text("unknown; the options are ").text(KNOWN),
            Wrong::Value(why) => line.text("the value ").text(why),
            #[cfg(feature = "debug")]
            Wrong::Alone if option.starts_with(b"detect=") => {
                line.text("has no effect without mode=debug or mode=hardened")
            }
            #[cfg(feature = "debug")]
            Wrong::Alone => line.text("has no effect without mode=debug"),
            #[cfg(feature = "debug")]
            Wrong::WithoutGuards => line.text("has no effect without mode=debug or guard=sample"),
            #[cfg(feature = "debug")]
            Wrong::InDebugMode => line.text("has no effect with mode=debug"),
            Wrong::InHardenedMode => line.text("has no effect with mode=hardened"),
            Wrong::NotHardened => line.text("has no effect without mode=hardened"),
        }
        .text(" (ignored)")
        .write();
    });
    // This precedes `drop_unsupported`: a program that links heapwright can read the counts itself.
    let wants_counts = options.stats_at_exit || options.stats_file[0] != 0;
    #[cfg(not(feature = "interpose"))]
    let options = drop_unsupported(options);
    let wants_trace = options.trace[0] != 0;
    DETAILED.store(wants_counts || wants_trace, Ordering::Relaxed);
    // SAFETY: this is the first and only write, and no thread reads before `READY` is set.
    unsafe { *LOADED.0.get() = options };
}

/// An option that only the preloaded library has: its name, a test whether it is set, and a reset.
#[cfg(not(feature = "interpose"))]
type Unsupported = (&'static str, fn(&Options) -> bool, fn(&mut Options));
#[cfg(not(feature = "interpose"))]
const UNSUPPORTED: &[Unsupported] = &[
    ("stats=exit", |o| o.stats_at_exit, |o| o.stats_at_exit = false),
    ("stats_file", |o| o.stats_file[0] != 0, |o| o.stats_file[0] = 0),
    ("trace", |o| o.trace[0] != 0, |o| o.trace[0] = 0),
    #[cfg(feature = "debug")]
    ("profile", |o| o.profile[0] != 0, |o| o.profile[0] = 0),
    #[cfg(feature = "debug")]
    ("guard=sample", |o| o.guards != 0, |o| o.guards = 0),
    #[cfg(feature = "debug")]
    ("leaks=exit", |o| o.debugs && o.leaks.at_exit, |o| o.leaks.at_exit = false),
    #[cfg(feature = "debug")]
    ("leak_signal", |o| o.debugs && o.leaks.signal != 0, |o| o.leaks.signal = 0),
    #[cfg(feature = "debug")]
    ("growth=on", |o| o.debugs && o.leaks.growth, |o| o.leaks.growth = false),
];

#[cfg(not(feature = "interpose"))]
static ASKED_FOR: AtomicUsize = AtomicUsize::new(0);

#[cfg(not(feature = "interpose"))]
fn drop_unsupported(mut options: Options) -> Options {
    for (bit, (_, is_set, unset)) in UNSUPPORTED.iter().enumerate() {
        if is_set(&options) {
            unset(&mut options);
            ASKED_FOR.fetch_or(1 << bit, Ordering::Relaxed);
        }
    }
    options
}

/// Reports the options that this copy cannot honour. Only the copy that serves the program's
/// allocations calls this, because otherwise another copy may honour them.
#[cfg(not(feature = "interpose"))]
pub fn report_not_honoured() {
    let asked = ASKED_FOR.load(Ordering::Relaxed);
    for (bit, (name, ..)) in UNSUPPORTED.iter().enumerate() {
        if asked & 1 << bit != 0 {
            let line = Line::new().text("option \"").text(name).text("\": ");
            line.text(
                "has no effect without the preloaded library: start the program by \
                 `heapwright run -- PROGRAM`",
            )
            .write();
        }
    }
}

/// Whether every allocation is counted or recorded, so that none takes the fast path.
#[inline]
pub fn detailed() -> bool {
    DETAILED.load(Ordering::Relaxed)
}

/// Whether a heap profile was requested (`sample`, `profile`).
#[must_use]
pub fn samples() -> bool {
    #[cfg(feature = "debug")]
    return get().sample != 0;
    #[cfg(not(feature = "debug"))]
    false
}

/// Whether to print statistics at exit (`stats=exit`).
#[must_use]
pub fn stats_at_exit() -> bool {
    get().stats_at_exit
}

/// The prefix of the file for statistics at exit (`stats_file=PREFIX`), if there is one.
#[must_use]
pub fn stats_file() -> Option<&'static CStr> {
    path(&get().stats_file)
}

/// The prefix of the file for the trace of calls (`trace=PREFIX`).
pub fn trace_file() -> Option<&'static [u8]> {
    path(&get().trace).map(CStr::to_bytes)
}

/// The prefix of the file for the timeline of collections (`timeline=PREFIX`).
pub fn timeline_file() -> Option<&'static [u8]> {
    path(&get().timeline).map(CStr::to_bytes)
}

/// The prefix of the file for the heap profile at exit (`profile=PREFIX`).
#[cfg(feature = "debug")]
#[must_use]
pub fn profile_file() -> Option<&'static CStr> {
    path(&get().profile)
}

/// Most programs set no path, so the inlined part looks only at the first byte.
#[inline]
fn path(text: &'static [u8]) -> Option<&'static CStr> {
    #[cold]
    #[inline(never)]
    fn given(text: &'static [u8]) -> Option<&'static CStr> {
        CStr::from_bytes_until_nul(text).ok()
    }
    if text[0] == 0 { None } else { given(text) }
}

/// The settings of leak checks.
#[cfg(feature = "debug")]
pub fn leaks() -> &'static leaks::Leaks {
    &get().leaks
}

/// The content of uninitialised bytes in the debug heap's fresh blocks.
#[cfg(feature = "debug")]
pub fn fill() -> &'static fill::Fill {
    &get().fill
}

/// The prefix of the files for findings (`record=PREFIX`).
#[cfg(feature = "debug")]
pub fn record_file() -> Option<&'static [u8]> {
    let path = CStr::from_bytes_until_nul(&get().record).ok()?.to_bytes();
    (!path.is_empty()).then_some(path)
}

/// The record of an earlier run, whose sites are guarded (`sites=FILE`).
#[cfg(feature = "debug")]
pub fn sites_file() -> Option<&'static CStr> {
    let path = CStr::from_bytes_until_nul(&get().sites).ok()?;
    (!path.is_empty()).then_some(path)
}

/// A file in which the processes of one check share unwind rules (`rules=FILE`).
#[cfg(feature = "debug")]
pub fn rules_file() -> Option<&'static CStr> {
    let path = CStr::from_bytes_until_nul(&get().rules).ok()?;
    (!path.is_empty()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use proptest::prelude::*;
    use std::string::String;
    use std::vec::Vec;

    fn parsed(text: &str) -> (Options, Vec<String>) {
        let mut complaints = Vec::new();
        let options = parse(text.as_bytes(), |option, _| {
            complaints.push(String::from_utf8_lossy(option).into_owned());
        });
        (options, complaints)
    }

    #[test]
    fn good_options_are_taken() {
        let (o, bad) = parsed("stats=exit, purge=10,window=2g;page=64k,mode=fast,cache=exclusive");
        assert!(bad.is_empty(), "{bad:?}");
        assert!(o.stats_at_exit);
        assert_eq!((o.purge_ms, o.window, o.page), (10, 2 << 30, 64 << 10));
        assert_eq!((o.purge_ms, o.purge_max_ms), (10, 10));
        assert_eq!(parsed("purge=never").0.purge_ms, -1);
        let o = parsed("limit=384m,publish=no").0;
        assert_eq!((o.limit, o.publish), (MemoryLimit::Bytes(384 << 20), false));
        assert_eq!(parsed("limit=1g,limit=off,publish=yes").0.limit, MemoryLimit::Off);
        let o = parsed("purge=20..3000").0;
        assert_eq!((o.purge_ms, o.purge_max_ms), (20, 3000));
        for wrong in
            ["purge=..", "purge=3..2", "purge=1..", "purge=..1", "purge=1...2", "purge=1..2..3"]
        {
            assert_eq!(parsed(wrong).1.len(), 1, "{wrong}");
        }
        assert_eq!(parsed("cache=percpu").0.cache, CacheModel::PerCpu);
        assert_eq!(parsed("cache=shared").0.cache, CacheModel::Shared(0));
        assert_eq!(parsed("cache=shared:8").0.cache, CacheModel::Shared(8));
        assert_eq!(parsed("").0, Options::DEFAULT);
    }

    #[test]
    fn bad_options_are_named_and_ignored() {
        for text in [
            "frobnicate=1",
            "purge",
            "purge=",
            "purge=x",
            "purge=99999999999",
            "window=1k",
            "window=99999999999999999999g",
            "stats=maybe",
            "mode=hardened:medium",
            "cache=shared:0",
            "cache=shared:1025",
            "cache=shared:",
            "cache=percpu:2",
            "page=3",
            "limit=1k",
            "limit=max",
            "publish=maybe",
            "stats_file=",
            "trace=",
            "timeline=",
            "=",
            "purge=-1",
        ] {
            let (options, bad) = parsed(text);
            assert_eq!(bad, [text]);
            assert_eq!(options, Options::DEFAULT, "{text}");
        }
        #[cfg(feature = "debug")]
        {
            let debugs = "guard=all,leaks=exit,record=/x,traces=4,leak_signal=USR2";
            let each: Vec<&str> = debugs.split(',').collect();
            assert_eq!(parsed(debugs).1, each);
            assert_eq!(parsed(&std::format!("mode=debug,mode=fast,{debugs}")).1, each);
            assert_eq!(parsed("guard=most,purge=1").1, ["guard=most"]);
            let (options, bad) =
                parsed("guard=sample,record=/x,traces=4,memory=1m,sites=/y,leaks=exit");
            assert_eq!((options.guards, bad), (GUARDS_PACED, std::vec!["leaks=exit".into()]));
            assert_eq!(parsed("guard=sample:1,guard=sample:5k").0.guards, 5 << 10);
            assert_eq!(parsed("guard=sample,guard=never").0.guards, 0);
            for wrong in ["guard=sample:0", "guard=sample:", "guard=sample:2g", "guard=sample:x"] {
                assert_eq!((parsed(wrong).0.guards, parsed(wrong).1.len()), (0, 1), "{wrong}");
            }
            let (options, bad) = parsed("guard=sample:7,mode=debug");
            assert_eq!((options.guards, bad), (0, std::vec!["guard=sample:N".into()]));
            assert_eq!(options.debug.guard, debug::Guard::Sample);
            for mode in ["mode=debug,", "mode=fast,mode=debug,"] {
                assert!(parsed(&std::format!("{mode}{debugs}")).1.is_empty());
            }
            assert!(parsed(&std::format!("{debugs},mode=debug")).1.is_empty());
        }
        let (options, bad) = parsed("nonsense,purge=7");
        assert_eq!((options.purge_ms, bad.len()), (7, 1));
    }

    fn piece() -> impl Strategy<Value = Vec<u8>> {
        let known = [
            "mode",
            "fast",
            "cache",
            "exclusive",
            "shared",
            "shared:",
            "percpu",
            "stats",
            "exit",
            "off",
            "stats_file",
            "purge",
            "never",
            "window",
            "page",
            "4k",
            "64k",
            "=",
            "=",
            "=",
            ",",
            ",",
            ";",
            " ",
            "1",
            "99",
            "-",
            "g",
            "t",
        ];
        prop_oneof![
            8 => prop::sample::select(known.to_vec()).prop_map(|text| text.as_bytes().to_vec()),
            1 => prop::collection::vec(any::<u8>(), 0..4),
            1 => (0..600usize).prop_map(|length| std::vec![b'x'; length]),
        ]
    }

    proptest! {
        #![proptest_config(crate::testing::cases(500))]

        #[test]
        fn any_text_is_options_or_named(text in prop::collection::vec(piece(), 0..12)) {
            let text = text.concat();
            let mut named = 0;
            let options = parse(&text, |option, _| {
                assert!(!option.is_empty() && text.windows(option.len()).any(|w| w == option));
                named += 1;
            });
            let given = text.split(|byte| b",;".contains(byte)).map(<[u8]>::trim_ascii);
            let given = given.filter(|option| !option.is_empty()).count();
            prop_assert!(named <= given);
            prop_assert!(named < given || options == Options::DEFAULT);
        }

        #[test]
        fn numbers_of_any_length_are_read_or_refused(digits in "[0-9]{0,25}", suffix in "[kmgtKMGT]?") {
            let shift = " kmgt".find(&suffix.to_lowercase()).unwrap_or(0) * 10;
            let shift = if suffix.is_empty() { 0 } else { shift };
            let exact = digits.parse::<u128>().ok().and_then(|n| n.checked_mul(1 << shift));
            let expected = exact.and_then(|n| usize::try_from(n).ok());
            prop_assert_eq!(number(std::format!("{digits}{suffix}").as_bytes()), expected);
        }
    }
}
