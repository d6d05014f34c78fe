//! A back end on `std`, for Miri and for targets without the `linux` back end.
//!
//! ```text
//! system    pages, environment: unix, windows; elsewhere, and under Miri, Rust's own allocator
//! the rest  threads, clock: std; functions that std lacks do nothing
//! ```
//!
//! Miri checks the provenance, aliasing, initialisation and data races of the heap itself. On other
//! systems pools, arenas, collected heaps and the debug wrappers use this back end. It has no
//! guards, sleeping locks, signals or fork handlers: waiting threads yield, and a forked process
//! continues with one thread.

extern crate std;

use core::cell::Cell;
use core::ffi::CStr;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;

use super::{EXITS, Exit, Memory};

#[cfg_attr(all(unix, not(miri)), path = "portable/unix.rs")]
#[cfg_attr(all(windows, not(miri)), path = "portable/windows.rs")]
#[cfg_attr(any(miri, not(any(unix, windows))), path = "portable/allocator.rs")]
mod system;

/// The table of the address map is an allocation of its own here.
pub const TABLE_ADJACENT: bool = false;

/// The largest window tried.
pub const MAX_WINDOW: usize = system::MAX_WINDOW;

/// Runs `call`. `errno` does not matter here.
pub fn keeping_errno<T>(call: impl FnOnce() -> T) -> T {
    call()
}

/// Does nothing: `errno` does not matter here.
pub fn set_errno(_value: i32) {}

/// The argument of `set_errno` if there is no memory.
pub const ENOMEM: i32 = 12;

/// The running process's memory.
#[derive(Clone, Copy)]
pub struct System;

/// Does nothing: only the Linux back end can pretend.
pub fn pretend_page_size(_size: usize) {}

/// The kernel's page size.
pub fn kernel_page_size() -> usize {
    system::page_size()
}

/// Bytes in a huge page.
pub const HUGE_PAGE: usize = 2 << 20;
/// Whether the system may have huge pages.
pub const HAS_HUGE_PAGES: bool = false;

/// Does nothing.
/// # Safety
/// None is needed.
pub unsafe fn put_huge_page(_at: *mut u8) {}

/// Does nothing.
/// # Safety
/// None is needed.
pub unsafe fn advise_huge_pages(_at: *mut u8, _size: usize, _want: bool) {}

/// Does nothing: all memory is present.
/// # Safety
/// None is needed.
pub unsafe fn populate(_at: *mut u8, _size: usize) {}

impl Memory for System {
    fn page_size(&self) -> usize {
        kernel_page_size()
    }

    fn reserve(&self, size: usize, align: usize) -> *mut u8 {
        system::reserve(size, align)
    }

    fn reserve_at(&self, _at: usize, _size: usize) -> *mut u8 {
        ptr::null_mut()
    }

    unsafe fn release(&self, at: *mut u8, size: usize) -> bool {
        // SAFETY: by the contract the range is the caller's reservation, and no thread uses it.
        unsafe { system::release(at, size) }
    }

    unsafe fn commit(&self, at: *mut u8, size: usize) -> bool {
        // SAFETY: by the contract the range is the caller's reservation.
        unsafe { system::commit(at, size) }
    }

    unsafe fn expose(&self, _at: *mut u8, _size: usize) -> bool {
        false
    }

    unsafe fn decommit(&self, at: *mut u8, size: usize) -> bool {
        // SAFETY: by the contract the range is the caller's, committed and unused.
        unsafe { system::decommit(at, size) }
    }

    fn address_space_limit(&self) -> Option<usize> {
        None
    }
}

/// False: [`guard`] guards nothing, so callers must not rely on faults.
pub const HAS_GUARDS: bool = false;

/// Guards nothing.
/// # Safety
/// As on Linux.
pub unsafe fn guard(_at: *mut u8, _size: usize) -> bool {
    false
}

/// No such limit is known here.
pub fn has_data_limit() -> bool {
    false
}

