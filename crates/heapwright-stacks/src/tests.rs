//! Real stacks: compares captures with the C runtime's own unwinder, on threads, fibers, alternate
//! stacks, through signals and through C.

extern crate std;

#[cfg(target_arch = "x86_64")]
use core::cell::Cell;
use core::cell::RefCell;
use core::ffi::{c_int, c_void};
use core::hint::black_box;
use core::ptr;
use std::boxed::Box;
use std::vec::Vec;

use super::*;

unsafe extern "C" {
    fn _Unwind_Backtrace(
        step: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        to: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIPInfo(context: *mut c_void, before: *mut c_int) -> usize;
}

unsafe extern "C" fn note(context: *mut c_void, to: *mut c_void) -> c_int {
    let mut before = 0;
    // SAFETY: called by the unwinder, with its context.
    let pc = unsafe { _Unwind_GetIPInfo(context, &raw mut before) };
    let frames: *mut Vec<usize> = to.cast();
    // SAFETY: the vector that the caller of the unwinder gave it.
    let frames = unsafe { &mut *frames };
    if pc == 0 {
        return 5; // _URC_END_OF_STACK
    }
    frames.push(pc + before as usize);
    0
}

/// Returns the path of a file of this many bytes that does not shrink.
pub(super) fn memfd(bytes: usize) -> std::ffi::CString {
    // SAFETY: makes a file.
    let file = unsafe { libc::memfd_create(c"test".as_ptr(), libc::MFD_ALLOW_SEALING) };
    // SAFETY: the file is the test's.
    assert!(file >= 0 && unsafe { libc::ftruncate(file, bytes as i64) } == 0);
    // SAFETY: the file is the test's.
    assert_eq!(unsafe { libc::fcntl(file, libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) }, 0);
    std::ffi::CString::new(std::format!("/proc/self/fd/{file}")).unwrap()
}

#[inline(never)]
fn expected() -> Vec<usize> {
    let mut frames = Vec::with_capacity(256);
    // SAFETY: `note` pushes to the vector.
    unsafe { _Unwind_Backtrace(note, (&raw mut frames).cast()) };
    frames
}

std::thread_local! {
    static SCRATCH: RefCell<Box<Scratch>> = RefCell::new(Box::new(Scratch::new()));
}

/// Compares a capture with the C runtime's answer, for the frames above the caller's.
#[inline(never)]
fn compare() -> usize {
    SCRATCH.with_borrow_mut(|scratch| {
        let stack = here(scratch, MAX_DEPTH);
        let expected = expected();
        let got = frames(stack);
        // Two places in this function differ, and the runtime's stack has its own frame below them.
        let own = expected.len().min(2);
        let expected = &expected[own..];
        let common = expected.len().min(MAX_DEPTH - 1);
        assert_eq!(&got[1..], &expected[..common], "{}", Names(&[got, expected]));
        common
    })
}

struct Names<'a>(&'a [&'a [usize]]);

impl core::fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for frames in self.0 {
            for &frame in *frames {
                write!(f, "\n  {frame:#x}")?;
                if let Some(module) = module_of(frame) {
                    let path = std::string::String::from_utf8_lossy(module.path()).into_owned();
                    write!(f, " {path}+{:#x}", frame - module.bias)?;
                }
                symbol_of(frame, |name, offset| {
                    let name = std::string::String::from_utf8_lossy(name);
                    write!(f, " {name}+{offset:#x}").unwrap();
                });
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[inline(never)]
fn recurse(depth: usize, then: &mut dyn FnMut()) -> usize {
    if depth == 0 {
        then();
        return 0;
    }
    let below = recurse(depth - 1, then);
    black_box(below + 1)
}

#[test]
fn recursion_is_as_deep_as_it_is() {
    for depth in [0, 1, 5, 30, 60, 200] {
        let mut common = 0;
        recurse(depth, &mut || common = compare());
        assert!(common >= depth.min(60));
    }
    let mut scratch = Box::new(Scratch::new());
    let mut stack = Stack::NONE;
    recurse(40, &mut || stack = here(&mut scratch, 12));
    let got = frames(stack);
    assert_eq!(got.len(), 12);
    // From the fifth frame on, all frames are the same call in `recurse`.
    assert!(got[4..].iter().all(|&pc| pc == got[4]), "{}", Names(&[got]));
}

#[test]
fn every_thread_has_its_stack() {
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                for depth in 0..50 {
                    assert!(recurse_and_compare(depth + thread) >= depth.min(60));
                }
            });
        }
    });
}

