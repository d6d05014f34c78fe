//! The player: executes a plan as fast as the allocator allows.
//!
//! ```text
//! heapwright play PLAN        under LD_PRELOAD, started by `rounds`
//!
//! one mapping, touched before anything is timed:
//! | slots: pointer, size | mails: pointer, size | windows: threads left | counters |
//! ```
//!
//! The player must not call the measured allocator for itself. So it runs before the command line
//! is parsed, prints with `write`, starts threads with `pthread_create`, and maps its memory. The C
//! library still allocates for its threads.
//!
//! **Written bytes.** Each block gets a stamp of its place in its first eight bytes. One byte of
//! the stamp is also at the block's end, and in each page. Before a free or a resize, stamp and
//! last byte must be unchanged. A resize must move the stamp along. Requested zeros must be zero.
//! So an allocator that gives one block to two threads fails here.
//!
//! **Measurements.** The time from the first operation to the last thread's end, CPU time, and the
//! peak resident size, minus the resident size before the first operation: that is the player's own
//! memory, touched already. The answer is one line of numbers (see [`Answer`]).

use super::plan::{HEAD, Kind, MAGIC, Op, Place, Touch};
use super::results::Answer;
use std::ffi::{CStr, OsString};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

pub(crate) const SUBCOMMAND: &str = "play";

/// The pointer that stands for a failed allocation.
const NONE: *mut u8 = ptr::without_provenance_mut(1);
const PAGE: usize = 4096;
/// The size of a thread's stack, with room for its libraries' variables.
const STACK: usize = 256 << 10;

/// A place that holds a block.
struct Kept {
    block: AtomicPtr<u8>,
    size: AtomicU64,
}

/// The data that all threads share.
struct Stage {
    plan: &'static [u64],
    slots: &'static [Kept],
    mails: &'static [Kept],
    /// The number of threads that have yet to leave each window.
    windows: &'static [AtomicU64],
    touch: u64,
    /// The number of windows, from the first on, that all threads have left.
    complete: AtomicU32,
    ended: AtomicU32,
    missing: AtomicU32,
    failed: AtomicU64,
    wrong: AtomicU64,
}

static STAGE: AtomicPtr<Stage> = AtomicPtr::new(ptr::null_mut());

fn stage() -> &'static Stage {
    // SAFETY: `STAGE` is set before the first operation, and never freed.
    unsafe { &*STAGE.load(Ordering::Acquire) }
}

/// Plays a plan. Returns the exit code.
pub(crate) fn play(plan: &OsString) -> i32 {
    let Some(plan) = mapped_plan(plan) else {
        complain(c"heapwright: play: this is no plan\n");
        return 3;
    };
    let Some(stage) = set_up(plan) else {
        complain(c"heapwright: play: there is no memory for the plan's places\n");
        return 3;
    };
    STAGE.store(ptr::from_ref(stage).cast_mut(), Ordering::Release);
    let before = memory(true);
    let (user, system) = processor();
    let began = now();
    run(0);
    let threads = stage.plan[1] as u32;
    let others = threads - 1;
    wait(|| stage.ended.load(Ordering::Acquire) >= others);
    let wall_ns = now() - began;
    let (user_after, system_after) = processor();
    let after = memory(false);
    let answer = Answer {
        operations: stage.plan[3],
        wall_ns,
        user_ns: user_after - user,
        system_ns: system_after - system,
        resident_before: before.0,
        peak_bytes: after.1.saturating_sub(before.0),
        left_bytes: after.0.saturating_sub(before.0),
        failed: stage.failed.load(Ordering::Relaxed),
        wrong: stage.wrong.load(Ordering::Relaxed),
    };
    print(&answer.numbers());
    if stage.missing.load(Ordering::Relaxed) > 0 {
        complain(c"heapwright: play: a thread could not be started\n");
        return 4;
    }
    0
}