/// Nothing was guarded.
/// # Safety
/// As on Linux.
pub unsafe fn unguard(_at: *mut u8, _size: usize) -> bool {
    true
}

/// There are no guards here.
pub fn guards_are_light() -> bool {
    false
}

/// Shuts nothing.
/// # Safety
/// As on Linux.
pub unsafe fn shut(_at: *mut u8, _size: usize) -> bool {
    false
}

/// Seals nothing.
/// # Safety
/// As on Linux.
pub unsafe fn seal(_at: *mut u8, _size: usize) {}

/// There are no modules here.
pub fn some_module_has_its_own_new() -> bool {
    false
}

/// Fills `bytes` with values that differ between calls. No caller here needs secret values.
pub fn random(bytes: &mut [u8]) {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let mut state = u64::from(CALLS.fetch_add(1, Ordering::Relaxed));
    for byte in bytes {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        *byte = (state >> 56) as u8;
    }
}

/// Does nothing.
/// # Safety
/// None is needed.
pub unsafe fn keep_out_of_dumps(_at: *mut u8, _size: usize) {}

/// Not known here.
pub fn is_more_than_there_is(_size: usize) -> bool {
    false
}

/// Does nothing: no code here reads the ranges.
pub fn note_own(_at: usize, _size: usize) {}

/// Pages cannot be moved here.
/// # Safety
/// None is needed.
pub unsafe fn move_pages(_from: *mut u8, _to: *mut u8, _size: usize) -> Option<usize> {
    Some(0)
}

/// Residency is unknown here.
pub fn resident_pages(_at: usize, _size: usize, _resident: &mut [u8]) -> bool {
    false
}

/// Waits a moment.
pub fn futex_wait(word: &AtomicU32, expected: u32) {
    if word.load(Ordering::Relaxed) == expected {
        std::thread::yield_now();
    }
}

/// Waits a moment.
pub fn futex_wait_for(word: &AtomicU32, expected: u32, _ns: u64) {
    if word.load(Ordering::Acquire) == expected {
        std::thread::yield_now();
    }
}

/// The number of CPUs that the process may use; at least one.
pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// No thread sleeps here.
pub fn futex_wake_all(_word: &AtomicU32) {}

/// Waiters here look again by themselves.
pub fn futex_wake_one(_word: &AtomicU32) {}

/// Names are not used here.
pub fn name_thread(_name: &CStr) {}

/// The signals that a thread had blocked. No thread is interrupted here.
#[derive(Clone, Copy)]
pub struct SignalMask;

impl SignalMask {
    /// None.
    pub const NONE: Self = Self;
}

/// Blocks nothing.
pub fn block_signals() -> SignalMask {
    SignalMask
}

/// Nothing was blocked.
pub fn restore_signals(_before: SignalMask) {}

/// Starts no thread. Callers must do without.
pub fn spawn(_run: extern "C" fn(*mut c_void) -> *mut c_void, _with: *mut c_void) -> bool {
    false
}

/// Lets other threads run.
pub fn yield_now() {
    std::thread::yield_now();
}

/// There is no such fence here.
pub fn register_barrier() -> bool {
    false
}

/// There is no such fence here.
pub fn barrier_in_all_threads() -> bool {
    false
}

/// The clock: a thread's CPU time is unknown here.
pub fn thread_cpu_ns() -> u64 {
    now_ns()
}

/// The clock: the process's CPU time is unknown here.
pub fn process_cpu_ns() -> u64 {
    now_ns()
}

/// Nanoseconds on a monotonic clock.
pub fn now_ns() -> u64 {
    static START: OnceLock<std::time::Instant> = OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed().as_nanos() as u64
}

/// Milliseconds on a monotonic clock.
pub fn coarse_ms() -> u32 {
    (now_ns() / 1_000_000) as u32
}

/// Writes bytes to standard error.
pub fn write_stderr(bytes: &[u8]) {
    use std::io::Write;
    std::io::stderr().write_all(bytes).ok();
}

/// Ends the process.
pub fn abort() -> ! {
    std::process::abort()
}