fn recurse_and_compare(depth: usize) -> usize {
    let mut common = 0;
    recurse(depth, &mut || common = compare());
    common
}

#[test]
fn frames_of_the_c_library_are_passed() {
    unsafe extern "C" fn order(a: *const c_void, b: *const c_void) -> c_int {
        let common = compare();
        assert!(common > 5);
        // SAFETY: `qsort` calls with elements of its array.
        let a = unsafe { *a.cast::<u32>() };
        // SAFETY: `qsort` calls with elements of its array.
        a.cmp(&unsafe { *b.cast() }) as c_int
    }
    let mut numbers: Vec<u32> = (0..40).map(|n| n * 7919 % 100).collect();
    // SAFETY: the array has this many elements of four bytes.
    unsafe { libc::qsort(numbers.as_mut_ptr().cast(), numbers.len(), 4, Some(order)) };
    assert!(numbers.is_sorted());
}

/// Captures in a loop, in a frame of its own that no optimiser looks into.
#[inline(never)]
fn loop_and_capture(scratch: &mut Scratch, times: usize) -> Stack {
    let mut stack = Stack::NONE;
    for _ in 0..times {
        let now = here(scratch, 16);
        assert!(stack == Stack::NONE || stack == now);
        stack = now;
    }
    stack
}

#[test]
fn the_memo_answers_what_a_walk_would() {
    let mut scratch = Box::new(Scratch::new());
    let mut stack = Stack::NONE;
    recurse(20, &mut || stack = loop_and_capture(&mut scratch, 1000));
    let counts = scratch.counts();
    assert_eq!(counts.captures, 1000);
    // Another test may forget all code meanwhile.
    assert!(counts.memo_hits >= 900, "{counts:?}");
    assert_eq!(frames(stack).len(), 16);
    // From another depth of the stack the memo must not answer.
    let mut deeper = Stack::NONE;
    recurse(21, &mut || deeper = loop_and_capture(&mut scratch, 10));
    assert_eq!(frames(deeper).len(), 16);
}

/// Compares the memo's answers with the walk's, at the end of many ways through a small program.
#[test]
fn the_memo_is_right_whatever_the_way() {
    #[inline(never)]
    fn check(scratch: &mut Scratch) -> Stack {
        let start = imp::registers();
        let memo = imp::capture(scratch, 24, &start);
        let walked = imp::capture_by_walking(scratch, 24, &start);
        assert_eq!(memo, walked);
        memo
    }
    #[inline(never)]
    fn a(scratch: &mut Scratch, way: u32) -> usize {
        let room = black_box([way; 4]);
        way_on(scratch, way) + room[0] as usize
    }
    #[inline(never)]
    fn b(scratch: &mut Scratch, way: u32) -> usize {
        let room = black_box([way; 4]);
        way_on(scratch, way) + room[1] as usize
    }
    #[inline(never)]
    fn c(scratch: &mut Scratch, way: u32) -> usize {
        let room = black_box([u64::from(way); 50]);
        way_on(scratch, way) * room[7] as usize
    }
    fn way_on(scratch: &mut Scratch, way: u32) -> usize {
        match way % 4 {
            _ if way == 0 => check(scratch).0 as usize,
            0 => a(scratch, way / 4),
            1 => b(scratch, way / 4),
            2 => c(scratch, way / 4),
            _ => check(scratch).0 as usize + a(scratch, way / 4),
        }
    }
    let mut scratch = Box::new(Scratch::new());
    let mut seed = 12345u32;
    for _ in 0..20_000 {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        black_box(way_on(&mut scratch, seed >> 18));
    }
    let counts = scratch.counts();
    assert!(counts.memo_hits > 0 && counts.memo_hits < counts.captures);
}