/// Executes a thread's operations from first to last.
fn run(thread: usize) {
    let stage = stage();
    let first = stage.plan[HEAD + 2 * thread] as usize;
    let count = stage.plan[HEAD + 2 * thread + 1] as usize;
    let mut window = None;
    for pair in stage.plan[first..first + 2 * count].chunks_exact(2) {
        let op = Op::unpack([pair[0], pair[1]]);
        if op.kind == Kind::Spawn as u8 {
            stage.spawn(op.size as usize);
        } else if op.kind == Kind::Window as u8 {
            stage.enter(op.size as usize, &mut window);
        } else {
            stage.operate(op);
        }
    }
    stage.leave(window);
}

extern "C" fn begin(thread: *mut libc::c_void) -> *mut libc::c_void {
    run(thread.addr());
    stage().ended.fetch_add(1, Ordering::Release);
    ptr::null_mut()
}

impl Stage {
    fn spawn(&self, thread: usize) {
        let mut attributes = MaybeUninit::<libc::pthread_attr_t>::zeroed();
        let attributes = attributes.as_mut_ptr();
        // SAFETY: the place is writable.
        unsafe { libc::pthread_attr_init(attributes) };
        // SAFETY: `pthread_attr_init` has initialised the attributes.
        unsafe { libc::pthread_attr_setstacksize(attributes, STACK) };
        // A detached thread's stack is reused like that of a joined one.
        // SAFETY: the attributes are initialised, and the state is a valid one.
        unsafe { libc::pthread_attr_setdetachstate(attributes, libc::PTHREAD_CREATE_DETACHED) };
        let mut handle = MaybeUninit::uninit();
        let number = ptr::without_provenance_mut(thread);
        // SAFETY: the attributes are initialised, and the handle's place is writable.
        let error = unsafe { libc::pthread_create(handle.as_mut_ptr(), attributes, begin, number) };
        // SAFETY: the attributes are initialised, and not used again.
        unsafe { libc::pthread_attr_destroy(attributes) };
        if error != 0 {
            // Other threads may wait for the new thread's operations, so this thread executes them.
            self.missing.fetch_add(1, Ordering::Relaxed);
            begin(number);
        }
    }

    fn enter(&self, window: usize, inside: &mut Option<usize>) {
        self.leave(inside.replace(window));
        loop {
            let complete = self.complete.load(Ordering::SeqCst);
            if window <= complete as usize + 1 {
                return;
            }
            futex(&self.complete, libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, complete);
        }
    }

    fn leave(&self, window: Option<usize>) {
        let Some(window) = window else { return };
        if self.windows[window].fetch_sub(1, Ordering::SeqCst) != 1 {
            return;
        }
        loop {
            let complete = self.complete.load(Ordering::SeqCst);
            let next = self.windows.get(complete as usize);
            if next.is_none_or(|left| left.load(Ordering::SeqCst) != 0) {
                return;
            }
            let more = complete + 1;
            let step = (Ordering::SeqCst, Ordering::SeqCst);
            if self.complete.compare_exchange(complete, more, step.0, step.1).is_ok() {
                futex(&self.complete, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, i32::MAX as u32);
            }
        }
    }

    fn kept(&self, place: Place) -> &Kept {
        let all = if place.is_mail { self.mails } else { self.slots };
        &all[place.number as usize]
    }

    /// Takes the block and its size from a place. Waits for a block that is in the mail.
    #[inline]
    fn take(&self, place: Place) -> (*mut u8, usize) {
        let kept = self.kept(place);
        if place.is_mail && kept.block.load(Ordering::Acquire).is_null() {
            wait(|| !kept.block.load(Ordering::Acquire).is_null());
        }
        (kept.block.load(Ordering::Acquire), kept.size.load(Ordering::Relaxed) as usize)
    }

    #[inline]
    fn put(&self, place: Place, block: *mut u8, size: usize) {
        let kept = self.kept(place);
        kept.size.store(size as u64, Ordering::Relaxed);
        kept.block.store(if block.is_null() { NONE } else { block }, Ordering::Release);
    }

    #[inline]
    fn operate(&self, op: Op) {
        let size = op.size as usize;
        if op.kind == Kind::Free as u8 {
            let (block, size) = self.take(op.from);
            if block != NONE {
                self.look(block, size, op.from, size);
                // SAFETY: the block is from the allocator, and this thread's alone.
                unsafe { libc::free(block.cast()) };
            }
        } else if op.kind == Kind::Realloc as u8 {
            let (old, old_size) = self.take(op.from);
            let block = self.resize(old, old_size, op, size);
            let kept = if block.is_null() { old_size } else { size };
            self.put(op.to, if block.is_null() { old } else { block }, kept);
        } else {
            let block = self.get(op, size);
            self.put(op.to, block, size);
        }
    }

