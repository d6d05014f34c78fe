//! The trace: a file with every call for memory, for `heapwright replay`.
//!
//! ```text
//!   heap      allocated(request, block)           once the block exists
//!             freed(block)                        before it is given back
//!             realloc_begins(block)  realloc_ends(block, size)
//!     |  one operation, under one lock
//!     v
//!   | head | ms | Thread 1 | Malloc | Free | Thread 2 | Malloc | ...... 64 KiB |
//!     |  full, a second old, or the process ends: one write
//!     v
//!   PREFIX.<pid>          (the format: `heapwright_record::trace`)
//! ```
//!
//! While the trace is on (`trace=PREFIX`), threads' fast words lead to a front (see
//! `options::detailed`), so every call is observed (`heap::modes`).
//!
//! One buffer and one lock serve all threads, so the file's order is the order in which memory
//! changed hands. A free is written before its block is reused, and an allocation once it has its
//! block. A realloc is written in two halves, because other threads may get the old block before
//! the new block exists. The heap's own steps in between are not written.
//!
//! A signal handler that interrupted the writing thread cannot write. The trace ends there. Called
//! by `heap::modes`, `heap::start`, and the C layer at the process's end.

use core::ffi::c_void;
use core::ptr;

use crate::files::{self, PATH, Prefix};
use crate::fork::{self, Part};
use crate::options;
use crate::os::{self, Exit};
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{self, Lock};
use crate::text::Line;
use heapwright_record::trace::{
    BEFORE, BEHIND, Coder, End, HEADER, Operation, Process, begin_operations, seal,
};

use crate::request::Request;
use crate::size_class::MIN_ALIGN;

const CHUNK: usize = 64 << 10;
/// The most bytes of an operation, with its time and thread, and of the chunk's end.
const ROOM: usize = 3 * Coder::MOST + BEHIND;
/// The longest time that an operation waits in the buffer, if another follows.
const PATIENCE_MS: u32 = 1000;

/// The bits of a thread's word, which a pthread key holds. Operations in destructors that run after
/// the key's are still written.
///
/// ```text
///   number | busy: it writes | late: its end was written | quiet: in a realloc   0: no number yet
///   61 ..    bit 2             bit 1                       bit 0
/// ```
const QUIET: usize = 1;
const LATE: usize = 2;
const BUSY: usize = 4;
const ONE: usize = 8;

static ON: AtomicBool = AtomicBool::new(false);
static IS_CHILD: AtomicBool = AtomicBool::new(false);
static IS_LOST: AtomicBool = AtomicBool::new(false);
/// The token of the thread that forks and holds the recorder's lock, or will soon hold it; or 0.
static FORKER: AtomicUsize = AtomicUsize::new(0);
static RECORDER: Lock<Recorder> = Lock::new(Recorder::new());

#[inline(always)]
pub(crate) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

pub(crate) fn start() {
    let Some(prefix) = options::trace_file() else { return };
    if !os::on_thread_exit(Exit::Trace, thread_ends) {
        Line::new().text("no trace: the C library has no thread key left").write();
        return;
    }
    let mut recorder = RECORDER.lock();
    recorder.prefix.set(prefix);
    // The trace of a program without calls also has a file.
    recorder.begin();
    ON.store(true, Ordering::Relaxed);
}

pub(crate) fn begun() {
    if is_on() {
        fork::join(Part::Trace, &HANDLERS);
        // In the parent these handlers run last, when all locks are released.
        os::around_fork(nothing, in_parent, nothing);
    }
}

#[inline(always)]
pub(crate) fn allocated(request: Request, block: *mut u8) {
    if is_on() && !block.is_null() {
        write_allocated(request, block);
    }
}

#[cold]
#[inline(never)]
fn write_allocated(Request { size, align, zero, .. }: Request, block: *mut u8) {
    let (block, size) = (name(block), size as u64);
    write(if align > MIN_ALIGN {
        Operation::Aligned { block, size, log2: align.trailing_zeros() as u8, zero }
    } else if zero {
        Operation::Calloc { block, size }
    } else {
        Operation::Malloc { block, size }
    });
}

#[inline(always)]
pub(crate) fn freed(block: *mut u8) {
    if is_on() {
        write(Operation::Free { block: name(block) });
    }
}

/// Writes the start of a resize. If this returns true, [`realloc_ends`] must follow.
#[inline(always)]
pub(crate) fn realloc_begins(block: *mut u8) -> bool {
    is_on() && write_realloc(block)
}

#[cold]
#[inline(never)]
fn write_realloc(block: *mut u8) -> bool {
    let word = word();
    if word & QUIET != 0 {
        return false;
    }
    write(Operation::ReallocBegin { block: name(block) });
    set_word(word | QUIET);
    true
}