#[test]
fn the_memo_answers_several_ways_to_one_place() {
    #[inline(never)]
    fn end(scratch: &mut Scratch) -> Stack {
        black_box(here(scratch, 16))
    }
    #[inline(never)]
    fn both(scratch: &mut Scratch) -> [Stack; 2] {
        [end(scratch), end(scratch)]
    }
    #[inline(never)]
    fn again(scratch: &mut Scratch) -> [Stack; 2] {
        black_box(both(scratch))
    }
    // This makes one call, however the compiler unrolls the loop.
    let again = black_box(again as fn(&mut Scratch) -> [Stack; 2]);
    let mut scratch = Box::new(Scratch::new());
    let mut seen = Vec::new();
    for _ in 0..black_box(100) {
        seen.push(again(&mut scratch));
    }
    assert!(seen.iter().all(|now| now[0] != now[1]));
    // The first rounds may be copies of this loop's body.
    assert!(seen[10..].iter().all(|now| *now == seen[10]));
    let counts = scratch.counts();
    assert!(counts.memo_hits > 150, "{counts:?}");
}

#[test]
fn forgetting_code_changes_no_answer() {
    let mut scratch = Box::new(Scratch::new());
    let mut all = Vec::new();
    for _ in 0..5 {
        recurse(20, &mut || all.push(loop_and_capture(&mut scratch, 3)));
        forget_code();
    }
    assert!(all.iter().all(|&stack| stack == all[0] && frames(stack).len() == 16));
    assert!(scratch.counts().rule_misses > 5);
}

std::thread_local! {
    static IN_HANDLER: RefCell<(Vec<usize>, Vec<usize>, Vec<usize>)> = const {
        RefCell::new((Vec::new(), Vec::new(), Vec::new()))
    };
}

extern "C" fn handler(_signal: c_int, _info: *mut libc::siginfo_t, context: *mut c_void) {
    let mut scratch = Box::new(Scratch::new());
    let stack = here(&mut scratch, MAX_DEPTH);
    let expected = expected();
    // SAFETY: the third argument of a handler.
    let interrupted = unsafe { of_context(&mut scratch, MAX_DEPTH, context) };
    IN_HANDLER.with_borrow_mut(|seen| {
        *seen = (frames(stack).to_vec(), expected, frames(interrupted).to_vec());
    });
}

fn on_signal(signal: c_int, flags: c_int) {
    // SAFETY: zeroed, it is a valid structure.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = handler as extern "C" fn(_, _, _) as usize;
    action.sa_flags = libc::SA_SIGINFO | flags;
    // SAFETY: the structure is valid, and the handler does not return elsewhere.
    assert_eq!(unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) }, 0);
}

#[inline(never)]
fn raise_from(depth: usize, signal: c_int) {
    recurse(depth, &mut || {
        // SAFETY: the signal has a handler.
        unsafe { libc::raise(signal) };
    });
}

fn compare_in_handler(depth: usize) {
    IN_HANDLER.with_borrow(|(got, expected, interrupted)| {
        let names = Names(&[got, expected, interrupted]);
        let common = (expected.len() - 2).min(MAX_DEPTH - 1);
        assert_eq!(got[1..], expected[2..2 + common], "{names}");
        // The stack has the kernel's frame, then the interrupted address, kept plus one.
        let at = got.iter().position(|&pc| pc == interrupted[0] + 1).unwrap();
        let rest = got.len() - at;
        assert!(at >= 2 && rest > depth, "{names}");
        assert_eq!(got[at + 1..], interrupted[1..rest], "{names}");
    });
}

#[test]
fn a_signal_handler_sees_whom_it_interrupts() {
    on_signal(libc::SIGUSR1, 0);
    for depth in [0, 10] {
        raise_from(depth, libc::SIGUSR1);
        compare_in_handler(depth);
    }
    std::thread::spawn(|| {
        raise_from(3, libc::SIGUSR1);
        compare_in_handler(3);
    })
    .join()
    .unwrap();
}

