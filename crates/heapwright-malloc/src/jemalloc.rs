//! jemalloc's functions beside `malloc`, for programs that are linked with it and run under the
//! preload. These calls must reach the heap that serves `malloc`, not an idle jemalloc.
//!
//! ```text
//!   mallocx rallocx xallocx sallocx dallocx sdallocx nallocx      blocks, with flags
//!   mallctl mallctlnametomib mallctlbymib                         a tree of names: CONTROLS
//!   malloc_stats_print                                            text
//! ```
//!
//! | flag | here |
//! |---|---|
//! | `MALLOCX_LG_ALIGN(n)`, the lowest six bits | the alignment |
//! | `MALLOCX_ZERO` | zeros |
//! | `MALLOCX_TCACHE_NONE` | past the thread's lists: `malloc_uncached`, `free_uncached` |
//! | other `MALLOCX_TCACHE(n)`, `MALLOCX_ARENA(n)` | nothing: there is one heap |
//!
//! `rallocx` ignores `MALLOCX_TCACHE_NONE`, and so does `mallocx` for zeros or alignments over 16.
//! There is one arena, number 0. Writing `epoch` takes all figures at one moment, as in jemalloc.
//! Slow readings are rarer: they take at most 1 % of the time.
//!
//! | name | its value here |
//! |---|---|
//! | `stats.allocated` | bytes in live blocks |
//! | `stats.active` | resident bytes of slabs, large blocks and caches |
//! | `stats.metadata` | resident bytes of tables |
//! | `stats.resident` | all resident bytes of the heap, free pages too |
//! | `stats.mapped` | bytes made writable |
//! | `stats.retained` | `mapped` without `resident` |
//!
//! An unknown name gives `ENOENT`: programs test for features this way (`thread.allocatedp`, say).

use core::ffi::{CStr, c_char, c_uint};
use core::mem::size_of;
use core::ptr;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::errno;
use crate::introspection;
use heapwright::heap::{self, MALLOC};
use heapwright::{options, process, stats};
use heapwright_record::Stats;
use libc::{c_int, c_void, size_t};

const ZERO: c_int = 0x40;

/// The bits of `MALLOCX_TCACHE`, and `MALLOCX_TCACHE_NONE`.
const TCACHE: c_int = 0xfff00;
const TCACHE_NONE: c_int = 0x100;

const fn is_uncached(flags: c_int) -> bool {
    flags & TCACHE == TCACHE_NONE
}

const fn alignment(flags: c_int) -> usize {
    1 << (flags & 0x3f)
}

#[unsafe(no_mangle)]
extern "C" fn mallocx(size: size_t, flags: c_int) -> *mut c_void {
    match (flags & ZERO != 0, alignment(flags)) {
        (false, ..=16) if is_uncached(flags) => heap::malloc_uncached(size).cast(),
        (false, align) => heap::malloc_aligned(size, align).cast(),
        // The whole block is zeros, because `rallocx` uses its full size.
        (true, align) => match heap::good_size(size, align) {
            Some(whole) => heap::calloc_aligned(whole, align).cast(),
            None => errno::fail(libc::ENOMEM),
        },
    }
}

/// # Safety
///
/// `block` is a live block of this process.
#[unsafe(no_mangle)]
unsafe extern "C" fn rallocx(block: *mut c_void, size: size_t, flags: c_int) -> *mut c_void {
    let block: *mut u8 = block.cast();
    // SAFETY: the block is live, as the caller promises.
    let before = unsafe { heap::usable_size(block) };
    let size = size.max(1);
    let new = if alignment(flags) <= 16 {
        // SAFETY: as the caller promises.
        unsafe { heap::realloc(block, size) }
    } else if size <= before && block.addr().is_multiple_of(alignment(flags)) && size > before / 2 {
        block
    } else {
        let new = heap::malloc_aligned(size, alignment(flags));
        if !new.is_null() {
            // SAFETY: both blocks have that many bytes, and only this call knows the new one.
            unsafe { ptr::copy_nonoverlapping(block, new, before.min(size)) };
            // SAFETY: the caller gives the old block away.
            unsafe { heap::free(block) };
        }
        new
    };
    if flags & ZERO != 0 && !new.is_null() {
        // SAFETY: the new block is live: the caller gets it.
        let after = unsafe { heap::usable_size(new) };
        if after > before {
            let rest = new.wrapping_add(before);
            // SAFETY: the block has these bytes, and they are uninitialised.
            unsafe { rest.write_bytes(0, after - before) };
        }
    }
    new.cast()
}