/// Writes the end of a resize. A null `block` means that the old block is unchanged.
#[cold]
#[inline(never)]
pub(crate) fn realloc_ends(block: *mut u8, size: usize) {
    set_word(word() & !QUIET);
    write(if block.is_null() {
        Operation::ReallocFailed
    } else {
        Operation::ReallocEnd { block: name(block), size: size as u64 }
    });
}

/// Writes the operations in the buffer and the trace's end, before the process ends. Later
/// operations of other threads are not written. A C layer that sees the end must call this once.
///
/// ```
/// heapwright::heap::trace_at_exit();
/// ```
pub fn trace_at_exit() {
    if is_on() {
        record(word(), Recorder::end);
    }
}

/// Returns whether every call is traced (`trace=PREFIX`). Reads the options if necessary.
///
/// ```
/// assert!(!heapwright::heap::traces());
/// ```
#[must_use]
pub fn traces() -> bool {
    options::trace_file().is_some()
}

/// Returns a block's name, unique among live blocks.
fn name(block: *mut u8) -> u64 {
    (block.addr() / MIN_ALIGN) as u64
}

#[cold]
#[inline(never)]
fn write(operation: Operation) {
    let word = word();
    if word & QUIET == 0 {
        record(word, |recorder| recorder.put((word / ONE) as u64, operation));
    }
}

fn record(word: usize, with: impl FnOnce(&mut Recorder)) {
    // A signal handler must not wait for the operation that it interrupted in its own thread. (A
    // thread that holds all locks for a fork has blocked all signals.)
    let is_forking = FORKER.load(Ordering::Relaxed) == os::thread_token();
    if (word & BUSY != 0 || is_forking) && !sync::holds_all() {
        return IS_LOST.store(true, Ordering::Relaxed);
    }
    set_word(word | BUSY);
    with(&mut RECORDER.lock());
    set_word(word);
}

fn word() -> usize {
    match os::watched(Exit::Trace).addr() {
        0 => new_word(),
        word => word,
    }
}

fn set_word(word: usize) {
    os::watch_this_thread(Exit::Trace, ptr::without_provenance_mut(word));
}

/// The thread that now gets its word (0: none), and the word.
static GIVEN_TO: AtomicUsize = AtomicUsize::new(0);
static GIVEN: AtomicUsize = AtomicUsize::new(0);

#[cold]
fn new_word() -> usize {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let me = os::thread_token();
    if GIVEN_TO.load(Ordering::Relaxed) == me {
        // The C library is allocating memory for the word.
        return GIVEN.load(Ordering::Relaxed);
    }
    while GIVEN_TO.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed).is_err() {
        os::yield_now();
    }
    let word = NEXT.fetch_add(1, Ordering::Relaxed) as usize * ONE;
    GIVEN.store(word, Ordering::Relaxed);
    set_word(word);
    GIVEN_TO.store(0, Ordering::Release);
    word
}

unsafe extern "C" fn thread_ends(token: *mut c_void) {
    let word = token.addr();
    // The word is set again, because later destructors may allocate.
    set_word(word | LATE);
    if word & LATE == 0 {
        write(Operation::ThreadEnd);
    }
}

/// The forking thread holds the lock across the fork. The child's first operation begins the
/// child's own file, which does not list the inherited blocks. A child of `vfork` shares its
/// parent's memory and trace.
static HANDLERS: fork::Handlers = fork::Handlers { before: before_fork, unlock, in_child };

fn before_fork() {
    FORKER.store(os::thread_token(), Ordering::Relaxed);
    RECORDER.acquire();
}

/// # Safety
///
/// The call follows [`before_fork`] in the forking thread or its copy in the child.
unsafe fn unlock() {
    // SAFETY: this thread, or the one that it is a copy of, took the lock before the fork.
    unsafe { RECORDER.release() };
    FORKER.store(0, Ordering::Relaxed);
}

fn in_child(_alone: bool) {
    IS_CHILD.store(true, Ordering::Relaxed);
    IS_LOST.store(false, Ordering::Relaxed);
    // In the parent another thread may have been getting its word.
    GIVEN_TO.store(0, Ordering::Relaxed);
}

unsafe extern "C" fn in_parent() {
    write(Operation::Fork);
}

unsafe extern "C" fn nothing() {}