#[test]
fn a_handler_on_its_own_stack_sees_the_other() {
    on_signal(libc::SIGUSR2, libc::SA_ONSTACK);
    std::thread::spawn(|| {
        let mut room = std::vec![0u64; 16384];
        let stack =
            libc::stack_t { ss_sp: room.as_mut_ptr().cast(), ss_flags: 0, ss_size: room.len() * 8 };
        // SAFETY: the room outlives its use: it is given back below.
        assert_eq!(unsafe { libc::sigaltstack(&raw const stack, ptr::null_mut()) }, 0);
        raise_from(7, libc::SIGUSR2);
        compare_in_handler(7);
        let none = libc::stack_t { ss_flags: libc::SS_DISABLE, ..stack };
        // SAFETY: no handler runs.
        assert_eq!(unsafe { libc::sigaltstack(&raw const none, ptr::null_mut()) }, 0);
    })
    .join()
    .unwrap();
}

#[cfg(target_arch = "x86_64")]
unsafe extern "C" {
    fn makecontext(ucp: *mut libc::ucontext_t, f: extern "C" fn(), argc: c_int, ...);
    fn swapcontext(oucp: *mut libc::ucontext_t, ucp: *const libc::ucontext_t) -> c_int;
    fn getcontext(ucp: *mut libc::ucontext_t) -> c_int;
}

#[cfg(target_arch = "x86_64")]
std::thread_local! {
    static FIBERS: Cell<[*mut libc::ucontext_t; 2]> = const { Cell::new([ptr::null_mut(); 2]) };
    static FIBER_FRAMES: Cell<usize> = const { Cell::new(0) };
}

#[cfg(target_arch = "x86_64")]
extern "C" fn fiber() {
    let [own, other] = FIBERS.get();
    FIBER_FRAMES.set(recurse_and_compare(9));
    // SAFETY: both contexts live in the test below.
    unsafe { swapcontext(own, other) };
}

#[cfg(target_arch = "x86_64")]
fn run_fiber(stack: *mut u8, size: usize) -> usize {
    // SAFETY: zeroed, it is a valid structure.
    let mut own: libc::ucontext_t = unsafe { core::mem::zeroed() };
    // SAFETY: zeroed, it is a valid structure.
    let mut other: libc::ucontext_t = unsafe { core::mem::zeroed() };
    FIBERS.set([&raw mut own, &raw mut other]);
    // SAFETY: the structure is valid.
    unsafe { getcontext(&raw mut own) };
    own.uc_stack.ss_sp = stack.cast();
    own.uc_stack.ss_size = size;
    // SAFETY: the context was made by `getcontext`, and has a stack.
    unsafe { makecontext(&raw mut own, fiber, 0) };
    // SAFETY: the fiber comes back here.
    unsafe { swapcontext(&raw mut other, &raw const own) };
    FIBER_FRAMES.get()
}

#[cfg(target_arch = "x86_64")]
#[test]
fn fibers_have_stacks_that_may_vanish() {
    use heapwright_substrate::os::{Memory, System};

    let page = System.page_size();
    let whole = System.reserve(64 * page, page);
    assert!(!whole.is_null());
    std::thread::spawn(move || ()).join().unwrap();
    // Each stack is shorter than the last, at the same place, with nothing above.
    let whole = whole.expose_provenance();
    std::thread::spawn(move || {
        for end in (20..=60).rev().step_by(8) {
            let low: *mut u8 = ptr::with_exposed_provenance_mut(whole + page);
            let size = (end - 1) * page;
            // SAFETY: in the reservation.
            assert!(unsafe { System.commit(low, size) });
            assert!(run_fiber(low, size) >= 9);
            assert!(recurse_and_compare(9) >= 9);
            // SAFETY: no code runs on that stack any more.
            let got = unsafe { libc::mprotect(low.cast(), size, libc::PROT_NONE) };
            assert_eq!(got, 0);
        }
    })
    .join()
    .unwrap();
}

