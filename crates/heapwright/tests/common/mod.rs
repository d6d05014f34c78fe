//! Common parts of the heap's tests.
#![allow(dead_code, reason = "each test uses a part of this")]

#[cfg(all(feature = "debug", target_os = "linux"))]
pub(crate) mod profiled;
pub(crate) mod programs;

use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use heapwright::{Stats, heap};

/// Requests above this size are large blocks.
pub(crate) const SLAB_MAX: usize = 32 << 10;
/// Whether `Heapwright` is the heap, and not the system's allocator.
pub(crate) const HAS_HEAP: bool =
    cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")));
pub(crate) const UNIT: usize = 64 << 10;

/// Random numbers, the same in every run (xorshift64*).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Returns a size as real programs request it: often a small one.
    pub(crate) fn size(&mut self) -> usize {
        match self.below(32) {
            0..=17 => self.below(256),
            18..=25 => self.below(2048),
            26..=29 => self.below(SLAB_MAX + 64),
            30 => self.below(200 << 10),
            _ => SLAB_MAX + self.below(64) * 1024,
        }
    }
}

/// A block and its expected contents.
#[derive(Debug)]
pub(crate) struct Owned {
    pub(crate) at: *mut u8,
    pub(crate) size: usize,
    seed: u64,
}

// SAFETY: only the thread that has the value uses the block.
unsafe impl Send for Owned {}

static SEED: AtomicU64 = AtomicU64::new(1);

/// Returns the words that are filled and checked. In a small block, these are all words. In a
/// larger block, these are both ends and some words in between.
fn words(size: usize) -> impl Iterator<Item = usize> {
    let step = if size <= 4096 { 1 } else { 61 };
    let count = size / 8;
    (0..count).step_by(step).chain(count.checked_sub(1))
}

fn word(seed: u64, index: usize) -> u64 {
    (seed ^ (index as u64) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
}

impl Owned {
    pub(crate) fn adopt(at: *mut u8, size: usize) -> Self {
        assert!(!at.is_null(), "no memory for {size} bytes");
        assert!(at.addr().is_multiple_of(16), "{size} bytes at {at:?}");
        let mut block = Self { at, size, seed: 0 };
        block.fill();
        block
    }

    /// Returns a second handle, for a forked child, which has memory of its own.
    pub(crate) fn copy(&self) -> Self {
        Self { at: self.at, size: self.size, seed: self.seed }
    }

    pub(crate) fn malloc(size: usize) -> Self {
        Self::adopt(heap::malloc(size), size)
    }

    pub(crate) fn calloc(size: usize) -> Self {
        let at = heap::calloc(size);
        assert!(!at.is_null(), "no memory for {size} bytes");
        // SAFETY: the block has `size` initialised bytes.
        let bytes = unsafe { std::slice::from_raw_parts(at, size) };
        // SAFETY: all values are valid for the words in the middle.
        let (head, middle, tail) = unsafe { bytes.align_to::<u64>() };
        let zero = head.iter().chain(tail).all(|&byte| byte == 0);
        assert!(zero && middle.iter().all(|&word| word == 0), "calloc({size}) is not zero");
        Self::adopt(at, size)
    }

    pub(crate) fn aligned(size: usize, align: usize) -> Self {
        let at = heap::malloc_aligned(size, align);
        assert!(at.addr().is_multiple_of(align), "{size} bytes at {at:?}, not {align}-aligned");
        Self::adopt(at, size)
    }

    fn word_at(&self, index: usize) -> *mut u64 {
        self.at.cast::<u64>().wrapping_add(index)
    }

    pub(crate) fn fill(&mut self) {
        self.seed = SEED.fetch_add(1, Ordering::Relaxed);
        for index in words(self.size) {
            // SAFETY: the word is in the block, which is ours and 16-aligned.
            unsafe { self.word_at(index).write(word(self.seed, index)) };
        }
        for at in self.size & !7..self.size {
            // SAFETY: the byte is in the block, which is ours.
            unsafe { self.at.wrapping_add(at).write(self.seed as u8) };
        }
    }

    pub(crate) fn is_intact(&self, size: usize) -> bool {
        let size = size.min(self.size);
        let whole = words(self.size).filter(|index| (index + 1) * 8 <= size).all(|index| {
            // SAFETY: the bytes are in the block, and `fill` wrote them.
            unsafe { self.word_at(index).read() == word(self.seed, index) }
        });
        // SAFETY: the bytes are in the block, and `fill` wrote them.
        whole
            && (self.size & !7..size)
                .all(|at| unsafe { self.at.wrapping_add(at).read() } == self.seed as u8)
    }

    pub(crate) fn usable(&self) -> usize {
        // SAFETY: the block is in use.
        unsafe { heap::usable_size(self.at) }
    }

    pub(crate) fn try_realloc(&mut self, size: usize) -> bool {
        assert!(self.is_intact(self.size), "{} bytes at {:?} changed", self.size, self.at);
        // SAFETY: the block is in use; the new one replaces it.
        let at = unsafe { heap::realloc(self.at, size) };
        if at.is_null() {
            assert!(self.is_intact(self.size), "a failed realloc changed the block");
            return false;
        }
        self.at = at;
        assert!(self.is_intact(size), "realloc from {} to {size} lost contents", self.size);
        self.size = size;
        self.fill();
        true
    }

    pub(crate) fn realloc(&mut self, size: usize) {
        assert!(self.try_realloc(size), "no memory for {size} bytes");
        assert!(self.at.addr().is_multiple_of(16), "{size} bytes at {:?}", self.at);
    }

    /// Checks the contents and gives the address away.
    pub(crate) fn into_raw(self) -> *mut u8 {
        assert!(self.is_intact(self.size), "{} bytes at {:?} changed", self.size, self.at);
        self.at
    }

    pub(crate) fn free(self) {
        // SAFETY: the block is in use, and this is the last use.
        unsafe { heap::free(self.into_raw()) };
    }
}

/// Keeps the other tests of a file out, for tests that compare addresses.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn stats() -> Stats {
    let mut stats = Stats::zero();
    assert!(heapwright::stats::snapshot(&mut stats));
    stats
}

