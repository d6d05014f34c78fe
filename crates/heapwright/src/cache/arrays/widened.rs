//! A test of the sequences under preemption. It runs the code of `take_at` and `put_at` with a long
//! wait before the commit, so that many sequences are interrupted.
//!
//! ```text
//!   four threads on one CPU     take a token -- some microseconds -- commit
//!                               keep it for some microseconds
//!                               put it back  -- some microseconds -- commit
//!
//!   the thread's own area       the kernel restarts:   no token is lost or doubled
//!   an area of our own          no restarts:           some token is     (the control)
//! ```
//!
//! The control runs the same code, but its per-CPU entry leads to eight words that the kernel does
//! not know as an area. So only the kernel's restarts let the first run succeed.
//!
//! Only this test finds some mistakes: a range that begins too late or ends too early, a descriptor
//! or a signature that the kernel rejects, a changed register that the caller needs.

extern crate std;

use core::arch::asm;
use core::cell::UnsafeCell;
use core::ptr;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::boxed::Box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};
use std::vec::Vec;

use super::super::{Arrays, MOST_BLOCKS};
use super::{CpuEntry, ROW_MASK, SOURCES, TARGETS};
use crate::os::rseq;

const THREADS: usize = 4;
const TOKENS: usize = 8;
/// Turns of the loop before the commit: about ten microseconds.
const DELAY: u32 = 20_000;
/// A run ends earlier if its result is clear.
const LONGEST: Duration = Duration::from_millis(1300);
/// The run with restarts may end after this many aborted sequences and this many transfers.
const ENOUGH: usize = 40;

/// Returns the token, or 0 (empty) or 1 (aborted).
#[unsafe(naked)]
extern "C" fn take_wide(cpu_entry: &CpuEntry, offset: usize, delay: u32) -> usize {
    take!(["9: dec edx", "jnz 9b"])
}

/// Returns 0 (done), 1 (aborted) or 2 (full).
#[unsafe(naked)]
extern "C" fn put_wide(cpu_entry: &CpuEntry, offset: usize, token: usize, delay: u32) -> usize {
    put!(["mov r9d, ecx"] ["9: dec r9d", "jnz 9b"])
}

#[repr(C, align(32))]
struct Area(UnsafeCell<[u32; 8]>);

std::thread_local! {
    static UNKEPT: Area = const { Area(UnsafeCell::new([0; 8])) };
}

/// Writes the CPU into [`UNKEPT`]. Returns the distance from the thread pointer to it.
fn unkept(cpu: usize) -> isize {
    let thread: usize;
    // SAFETY: the first word of a thread's control block is its own address.
    unsafe { asm!("mov {}, fs:[0]", out(reg) thread, options(readonly, nostack)) };
    UNKEPT.with(|area| {
        let words = area.0.get();
        // SAFETY: the words are this thread's own.
        unsafe { (*words)[1] = cpu as u32 };
        words.addr().wrapping_sub(thread).cast_signed()
    })
}

/// One CPU's arrays with a per-CPU entry of their own.
struct Row {
    cpu_entry: *mut CpuEntry,
    arrays: *mut Arrays,
    is_out: [AtomicBool; TOKENS],
    /// Tokens that reached a second holder, and values that are no token.
    doubled: AtomicUsize,
    aborted: AtomicUsize,
    done: AtomicUsize,
}

// SAFETY: the per-CPU entry and the arrays are atomics.
unsafe impl Sync for Row {}

const fn token(number: usize) -> usize {
    (number + 1) * 16
}

impl Row {
    fn new(cpu: usize, area: isize) -> Self {
        let cpu_entry: *mut CpuEntry = zeroed();
        let arrays: *mut Arrays = zeroed();
        // SAFETY: zeroed memory that no other thread knows; zero is valid.
        unsafe { (*cpu_entry).rseq = area };
        // SAFETY: a per-CPU entry of zeros that no other thread knows.
        let made = unsafe { &*cpu_entry };
        made.sources[cpu].store(arrays, SeqCst);
        made.targets[cpu].store(arrays, SeqCst);
        // SAFETY: arrays of zeros that no other thread knows.
        let row = unsafe { &*arrays };
        let places = &row.rows[0].0;
        const { assert!(TOKENS < MOST_BLOCKS) };
        for (number, place) in places.iter().take(TOKENS).enumerate() {
            place.store(ptr::without_provenance_mut(token(number)), SeqCst);
        }
        row.tops[0].floor.store(ptr::from_ref(&places[0]).cast_mut(), SeqCst);
        row.tops[0].top.store(ptr::from_ref(&places[TOKENS]).cast_mut(), SeqCst);
        Self {
            cpu_entry,
            arrays,
            is_out: Default::default(),
            doubled: AtomicUsize::new(0),
            aborted: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
        }
    }