/// Stacks of words that no call pushed.
#[test]
fn garbage_gives_a_short_stack() {
    let mut scratch = Box::new(Scratch::new());
    let mut seed = 1usize;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let sp = imp::registers().sp_for_test();
    let code = recurse as fn(usize, &mut dyn FnMut()) -> usize as usize;
    for _ in 0..20_000 {
        let room: [usize; 64] = core::array::from_fn(|_| match random() % 4 {
            0 => random(),
            1 => sp.wrapping_add(random() % 4096) & !7,
            2 => code + random() % 100_000,
            _ => random() % 4096,
        });
        let low = black_box(&room).as_ptr().addr();
        let fp = match random() % 4 {
            0 => random(),
            1 => usize::MAX - random() % 32,
            _ => low + random() % 512,
        };
        let pc = match random() % 3 {
            0 => random(),
            1 => low,
            _ => code + random() % 100_000,
        };
        let at = if random() % 4 == 0 { random() } else { low + random() % 64 * 8 };
        let start = imp::registers_for_test(pc, at, fp);
        let stack = imp::capture(&mut scratch, 32, &start);
        assert!(frames(stack).len() <= 32);
    }
}

/// The caller of code in no module is found by its frame pointer.
#[cfg(target_arch = "x86_64")]
#[test]
fn code_made_at_run_time_is_passed_by_its_frame_pointer() {
    use heapwright_substrate::os::{Memory, System};

    let page = System.page_size();
    let at = System.reserve(page, page);
    // SAFETY: reserved above.
    assert!(unsafe { System.commit(at, page) });
    // push rbp; mov rbp, rsp; call rdi; pop rbp; ret
    let code = [0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3];
    // SAFETY: committed above, a page is longer.
    unsafe { ptr::copy_nonoverlapping(code.as_ptr(), at, code.len()) };
    // SAFETY: the page is ours.
    assert_eq!(unsafe { libc::mprotect(at.cast(), page, libc::PROT_READ | libc::PROT_EXEC) }, 0);
    // SAFETY: the code is a function of this type.
    let made: extern "C" fn(extern "C" fn()) = unsafe { core::mem::transmute(at) };
    std::thread_local! {
        static SEEN: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    }
    extern "C" fn called() {
        let mut scratch = Box::new(Scratch::new());
        SEEN.set(frames(here(&mut scratch, MAX_DEPTH)).to_vec());
        // The memo must not keep a walk that may change unnoticed.
        for _ in 0..10 {
            here(&mut scratch, MAX_DEPTH);
        }
        assert_eq!(scratch.counts().memo_hits, 0);
    }
    #[inline(never)]
    fn caller(made: extern "C" fn(extern "C" fn())) {
        made(called);
        black_box(());
    }
    caller(made);
    let seen = SEEN.take();
    assert!(seen.contains(&(at.addr() + 6)), "{}", Names(&[&seen]));
    // Below this frame are the test's own caller and all other callers.
    let end = expected();
    let end = &end[end.len() - 5..];
    assert!(seen.ends_with(end), "{}", Names(&[&seen, end]));
}

#[test]
fn errno_stays() {
    std::thread::spawn(|| {
        let mut scratch = Box::new(Scratch::new());
        heapwright_substrate::os::set_errno(77);
        forget_code();
        here(&mut scratch, 16);
        // SAFETY: has no preconditions.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: errno's location is valid for the calling thread's life.
        assert_eq!(unsafe { *errno }, 77);
    })
    .join()
    .unwrap();
}

#[test]
fn zeroed_memory_is_a_scratch() {
    // SAFETY: all parts are valid when zeroed. The test checks that.
    let mut scratch: Box<Scratch> = unsafe { Box::new_zeroed().assume_init() };
    assert!(!frames(loop_and_capture(&mut scratch, 10)).is_empty());
}