/// The variable that tells a test that it runs in a process of its own, and for which case.
const CHILD: &str = "HEAPWRIGHT_TEST_CASE";

pub(crate) fn case() -> Option<String> {
    std::env::var(CHILD).ok()
}

/// If `HEAPWRIGHT_TEST_RUNNER` names an emulator (`qemu-riscv64 -L ...`), the emulator runs the
/// program, because the system cannot start a program for another processor.
pub(crate) fn this_program() -> Command {
    let this = std::env::current_exe().expect("tests are a program");
    let runner = std::env::var("HEAPWRIGHT_TEST_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace();
    let Some(emulator) = words.next() else { return Command::new(this) };
    let mut command = Command::new(emulator);
    command.args(words).arg(this);
    command
}

/// Runs `test` of this file alone in a new process, with `HEAPWRIGHT` set to `options`.
pub(crate) fn run_alone(test: &str, case: &str, options: &str) -> Output {
    this_program()
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, case)
        .env("HEAPWRIGHT", options)
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap()
}

#[cfg(unix)]
pub(crate) fn in_a_child(life: impl FnOnce()) {
    let status = end_of_a_child(life);
    assert_eq!(status, 0, "the child ended with status {status:#x}");
}

/// Runs `life` in a forked child, and returns the child's status.
#[cfg(unix)]
pub(crate) fn end_of_a_child(life: impl FnOnce()) -> i32 {
    // SAFETY: the child only uses the heap, as the test wants, and ends without the parent's code.
    match unsafe { libc::fork() } {
        -1 => panic!("no child"),
        0 => {
            // SAFETY: no preconditions. (SIGALRM ends a child that hangs.)
            unsafe { libc::alarm(60) };
            let well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(life)).is_ok();
            // SAFETY: no preconditions.
            unsafe { libc::_exit(i32::from(!well)) };
        }
        child => {
            let mut status = 0;
            // SAFETY: `status` is a valid place for the answer.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            status
        }
    }
}

pub(crate) fn pass_alone(test: &str, case: &str, options: &str) {
    let output = run_alone(test, case, options);
    assert!(
        output.status.success(),
        "{case} with {options:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