    #[inline]
    fn get(&self, op: Op, size: usize) -> *mut u8 {
        let zeroed = op.kind == Kind::Calloc as u8;
        let block = if op.kind == Kind::Malloc as u8 {
            // SAFETY: any size is allowed.
            unsafe { libc::malloc(size) }
        } else if zeroed {
            // SAFETY: any size is allowed; the caller checks for null.
            unsafe { libc::calloc(1, size) }
        } else {
            self.aligned(op, size)
        };
        let block = block.cast::<u8>();
        if block.is_null() {
            self.failed.fetch_add(1, Ordering::Relaxed);
            return block;
        }
        if zeroed {
            self.look_for_zeros(block, size);
        }
        self.stamp(block, 0, size, op.to);
        block
    }

    #[cold]
    fn aligned(&self, op: Op, size: usize) -> *mut libc::c_void {
        let align = (1_usize << op.log2).max(size_of::<usize>());
        let mut block = ptr::null_mut();
        // SAFETY: the place is writable.
        let error = unsafe { libc::posix_memalign(&raw mut block, align, size) };
        if error != 0 {
            return ptr::null_mut();
        }
        if !block.addr().is_multiple_of(align) {
            self.wrong.fetch_add(1, Ordering::Relaxed);
        }
        if op.kind == Kind::AlignedZero as u8 {
            // SAFETY: the block has this many bytes.
            unsafe { block.cast::<u8>().write_bytes(0, size) };
        }
        block
    }

    #[cold]
    fn resize(&self, old: *mut u8, old_size: usize, op: Op, size: usize) -> *mut u8 {
        let old = if old == NONE { ptr::null_mut() } else { old };
        if !old.is_null() {
            self.look(old, old_size, op.from, old_size);
        }
        // Some allocators would free the block at size 0.
        // SAFETY: null, or a block from the allocator that is this thread's alone.
        let block = unsafe { libc::realloc(old.cast(), size.max(1)) }.cast::<u8>();
        if block.is_null() {
            self.failed.fetch_add(1, Ordering::Relaxed);
            if !old.is_null() {
                self.stamp(old, old_size, old_size, op.to);
            }
            return block;
        }
        let kept = if old.is_null() { 0 } else { old_size.min(size) };
        if !old.is_null() {
            self.look_at_start(block, kept.min(8), op.from, old_size);
        }
        self.stamp(block, kept, size, op.to);
        block
    }

    /// Writes to a block of `size` bytes, of which the first `before` were written earlier.
    #[inline]
    fn stamp(&self, block: *mut u8, before: usize, size: usize, place: Place) {
        if self.touch == Touch::None as u64 || size == 0 {
            return;
        }
        let stamp = stamp_of(place, size);
        if self.touch == Touch::All as u64 && size > before {
            // SAFETY: inside the block.
            let rest = unsafe { block.add(before) };
            // SAFETY: the rest of the block, which is live.
            unsafe { rest.write_bytes(stamp[0], size - before) };
        } else {
            // Any byte of a page in the block will do.
            let mut at = before.next_multiple_of(PAGE);
            while at < size {
                // SAFETY: inside the block.
                let byte = unsafe { block.add(at) };
                // SAFETY: a byte of the block, which is live.
                unsafe { byte.write_volatile(stamp[0]) };
                at += PAGE;
            }
        }
        // SAFETY: inside the block.
        let last = unsafe { block.add(size - 1) };
        // SAFETY: the last byte of the block, which is live.
        unsafe { last.write_volatile(stamp[7]) };
        let start = size.min(8);
        // SAFETY: inside the block.
        unsafe { ptr::copy_nonoverlapping(stamp.as_ptr(), block, start) };
    }