/// Never changes the size. Returns the usable size, as jemalloc does for a block that cannot grow
/// in place.
///
/// # Safety
///
/// `block` is a live block of this process.
#[unsafe(no_mangle)]
unsafe extern "C" fn xallocx(
    block: *mut c_void,
    _size: size_t,
    _extra: size_t,
    _flags: c_int,
) -> size_t {
    // SAFETY: as the caller promises.
    unsafe { heap::usable_size(block.cast_const().cast()) }
}

/// # Safety
///
/// `block` is a live block of this process.
#[unsafe(no_mangle)]
unsafe extern "C" fn sallocx(block: *const c_void, _flags: c_int) -> size_t {
    // SAFETY: as the caller promises.
    unsafe { heap::usable_size(block.cast()) }
}

/// # Safety
///
/// `block` is a live block of this process.
#[unsafe(no_mangle)]
unsafe extern "C" fn dallocx(block: *mut c_void, flags: c_int) {
    if is_uncached(flags) {
        // SAFETY: as the caller promises.
        unsafe { heap::free_uncached(block.cast()) };
    } else {
        // SAFETY: as the caller promises.
        unsafe { heap::free(block.cast()) };
    }
}

/// # Safety
///
/// `block` is a live block of this process, of that size and those flags.
#[unsafe(no_mangle)]
unsafe extern "C" fn sdallocx(block: *mut c_void, size: size_t, flags: c_int) {
    // The class of an aligned block is not the class of its size.
    if is_uncached(flags) || alignment(flags) > 16 {
        // SAFETY: as the caller promises.
        unsafe { dallocx(block, flags) };
    } else {
        // SAFETY: as the caller promises.
        unsafe { heap::free_sized_from::<MALLOC>(block.cast(), size) };
    }
}

#[unsafe(no_mangle)]
extern "C" fn nallocx(size: size_t, flags: c_int) -> size_t {
    heap::good_size(size, alignment(flags)).unwrap_or(0)
}

static EPOCH: AtomicU64 = AtomicU64::new(1);
/// The figures of this epoch: allocated, active, metadata, resident, mapped, retained, and the
/// bytes of free pages that wait for the purge.
static FIGURES: [AtomicUsize; 7] = [const { AtomicUsize::new(0) }; 7];

/// When the figures were taken, and the time spent on readings beyond their share, in nanoseconds.
static TAKEN_NS: AtomicU64 = AtomicU64::new(0);
static SPENT_NS: AtomicU64 = AtomicU64::new(0);
/// Readings take at most 1 / `SHARE` of the time, and `AT_ONCE_NS` more: programs read the figures
/// ten times a second, and heaps may be large.
const SHARE: u64 = 100;
const AT_ONCE_NS: u64 = 50_000_000;

/// Takes the figures, unless readings took too much time lately.
fn take_figures() {
    let began = now_ns();
    let since = began.saturating_sub(TAKEN_NS.load(Ordering::Relaxed));
    let spent = SPENT_NS.load(Ordering::Relaxed).saturating_sub(since / SHARE);
    if spent > AT_ONCE_NS {
        return;
    }
    let mut now = Stats::zero();
    if !stats::snapshot(&mut now) {
        return;
    }
    TAKEN_NS.store(began, Ordering::Relaxed);
    SPENT_NS.store(spent + now_ns().saturating_sub(began), Ordering::Relaxed);
    let resident = now.rss - now.rss_not_ours;
    let active = resident - now.rss_metadata - now.rss_lazy;
    let mapped = now.committed_bytes.max(resident);
    let figures = [
        now.live_bytes.min(active),
        active,
        now.rss_metadata,
        resident,
        mapped,
        mapped - resident,
        now.rss_lazy,
    ];
    for (place, figure) in FIGURES.iter().zip(figures) {
        place.store(figure as usize, Ordering::Relaxed);
    }
}

fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to a local variable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A value as `mallctl` returns it: its bytes, and their number.
#[derive(Clone, Copy)]
struct Value([u8; 8], usize);

impl Value {
    const NONE: Self = Self([0; 8], 0);

    fn bytes(number: usize) -> Self {
        Self((number as u64).to_ne_bytes(), size_of::<usize>())
    }

    fn unsigned(number: u32) -> Self {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&number.to_ne_bytes());
        Self(bytes, 4)
    }

    fn flag(is: bool) -> Self {
        Self([u8::from(is), 0, 0, 0, 0, 0, 0, 0], 1)
    }

    fn text(text: &'static CStr) -> Self {
        Self::bytes(text.as_ptr().expose_provenance())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Control {
    /// An index of [`FIGURES`].
    Figure(usize),
    /// The same, in pages.
    Pages(usize),
    Epoch,
    Version,
    PageSize,
    Quantum,
    Arenas,
    /// The purge delay, which can be set.
    Decay,
    /// The delay of jemalloc's second step of giving memory back. There is no such step here.
    Muzzy,
    /// A background thread, which there never is.
    NoThread,
    Flag(bool),
    Text(&'static CStr),
    Zero,
    Purge,
    Nothing,
    /// The number of a new cache. There is no such cache.
    NewCache,
}

/// The known names. `#` is any number. A MIB has the name's place here, and that number.
const CONTROLS: &[(&[u8], Control)] = &[
    (b"version", Control::Version),
    (b"epoch", Control::Epoch),
    (b"stats.allocated", Control::Figure(0)),
    (b"stats.active", Control::Figure(1)),
    (b"stats.metadata", Control::Figure(2)),
    (b"stats.resident", Control::Figure(3)),
    (b"stats.mapped", Control::Figure(4)),
    (b"stats.retained", Control::Figure(5)),
    (b"stats.arenas.#.pactive", Control::Pages(1)),
    (b"stats.arenas.#.pdirty", Control::Pages(6)),
    (b"stats.arenas.#.pmuzzy", Control::Zero),
    (b"stats.arenas.#.mapped", Control::Figure(4)),
    (b"stats.arenas.#.retained", Control::Figure(5)),
    (b"stats.arenas.#.resident", Control::Figure(3)),
    (b"arenas.narenas", Control::Arenas),
    (b"arenas.page", Control::PageSize),
    (b"arenas.quantum", Control::Quantum),
    (b"arenas.dirty_decay_ms", Control::Decay),
    (b"arenas.muzzy_decay_ms", Control::Muzzy),
    (b"arena.#.dirty_decay_ms", Control::Decay),
    (b"arena.#.muzzy_decay_ms", Control::Muzzy),
    (b"arena.#.initialized", Control::Flag(true)),
    (b"arena.#.purge", Control::Purge),
    (b"arena.#.decay", Control::Nothing),
    (b"opt.narenas", Control::Arenas),
    (b"opt.dirty_decay_ms", Control::Decay),
    (b"opt.muzzy_decay_ms", Control::Muzzy),
    (b"opt.abort", Control::Flag(false)),
    (b"opt.prof", Control::Flag(false)),
    (b"opt.tcache", Control::Flag(true)),
    (b"opt.zero", Control::Flag(false)),
    (b"opt.xmalloc", Control::Flag(false)),
    (b"opt.background_thread", Control::Flag(false)),
    (b"opt.retain", Control::Flag(true)),
    (b"opt.junk", Control::Text(c"false")),
    (b"opt.percpu_arena", Control::Text(c"disabled")),
    (b"background_thread", Control::NoThread),
    (b"max_background_threads", Control::Zero),
    (b"config.debug", Control::Flag(false)),
    (b"config.fill", Control::Flag(false)),
    (b"config.prof", Control::Flag(false)),
    (b"config.stats", Control::Flag(true)),
    (b"config.utrace", Control::Flag(false)),
    (b"config.xmalloc", Control::Flag(false)),
    (b"config.malloc_conf", Control::Text(c"")),
    (b"thread.arena", Control::Zero),
    (b"thread.idle", Control::Nothing),
    (b"thread.tcache.enabled", Control::Flag(true)),
    (b"thread.tcache.flush", Control::Nothing),
    (b"tcache.create", Control::NewCache),
    (b"tcache.flush", Control::Nothing),
    (b"tcache.destroy", Control::Nothing),
];

/// Returns the place of a name's control. Also returns the number in the name, with its part.
fn find(name: &[u8]) -> Option<(usize, Option<(usize, usize)>)> {
    CONTROLS.iter().enumerate().find_map(|(place, (pattern, _))| {
        let mut number = None;
        let mut wanted = pattern.split(|&byte| byte == b'.');
        for (at, part) in name.split(|&byte| byte == b'.').enumerate() {
            match wanted.next()? {
                b"#" => number = Some((at, digits(part)?)),
                same if same == part => {}
                _ => return None,
            }
        }
        wanted.next().is_none().then_some((place, number))
    })
}

fn digits(text: &[u8]) -> Option<usize> {
    let digit = |&byte: &u8| byte.is_ascii_digit().then(|| usize::from(byte - b'0'));
    let add = |number: usize, byte| number.checked_mul(10)?.checked_add(digit(byte)?);
    if text.is_empty() { None } else { text.iter().try_fold(0, add) }
}

/// The version of the jemalloc whose interface this is, and the real library's name.
const VERSION: &str = concat!("5.3.0-0-g0 (heapwright ", env!("CARGO_PKG_VERSION"), ")\0");

/// Reads and writes a control. Returns 0 or an error: `ENOENT` for an unknown name, `EPERM` for a
/// value that cannot be written, `EFAULT` for a delay below -1. For a value of another size the
/// error is `EINVAL`, and as many bytes as fit are read.
///
/// # Safety
///
/// `name` is a string; `old_size` is null or can be written; `old` is null or has `*old_size` bytes
/// that can be written; `new` has `new_size` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn mallctl(
    name: *const c_char,
    old: *mut c_void,
    old_size: *mut size_t,
    new: *mut c_void,
    new_size: size_t,
) -> c_int {
    // SAFETY: as the caller promises.
    let name = unsafe { CStr::from_ptr(name) };
    match find(name.to_bytes()) {
        // SAFETY: as the caller promises.
        Some((place, _)) => unsafe { control(CONTROLS[place].1, old, old_size, new, new_size) },
        None => libc::ENOENT,
    }
}

/// # Safety
///
/// `name` is a string; `mib` has room for `*length` numbers.
#[unsafe(no_mangle)]
unsafe extern "C" fn mallctlnametomib(
    name: *const c_char,
    mib: *mut size_t,
    length: *mut size_t,
) -> c_int {
    // SAFETY: as the caller promises.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    let Some((place, number)) = find(name) else { return libc::ENOENT };
    let parts = name.split(|&byte| byte == b'.').count();
    // SAFETY: as the caller promises.
    let room = unsafe { *length };
    for at in 0..parts.min(room) {
        let value = match number {
            _ if at == 0 => place,
            Some((its, value)) if its == at => value,
            _ => 0,
        };
        let place = mib.wrapping_add(at);
        // SAFETY: there is room for it, as the caller promises.
        unsafe { place.write(value) };
    }
    // SAFETY: as the caller promises.
    unsafe { length.write(parts.min(room)) };
    0
}

/// # Safety
///
/// As [`mallctl`]; `mib` has `length` numbers.
#[unsafe(no_mangle)]
unsafe extern "C" fn mallctlbymib(
    mib: *const size_t,
    length: size_t,
    old: *mut c_void,
    old_size: *mut size_t,
    new: *mut c_void,
    new_size: size_t,
) -> c_int {
    // SAFETY: there is one at least, as the caller promises.
    let place = if length == 0 { usize::MAX } else { unsafe { *mib } };
    match CONTROLS.get(place) {
        Some((name, control_of)) if name.split(|&byte| byte == b'.').count() == length => {
            // SAFETY: as the caller promises.
            unsafe { control(*control_of, old, old_size, new, new_size) }
        }
        _ => libc::ENOENT,
    }
}

/// The body of [`mallctl`] and [`mallctlbymib`].
///
/// # Safety
///
/// As for these functions: the pointers and the sizes are valid.
unsafe fn control(
    what: Control,
    old: *mut c_void,
    old_size: *mut size_t,
    new: *mut c_void,
    new_size: size_t,
) -> c_int {
    let writes = !new.is_null();
    // The value before the change.
    let decay = options::wanted_ms();
    if matches!(what, Control::Figure(_) | Control::Pages(_))
        && TAKEN_NS.load(Ordering::Relaxed) == 0
    {
        take_figures();
    }
    let can_be_written = match what {
        Control::Epoch => {
            if writes {
                EPOCH.fetch_add(1, Ordering::Relaxed);
                take_figures();
            }
            true
        }
        Control::Decay if writes => {
            if new_size != size_of::<isize>() {
                return libc::EINVAL;
            }
            // SAFETY: these bytes can be read, as the caller promises.
            let ms = unsafe { new.cast::<isize>().read_unaligned() };
            // The written value is the longest delay; 0 means at once.
            if ms < -1 {
                return libc::EFAULT;
            }
            options::set_purge_delay_ms(i32::try_from(ms).unwrap_or(i32::MAX));
            true
        }
        Control::Purge => {
            heap::trim(0);
            true
        }
        // A control that may only be set to its present value.
        Control::Flag(is) if writes && new_size == 1 => {
            // SAFETY: a byte can be read, as the caller promises.
            (unsafe { new.cast::<u8>().read() } != 0) == is
        }
        Control::Nothing | Control::Zero | Control::Arenas | Control::Muzzy | Control::NoThread => {
            true
        }
        _ => false,
    };
    if writes && !can_be_written {
        return libc::EPERM;
    }
    let figure = |number: usize| FIGURES[number].load(Ordering::Relaxed);
    if old.is_null() || old_size.is_null() {
        return 0;
    }
    // SAFETY: as the caller promises.
    let room = unsafe { *old_size };
    let page_size = crate::malloc_family::page_size;
    let value = match what {
        Control::Muzzy => Value::bytes(0),
        Control::NoThread => Value::flag(false),
        Control::Figure(number) => Value::bytes(figure(number)),
        Control::Pages(number) => Value::bytes(figure(number) / page_size()),
        Control::Epoch => Value(EPOCH.load(Ordering::Relaxed).to_ne_bytes(), 8),
        Control::Version => {
            Value::text(CStr::from_bytes_with_nul(VERSION.as_bytes()).unwrap_or(c""))
        }
        Control::PageSize => Value::bytes(page_size()),
        Control::Quantum => Value::bytes(16),
        Control::Arenas => Value::unsigned(1),
        Control::Decay => Value::bytes((decay as isize).cast_unsigned()),
        Control::Flag(is) => Value::flag(is),
        Control::Text(text) => Value::text(text),
        // As wide as the request: pages, or an arena's number.
        Control::Zero if room == size_of::<c_uint>() => Value::unsigned(0),
        Control::Zero => Value::bytes(0),
        Control::NewCache => Value::unsigned(0),
        Control::Purge | Control::Nothing => Value::NONE,
    };
    let copied = room.min(value.1);
    // SAFETY: the value has this number of bytes, and they can be written, as the caller promises.
    unsafe { ptr::copy_nonoverlapping(value.0.as_ptr(), old.cast(), copied) };
    if room == value.1 || value.1 == 0 {
        return 0;
    }
    // SAFETY: as the caller promises.
    unsafe { old_size.write(copied) };
    libc::EINVAL
}

/// Writes the statistics as text, in one piece, with `write` or on stderr. `opts` chooses parts of
/// jemalloc's report, which this report does not have.
///
/// # Safety
///
/// `write` is null or may be called.
#[unsafe(no_mangle)]
unsafe extern "C" fn malloc_stats_print(
    write: Option<unsafe extern "C" fn(*mut c_void, *const c_char)>,
    opaque: *mut c_void,
    _opts: *const c_char,
) {
    let before = errno::get();
    let mut text = introspection::text();
    match write {
        Some(write) => {
            text.byte(0);
            // The text is complete: its last byte is the zero.
            if text.bytes().last() == Some(&0) {
                // SAFETY: the caller's function may be called, and the text ends with a zero.
                unsafe { write(opaque, text.bytes().as_ptr().cast()) };
            }
        }
        None => _ = process::write_all(libc::STDERR_FILENO, text.bytes()),
    }
    errno::set(before);
}