struct Recorder {
    prefix: Prefix,
    /// The process that the file belongs to; 0 before there is a file.
    process: u32,
    forked: bool,
    /// Whether nothing more is written, after a failure or at the end.
    over: bool,
    /// The start times of this trace and of this chunk, and the time of the last operation.
    began_ms: u32,
    chunk_ms: u32,
    last_ms: u32,
    operations: u64,
    /// The thread of the last operation; 0 if this chunk has none.
    thread: u64,
    coder: Coder,
    /// Bytes in the chunk; 0 before the chunk's first operation.
    payload: usize,
    chunk: [u8; CHUNK],
}

impl Recorder {
    /// Zeros, which take no room in the library's file.
    const fn new() -> Self {
        Self {
            prefix: Prefix::none(),
            process: 0,
            forked: false,
            over: false,
            began_ms: 0,
            chunk_ms: 0,
            last_ms: 0,
            operations: 0,
            thread: 0,
            coder: Coder::new(),
            payload: 0,
            chunk: [0; CHUNK],
        }
    }

    fn begin(&mut self) {
        self.process = os::process_id();
        (self.operations, self.payload) = (0, 0);
        self.began_ms = os::coarse_ms();
        let path = self.path();
        if !os::append_file(&path, &HEADER, true) {
            self.over = true;
            let line = Line::new().text("cannot make the trace \"").bytes(files::shown(&path));
            line.text("\": look at the folder of option trace").write();
            return;
        }
        let mut exe = [0; PATH];
        let exe_length = os::program_path(&mut exe).min(PATH);
        let mut command = [0; 2048];
        let command_length = files::command_line(&mut command);
        let process = Process {
            pid: self.process,
            parent: os::parent_id(),
            time: os::unix_ns(),
            forked: self.forked,
            exe: &exe[..exe_length],
            command: &command[..command_length],
        };
        let mut place = [0; 4096];
        if !os::append_file(&path, process.encode(&mut place), false) {
            self.fail(&path);
        }
    }

    fn path(&self) -> [u8; PATH] {
        self.prefix.of(self.process)
    }

    fn fail(&mut self, path: &[u8]) {
        self.over = true;
        let line = Line::new().text("cannot write the trace \"").bytes(files::shown(path));
        line.text("\": it ends here; is the disk full?").write();
    }

    fn notice_fork(&mut self) {
        if IS_CHILD.load(Ordering::Relaxed) && IS_CHILD.swap(false, Ordering::Relaxed) {
            (self.process, self.forked, self.payload) = (0, true, 0);
        }
    }

    /// Ends the trace if an operation is missing, because later operations may depend on it.
    fn notice_loss(&mut self) {
        if IS_LOST.load(Ordering::Relaxed) && self.process != 0 && !self.over {
            self.flush();
            self.over = true;
            let line = Line::new().text("the trace \"").bytes(files::shown(&self.path()));
            line.text("\" ends here: a signal handler allocated while a call was written").write();
        }
    }

    fn put(&mut self, thread: u64, operation: Operation) {
        self.notice_fork();
        if self.process == 0 && !self.over {
            self.begin();
        }
        self.notice_loss();
        if self.over {
            return;
        }
        let now = os::coarse_ms();
        if self.payload == 0 {
            let since = now.wrapping_sub(self.began_ms);
            self.payload = begin_operations(&mut self.chunk, self.operations, u64::from(since));
            self.coder = Coder::new();
            self.thread = 0;
            (self.chunk_ms, self.last_ms) = (now, now);
        }
        if now != self.last_ms {
            self.add(Operation::Time(u64::from(now.wrapping_sub(self.last_ms))));
            self.last_ms = now;
        }
        if thread != self.thread {
            self.add(Operation::Thread(thread));
            self.thread = thread;
        }
        self.add(operation);
        let is_old = now.wrapping_sub(self.chunk_ms) >= PATIENCE_MS;
        if is_old || BEFORE + self.payload + ROOM > CHUNK {
            self.flush();
        }
    }

    /// Encodes an operation. The chunk must have room for it.
    fn add(&mut self, operation: Operation) {
        let place = self.chunk.get_mut(BEFORE + self.payload..).unwrap_or_default();
        self.payload += self.coder.put(operation, place);
        self.operations += 1;
    }

    fn flush(&mut self) {
        if self.payload == 0 {
            return;
        }
        let path = self.path();
        let chunk = seal(&mut self.chunk, self.payload);
        self.payload = 0;
        if !os::append_file(&path, chunk, false) {
            self.fail(&path);
        }
    }

    fn end(&mut self) {
        self.notice_fork();
        self.notice_loss();
        if self.process != 0 && !self.over {
            self.flush();
            let end = End { operations: self.operations };
            let written =
                self.over || os::append_file(&self.path(), end.encode(&mut [0; 64]), false);
            if !written {
                self.fail(&self.path());
            }
        }
        self.over = true;
    }
}