/// The system has no pages for memory that counts as committed.
#[cfg(not(miri))]
fn lost_memory() -> ! {
    write_stderr(b"heapwright: the system has no memory for pages that it took back\n");
    abort()
}

/// The process id.
pub fn new_process_id() -> u32 {
    process_id()
}

/// The process id.
pub fn process_id() -> u32 {
    if cfg!(miri) { 1 } else { std::process::id() }
}

/// Not known here.
pub fn parent_id() -> u32 {
    0
}

/// The program has no file.
pub fn program_path(_out: &mut [u8]) -> usize {
    0
}

/// No files are written here.
pub fn save_file(_path: &[u8], _write: impl FnOnce(i32) -> bool) -> bool {
    false
}

/// No files are written here.
pub fn write_all(_file: i32, _bytes: &[u8]) -> bool {
    false
}

/// Writes nothing: there are no files.
pub fn append_file(_path: &[u8], _bytes: &[u8], _make: bool) -> bool {
    false
}

/// Not known here.
#[cfg(feature = "debug")]
pub fn program_headers() -> &'static [u8] {
    &[]
}

/// Not here: processes share no files.
#[cfg(feature = "debug")]
pub fn map_sealed(_path: &CStr, _offset: usize, _size: usize) -> *mut u8 {
    core::ptr::null_mut()
}

/// See the Linux back end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotAppended {
    /// The file cannot be opened.
    Closed,
    /// The disk is full, or the process may write no larger file.
    Full,
}

/// Writes nothing.
/// # Errors
/// Always.
pub fn append_whole(_path: &[u8], _bytes: &[u8], _make: bool) -> Result<(), NotAppended> {
    Err(NotAppended::Closed)
}

/// Not known here.
pub fn current_folder(_out: &mut [u8]) -> usize {
    0
}

/// No files are read here.
#[cfg(feature = "debug")]
pub fn map_file(_path: &CStr) -> Option<&'static [u8]> {
    None
}

/// No files are read here.
pub fn read_file(_: &CStr, _: &mut [u8], _: impl FnMut(&[u8]) -> bool) -> bool {
    false
}

/// Threads inherit nothing here.
#[cfg(feature = "debug")]
pub fn mark() -> u64 {
    0
}

/// Threads inherit nothing here.
#[cfg(feature = "debug")]
pub fn set_mark(_mark: u64) {}

/// Not known here.
#[cfg(feature = "debug")]
pub fn is_running(_thread: u32) -> bool {
    false
}

/// Sleeps for a millisecond.
#[cfg(feature = "debug")]
pub fn nap() {
    std::thread::sleep(core::time::Duration::from_millis(1));
}

/// Modules are unknown here.
#[cfg(feature = "debug")]
pub fn each_data_segment(_visit: &mut dyn FnMut(usize, usize)) {}

/// The thread's number: its token.
pub fn thread_id() -> u32 {
    (thread_token() >> 4) as u32 | 1
}

/// Not known here.
pub fn unix_ns() -> u64 {
    0
}

/// No facts are needed in advance here.
pub fn begin() {}

/// Nothing is noted here.
pub fn renew_stderr() {}

/// No facts are stored here.
pub fn remember() {}

/// True: assumed.
pub fn can_write_stderr() -> bool {
    true
}

/// No file is made here.
pub fn replace_private_file(_path: &[u8], _write: impl FnOnce(i32) -> bool) -> bool {
    false
}

/// There are no users here.
#[cfg(feature = "debug")]
pub fn give_file(_path: &[u8], _from: u32, _to: u32) {}

/// There are no users here.
#[cfg(feature = "debug")]
pub fn make_folder_of(_user: u32, _path: &[u8], _folder: &[u8], _base: &[u8]) {}

/// There is no shared memory here.
pub fn shared_memory(_size: usize) -> Option<*mut u8> {
    None
}

/// Not known here.
pub fn process_namespace() -> u32 {
    0
}

/// There are no users here.
pub fn user_id() -> u32 {
    0
}