    fn work(&self, over: impl Fn() -> bool) {
        // SAFETY: the per-CPU entry lives as long as the row.
        let cpu_entry = unsafe { &*self.cpu_entry };
        while !over() {
            let taken = take_wide(cpu_entry, 0, DELAY);
            if taken < 2 {
                // Without restarts all tokens may be lost.
                self.aborted.fetch_add(taken, SeqCst);
                continue;
            }
            let is_out =
                taken.is_multiple_of(16).then(|| self.is_out.get(taken / 16 - 1)).flatten();
            if is_out.is_none_or(|is_out| is_out.swap(true, SeqCst)) {
                self.doubled.fetch_add(1, SeqCst);
            }
            // This takes long enough for a second holder to meet the first.
            for _ in 0..DELAY / 20 {
                core::hint::spin_loop();
            }
            if let Some(is_out) = is_out {
                is_out.store(false, SeqCst);
            }
            loop {
                match put_wide(cpu_entry, 0, taken, DELAY) {
                    0 => break,
                    1 => self.aborted.fetch_add(1, SeqCst),
                    _ => {
                        self.doubled.fetch_add(1, SeqCst);
                        break;
                    }
                };
            }
            self.done.fetch_add(1, SeqCst);
        }
    }

    fn tokens(&self) -> Vec<usize> {
        // SAFETY: the arrays live as long as the row.
        let row = unsafe { &*self.arrays };
        let count = row.count(0);
        let places = row.rows[0].0.iter().take(count);
        let mut tokens: Vec<usize> = places.map(|place| place.load(SeqCst).addr()).collect();
        tokens.sort_unstable();
        tokens
    }

    fn is_whole(&self) -> bool {
        self.tokens().into_iter().eq((0..TOKENS).map(token))
    }
}

impl Drop for Row {
    fn drop(&mut self) {
        // SAFETY: made by `zeroed` with this layout, and not used any more.
        unsafe { dealloc(self.cpu_entry.cast(), Layout::new::<CpuEntry>()) };
        // SAFETY: made by `zeroed` with this layout, and not used any more.
        unsafe { dealloc(self.arrays.cast(), Layout::new::<Arrays>()) };
    }
}

fn zeroed<T>() -> *mut T {
    // SAFETY: the layout has a size above 0.
    let at = unsafe { alloc_zeroed(Layout::new::<T>()) };
    assert!(!at.is_null());
    at.cast()
}

fn pin(cpu: usize) -> bool {
    // SAFETY: zero is a set of no CPU.
    let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    // SAFETY: the test passes a CPU below `CPU_SETSIZE`.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: the set has the size that the call names.
    unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) == 0 }
}

/// Runs several threads on one CPU, with one row. `area` returns the place of a thread's area.
fn run(cpu: usize, area: fn(usize) -> isize, enough: fn(&Row) -> bool) -> Option<Box<Row>> {
    let row = Box::new(Row::new(cpu, area(cpu)));
    let all_are_here = Barrier::new(THREADS);
    let until = Instant::now() + LONGEST;
    let serves = AtomicBool::new(true);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                // SAFETY: the per-CPU entry lives as long as the row.
                let expected = unsafe { &*row.cpu_entry }.rseq;
                // The distance of the area must be the same in all threads.
                serves.fetch_and(pin(cpu) && area(cpu) == expected, SeqCst);
                all_are_here.wait();
                if serves.load(SeqCst) {
                    row.work(|| Instant::now() > until || enough(&row));
                }
            });
        }
    });
    serves.load(SeqCst).then_some(row)
}

#[test]
fn what_is_interrupted_has_done_nothing() {
    let Some(offset) = rseq::offset() else { return };
    let Some(cpu) = rseq::cpu(offset).filter(|&cpu| cpu < libc::CPU_SETSIZE as usize) else {
        return;
    };
    let armed = run(
        cpu,
        |_| rseq::offset().unwrap_or(0),
        |row| row.aborted.load(SeqCst) >= ENOUGH && row.done.load(SeqCst) >= ENOUGH,
    );
    // If a thread cannot be kept on a CPU, the test proves nothing.
    let Some(armed) = armed else { return };
    assert_eq!(armed.doubled.load(SeqCst), 0, "tokens that two had at once");
    assert!(armed.is_whole(), "{:?} are left", armed.tokens());
    assert!(armed.aborted.load(SeqCst) > 0, "none of {:?} was interrupted", armed.done);

    let unarmed = run(cpu, unkept, |row| row.doubled.load(SeqCst) > 0).unwrap();
    assert!(
        unarmed.doubled.load(SeqCst) > 0 || !unarmed.is_whole(),
        "without restarts {:?} transfers went well, so the armed run proves nothing",
        unarmed.done
    );
}