    #[inline]
    fn look(&self, block: *mut u8, size: usize, place: Place, stamped: usize) {
        if self.touch == Touch::None as u64 || size == 0 {
            return;
        }
        self.look_at_start(block, size.min(8), place, stamped);
        // SAFETY: inside the block.
        let last = unsafe { block.add(size - 1) };
        // SAFETY: a byte of the block, which is live.
        let last = unsafe { last.read_volatile() };
        let stamp = stamp_of(place, stamped);
        // In small blocks the stamp overlaps the last byte.
        if last != if size <= 8 { stamp[size - 1] } else { stamp[7] } {
            self.wrong.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[inline]
    fn look_at_start(&self, block: *mut u8, length: usize, place: Place, stamped: usize) {
        if self.touch == Touch::None as u64 {
            return;
        }
        let stamp = stamp_of(place, stamped);
        let mut found = [0_u8; 8];
        // SAFETY: at most 8 bytes, all inside the block.
        unsafe { ptr::copy_nonoverlapping(block, found.as_mut_ptr(), length) };
        if found[..length] != stamp[..length] {
            self.wrong.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Checks that the bytes to be written later are zero.
    fn look_for_zeros(&self, block: *mut u8, size: usize) {
        if self.touch == Touch::None as u64 || size == 0 {
            return;
        }
        let mut sum = 0;
        let step = if self.touch == Touch::All as u64 { 1 } else { PAGE };
        let places = (0..size).step_by(step).chain(0..size.min(8)).chain([size - 1]);
        for at in places {
            // SAFETY: inside the block.
            let byte = unsafe { block.add(at) };
            // SAFETY: a byte of the block, which the allocator has made zero.
            sum |= unsafe { byte.read_volatile() };
        }
        if sum != 0 {
            self.wrong.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[inline]
fn stamp_of(place: Place, size: usize) -> [u8; 8] {
    let word = u64::from(place.number) << 1 | u64::from(place.is_mail);
    (word ^ (size as u64) << 33).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()
}

/// Waits until `is_so` is true: first spinning, then yielding, then sleeping.
#[cold]
fn wait(is_so: impl Fn() -> bool) {
    let mut tries = 0_u32;
    while !is_so() {
        tries += 1;
        if tries < 100 {
            std::hint::spin_loop();
        } else if tries < 120 {
            // SAFETY: no preconditions.
            unsafe { libc::sched_yield() };
        } else {
            let time = libc::timespec { tv_sec: 0, tv_nsec: 50_000 };
            // SAFETY: the time is valid, and the remaining time may be null.
            unsafe { libc::nanosleep(&raw const time, ptr::null_mut()) };
        }
    }
}

fn futex(word: &AtomicU32, what: i32, value: u32) {
    let none = ptr::null::<libc::timespec>();
    // SAFETY: the word lives as long as the process.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), what, value, none) };
}

fn mapped_plan(path: &OsString) -> Option<&'static [u64]> {
    let mut name = [0_u8; 4096];
    let bytes = path.as_bytes();
    name.get_mut(..bytes.len())?.copy_from_slice(bytes);
    let name = CStr::from_bytes_until_nul(&name).ok()?;
    // SAFETY: the name ends in NUL.
    let file = unsafe { libc::open(name.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return None;
    }
    // SAFETY: the file is open.
    let length = unsafe { libc::lseek(file, 0, libc::SEEK_END) };
    let length = usize::try_from(length).ok()?;
    let flags = libc::MAP_PRIVATE | libc::MAP_POPULATE;
    // SAFETY: a new mapping, which replaces nothing.
    let at = unsafe { libc::mmap(ptr::null_mut(), length, libc::PROT_READ, flags, file, 0) };
    if at == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: mapped for the life of the process, and a multiple of a page.
    let words = unsafe { std::slice::from_raw_parts(at.cast::<u64>(), length / 8) };
    let is_plan = words.len() >= HEAD
        && words[0] == MAGIC
        && words[1] >= 1
        && words[7] as usize == words.len();
    is_plan.then_some(words)
}

/// Maps memory for the player itself, and touches it.
fn mapped(bytes: usize) -> Option<*mut u8> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, which replaces nothing.
    let at = unsafe { libc::mmap(ptr::null_mut(), bytes.max(1), access, flags, -1, 0) };
    (at != libc::MAP_FAILED).then_some(at.cast())
}

/// Maps a slice of values that are valid as zeros.
fn many<T>(count: usize) -> Option<&'static [T]> {
    let at = mapped(count.checked_mul(size_of::<T>())?)?.cast::<T>();
    // SAFETY: fresh zeros of this length for the life of the process. Callers use only atomics, for
    // which zeros are valid.
    Some(unsafe { std::slice::from_raw_parts(at, count) })
}

fn set_up(plan: &'static [u64]) -> Option<&'static Stage> {
    let [_, threads, windows, _, slots, mails, touch, ..] = *plan else { return None };
    let counts: &'static [AtomicU64] = many(windows as usize)?;
    let first = HEAD + 2 * threads as usize;
    for (count, word) in counts.iter().zip(plan.get(first..)?) {
        count.store(*word, Ordering::Relaxed);
    }
    let place = mapped(size_of::<Stage>())?.cast::<Stage>();
    let stage = Stage {
        plan,
        slots: many(slots as usize)?,
        mails: many(mails as usize)?,
        windows: counts,
        touch,
        complete: AtomicU32::new(0),
        ended: AtomicU32::new(0),
        missing: AtomicU32::new(0),
        failed: AtomicU64::new(0),
        wrong: AtomicU64::new(0),
    };
    // SAFETY: mapped, large enough, and a multiple of a page.
    unsafe { place.write(stage) };
    // SAFETY: written above; it stays for the life of the process.
    Some(unsafe { &*place })
}

fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Returns the nanoseconds of CPU time in user mode and in the kernel.
fn processor() -> (u64, u64) {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the place is writable.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    // SAFETY: zeroed is valid, and the call has filled it since.
    let usage = unsafe { usage.assume_init() };
    let ns = |time: libc::timeval| {
        time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_usec.unsigned_abs() * 1000
    };
    (ns(usage.ru_utime), ns(usage.ru_stime))
}

/// Returns the resident bytes now, and their peak since the last call with `forget_peak`.
fn memory(forget_peak: bool) -> (u64, u64) {
    if forget_peak {
        // If the kernel refuses, the peak is that of the process's life, hardly more than the
        // present size.
        // SAFETY: the name ends in NUL.
        let file = unsafe { libc::open(c"/proc/self/clear_refs".as_ptr(), libc::O_WRONLY) };
        // SAFETY: the text has one byte; an invalid descriptor is refused.
        unsafe { libc::write(file, c"5".as_ptr().cast(), 1) };
        // SAFETY: the descriptor is this function's, or invalid.
        unsafe { libc::close(file) };
    }
    let mut text = [0_u8; 4096];
    // SAFETY: the name ends in NUL.
    let file = unsafe { libc::open(c"/proc/self/status".as_ptr(), libc::O_RDONLY) };
    // SAFETY: the pointer and the length are the array's.
    let got = unsafe { libc::read(file, text.as_mut_ptr().cast(), text.len()) };
    // SAFETY: the descriptor is this function's, or invalid.
    unsafe { libc::close(file) };
    let text = text.get(..usize::try_from(got).unwrap_or(0)).unwrap_or_default();
    let of = |name: &[u8]| {
        let line = text.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(name));
        let digits = line.unwrap_or_default().iter().filter(|byte| byte.is_ascii_digit());
        digits.fold(0_u64, |sum, &byte| sum * 10 + u64::from(byte - b'0')) * 1024
    };
    (of(b"VmRSS:"), of(b"VmHWM:"))
}

fn print(numbers: &[u64]) {
    let mut line = [0_u8; 32 * 16];
    let mut length = 0;
    for &number in numbers {
        let mut digits = [0_u8; 20];
        let (mut at, mut rest) = (digits.len(), number);
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        let digits = &digits[at..];
        line[length..length + digits.len()].copy_from_slice(digits);
        length += digits.len();
        line[length] = b' ';
        length += 1;
    }
    line[length] = b'\n';
    // SAFETY: the pointer and the length are inside the array.
    unsafe { libc::write(1, line.as_ptr().cast(), length + 1) };
}

fn complain(text: &CStr) {
    // SAFETY: the pointer and the length are the text's.
    unsafe { libc::write(2, text.as_ptr().cast(), text.count_bytes()) };
}