/// The name of the process is unknown here.
pub fn process_name() -> [u8; 16] {
    [0; 16]
}

/// Not known here.
pub fn is_privileged() -> bool {
    false
}

/// No library is built with default options here.
pub fn default_options() -> &'static [u8] {
    b""
}

/// Whether an environment variable is set.
pub fn has_variable<const N: usize>(name: &[u8; N]) -> bool {
    environment(name, &mut []).is_some()
}

/// Copies the value of an environment variable into `out`, as far as it fits. Returns its whole
/// length, or `None` if it is not set.
pub fn environment<const N: usize>(name: &[u8; N], out: &mut [u8]) -> Option<usize> {
    system::environment(name, out)
}

/// Resident bytes are unknown here.
pub fn resident_bytes() -> (u64, u64) {
    (0, 0)
}

/// Not known here.
pub fn resident_now() -> usize {
    0
}

/// A mapping.
#[derive(Clone, Copy)]
pub struct Mapping {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// May be read.
    pub readable: bool,
    /// May be written.
    pub writable: bool,
}

impl Mapping {
    /// Room for a name, in bytes.
    pub const NAME: usize = 0;

    /// The kernel's name for it.
    pub fn name(&self) -> &[u8] {
        b""
    }
}

/// The system did not tell.
#[derive(Clone, Copy, Debug)]
pub struct Unknown;

/// Not known here.
pub fn is_readable(_address: usize) -> bool {
    false
}

/// Mappings are unknown here.
pub fn each_mapping(_visit: &mut dyn FnMut(&Mapping) -> bool) -> bool {
    false
}

/// Not known here.
#[cfg(feature = "debug")]
pub fn has_interpreter() -> bool {
    true
}

/// Mappings are unknown here.
pub fn why_no_mappings() -> Option<&'static str> {
    None
}

/// Mappings are unknown here.
pub fn mapping_of(_address: usize) -> Result<Option<Mapping>, Unknown> {
    Ok(None)
}

/// Stacks are unknown here.
pub fn is_on_this_stack(_address: usize) -> bool {
    false
}

/// Not known here.
pub fn is_single_threaded() -> bool {
    false
}

/// The C library's `free` is not used here.
pub fn libc_free() -> Option<unsafe extern "C" fn(*mut u8)> {
    None
}

/// The C library's heap is not used here.
pub fn libc_heap() -> Option<super::LibcHeap> {
    None
}

/// Symbols are unknown here.
#[cfg(not(feature = "interpose"))]
pub fn symbol(_name: &CStr) -> *mut u8 {
    ptr::null_mut()
}

static ON_EXIT: [OnceLock<unsafe extern "C" fn(*mut c_void)>; EXITS] =
    [const { OnceLock::new() }; EXITS];

struct ExitWatch([Cell<*mut c_void>; EXITS]);

impl Drop for ExitWatch {
    fn drop(&mut self) {
        for (run, token) in ON_EXIT.iter().zip(&self.0) {
            if let (Some(run), false) = (run.get(), token.get().is_null()) {
                // SAFETY: the token belongs to this exit function.
                unsafe { run(token.get()) };
            }
        }
    }
}

std::thread_local! {
    static WATCH: ExitWatch =
        const { ExitWatch([const { Cell::new(ptr::null_mut()) }; EXITS]) };
}

/// Sets the function that runs at the end of a watched thread.
pub fn on_thread_exit(exit: Exit, run: unsafe extern "C" fn(*mut c_void)) -> bool {
    ON_EXIT[exit as usize].set(run).is_ok()
}

/// Makes the exit function run with `token` at the end of this thread.
pub fn watch_this_thread(exit: Exit, token: *mut c_void) -> bool {
    WATCH.try_with(|watch| watch.0[exit as usize].set(token)).is_ok()
}

/// The last token of [`watch_this_thread`]; null: none.
pub fn watched(exit: Exit) -> *mut c_void {
    WATCH.try_with(|watch| watch.0[exit as usize].get()).unwrap_or(ptr::null_mut())
}