/// Prints the cost of captures: see the figures of [`here`].
#[test]
#[ignore = "prints figures for ci/debug.sh"]
fn stacks_figures() {
    use heapwright_substrate::os::now_ns;

    const TIMES: usize = 500;
    // The best of many short runs: some of them have a processor for themselves.
    fn per(times: usize, mut what: impl FnMut()) -> f64 {
        (0..300)
            .map(|_| {
                let start = now_ns();
                for _ in 0..times {
                    what();
                }
                (now_ns() - start) as f64 / times as f64
            })
            .fold(f64::MAX, f64::min)
    }
    let mut scratch = Box::new(Scratch::new());
    let scratch = &mut *scratch;
    std::println!("Scratch: {} bytes", size_of::<Scratch>());
    for depth in [4, 8, 16, 32] {
        recurse(40, &mut || {
            let memo = per(TIMES, || {
                black_box(here(scratch, depth));
            });
            let walk = per(TIMES, || {
                let start = imp::registers();
                black_box(imp::capture_by_walking(scratch, depth, &start));
            });
            std::println!("figure memo_{depth}_ns {memo:.1}");
            std::println!("figure walk_{depth}_ns {walk:.1}");
        });
    }
    let start = now_ns();
    forget_code();
    std::println!("forget_code: {} ns", now_ns() - start);
    let misses = scratch.counts().rule_misses;
    let start = now_ns();
    recurse(40, &mut || {
        black_box(here(scratch, 16));
    });
    let cold = now_ns() - start;
    std::println!("cold: {cold} ns, {} rules", scratch.counts().rule_misses - misses);
    let starts: Vec<_> = frames(here(scratch, 16)).to_vec();
    let find = per(200, || {
        for &pc in &starts {
            black_box(heapwright_substrate::os::find_object(pc).is_some());
        }
    }) / starts.len() as f64;
    std::println!("_dl_find_object: {find:.1} ns");
    let readable = per(200, || {
        black_box(heapwright_substrate::os::is_readable((&raw const starts).addr() & !7));
    });
    std::println!("is_readable: {readable:.1} ns");

    // A program of sorts: trees built by recursion, lists, maps.
    let mut scratch = Box::new(Scratch::new());
    #[inline(never)]
    fn tree(scratch: &mut Scratch, depth: usize) -> usize {
        if depth == 0 {
            return here(scratch, 16).0 as usize;
        }
        let left = tree(scratch, depth - 1);
        let right = tree(scratch, depth - 1);
        left ^ right ^ here(scratch, 16).0 as usize
    }
    let start = now_ns();
    let mut captures = 0;
    for round in 0..40 {
        recurse(round % 10, &mut || {
            black_box(tree(&mut scratch, 14));
            black_box(loop_and_capture(&mut scratch, 10_000));
        });
        captures += (1 << 15) - 1 + 10_000;
    }
    let each = (now_ns() - start) as f64 / captures as f64;
    let counts = scratch.counts();
    std::println!("figure trees_and_loops_ns {each:.1}");
    let share = |count: u64| count as f64 / captures as f64 * 100.0;
    std::println!("figure memo_hits_percent {:.1}", share(counts.memo_hits));
    std::println!("figure depot_hits_percent {:.1}", share(counts.depot_hits));
    assert_eq!(counts.captures, captures);
}

#[test]
fn the_stack_above_a_function_is_found_though_its_return_address_lies_elsewhere_too() {
    /// Returns the found stack pointer, and a place within this function's frame.
    #[inline(never)]
    fn inner(scratch: &mut Scratch, wanted: &mut Vec<usize>) -> (Option<usize>, usize) {
        let frames: [usize; 8] = core::array::from_fn(|n| frames(here(scratch, 8))[n]);
        // The frame has the return addresses of `middle` and of its caller, as stale words.
        let stale = black_box(frames);
        wanted.push(stale[1]);
        (above(scratch, |pc| pc == wanted[0]), ptr::from_ref(&stale).addr())
    }
    #[inline(never)]
    fn middle(scratch: &mut Scratch) -> (Option<usize>, usize, usize) {
        let room = black_box([1usize; 30]);
        let (found, place) = inner(scratch, &mut Vec::new());
        (found, place, ptr::from_ref(&room).addr())
    }
    let own = black_box([0usize; 4]);
    let (found, inner, middle) = middle(&mut Box::new(Scratch::new()));
    let found = found.unwrap();
    assert!(inner < middle && middle < found, "{inner:x} {middle:x} {found:x}");
    assert!(found <= ptr::from_ref(&own).addr());
    assert_eq!(above(&mut Box::new(Scratch::new()), |_| false), None);
}