/// A number that no other thread of the process has while the calling thread lives.
pub fn thread_token() -> usize {
    tls::token()
}

/// There is no fork here, so streams need no lock.
pub fn lock_streams() {}

/// See [`lock_streams`].
pub fn unlock_streams() {}

/// See [`lock_streams`].
pub fn reset_streams() {}

/// There is no fork here.
pub fn around_fork(
    _before: unsafe extern "C" fn(),
    _in_parent: unsafe extern "C" fn(),
    _in_child: unsafe extern "C" fn(),
) {
}

/// Four words per thread.
pub mod tls {
    extern crate std;
    use core::cell::Cell;
    use core::ptr;

    std::thread_local! {
        static FAST: Cell<*mut u8> = const { Cell::new(ptr::null_mut()) };
        static OWN: Cell<*mut u8> = const { Cell::new(ptr::null_mut()) };
        static INDEX: Cell<usize> = const { Cell::new(0) };
        static LOCKS: Cell<usize> = const { Cell::new(0) };
    }

    /// The address of the words, which have no destructor.
    pub(super) fn token() -> usize {
        FAST.with(|cell| ptr::from_ref(cell).addr())
    }

    /// Nothing: the words are below, and `fast` gets the sentinel from its caller.
    #[macro_export]
    #[doc(hidden)]
    macro_rules! define_words {
        ($sentinel:path) => {};
    }
    pub use define_words;

    /// The thread's fast word; `sentinel` as long as none was set.
    #[inline]
    pub fn fast(sentinel: *const u8) -> *mut u8 {
        let word = FAST.with(Cell::get);
        if word.is_null() { sentinel.cast_mut() } else { word }
    }

    /// Sets the thread's fast word.
    pub fn set_fast(word: *mut u8) {
        FAST.with(|cell| cell.set(word));
    }

    /// The thread's thread word.
    #[inline]
    pub fn own() -> *mut u8 {
        OWN.with(Cell::get)
    }

    /// Sets the thread's thread word.
    pub fn set_own(word: *mut u8) {
        OWN.with(|cell| cell.set(word));
    }

    /// The word of the thread's index, or 0 (see `registry::thread_index`).
    #[inline]
    pub fn thread_index() -> usize {
        INDEX.with(Cell::get)
    }

    /// Sets the word of the thread's index.
    pub fn set_thread_index(word: usize) {
        INDEX.with(|cell| cell.set(word));
    }

    /// The number of locks that the thread has, or is about to have.
    #[inline]
    pub fn locks() -> usize {
        LOCKS.with(Cell::get)
    }

    /// Sets the number of locks that the thread has.
    #[inline]
    pub fn set_locks(locks: usize) {
        LOCKS.with(|cell| cell.set(locks));
    }
}

pub mod rseq {
    //! Restartable sequences: there are none here.

    /// None: no thread has an area.
    pub fn offset() -> Option<isize> {
        None
    }

    /// False: there are no areas.
    pub fn is_ours() -> bool {
        false
    }

    /// False: there are no areas.
    pub fn enter(_watched: impl FnOnce() -> bool) -> bool {
        false
    }

    /// Nothing: no thread has an area.
    pub fn leave() {}

    /// No CPU is known.
    pub fn cpu(_offset: isize) -> Option<usize> {
        None
    }

    /// The first CPU.
    pub fn current_cpu() -> usize {
        0
    }

    /// The number of CPUs.
    pub fn possible_cpus() -> usize {
        super::cpus()
    }

    /// False: there are no areas.
    pub fn numbers_are_below(_most: usize) -> bool {
        false
    }

    /// False: there is no such fence.
    pub fn register_fence() -> bool {
        false
    }

    /// False: there is no such fence.
    pub fn fence(_cpu: Option<usize>) -> bool {
        false
    }
}

/// Neither registers nor the end of the stack are known here.
pub const SAVED_REGISTERS: usize = 1;

/// The stack is not scanned.
pub fn save_registers(_into: &mut [usize; SAVED_REGISTERS]) -> usize {
    usize::MAX
}
