//! Misuse ends the program with one line that describes the pointer.
//!
//! Each case is a process of its own, which must die of SIGABRT with this line.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]

mod common;

use std::os::unix::process::ExitStatusExt;

use common::{SLAB_MAX, UNIT, run_alone};
use heapwright::heap::{self, Heap};

fn free(at: *mut u8) {
    // SAFETY: the call is a mistake, which is expected to end the process.
    unsafe { heap::free(at) };
}

/// This is not zero, because the kernel's list has no name for zeroed pages behind the file's.
static mut DATA: [u8; 64] = [1; 64];

/// A case: its name, its mistake, and the words of its line.
type Case = (&'static str, fn(), &'static [&'static str]);

const CASES: [Case; 16] = [
    (
        "interior",
        || free(heap::malloc(48).wrapping_add(16)),
        &[
            "free(0x",
            "the pointer is 16 bytes into a 48-byte block at 0x",
            "pass the address malloc returned",
        ],
    ),
    (
        "odd",
        || free(heap::malloc(48).wrapping_add(7)),
        &["the pointer is 7 bytes into a 48-byte block"],
    ),
    (
        "interior of a large block",
        || free(heap::malloc(3 * UNIT).wrapping_add(2 * UNIT)),
        &["the pointer is 131072 bytes into a 196608-byte block"],
    ),
    (
        "first page of a large block",
        || free(heap::malloc(3 * UNIT).wrapping_add(4096)),
        &["the pointer is 4096 bytes into a 196608-byte block"],
    ),
    (
        "stack",
        || {
            let mut local = [0u8; 64];
            free((&raw mut local).cast());
        },
        &["the pointer is on the stack", "malloc did not return it"],
    ),
    (
        "data",
        || free((&raw mut DATA).cast()),
        &["the pointer is in the data of /", "malloc did not return it"],
    ),
    (
        "code",
        || free((misuse as fn()) as *mut u8),
        &["the pointer is in the code or constants of /"],
    ),
    (
        "unmapped",
        || free(std::ptr::without_provenance_mut(16 << 20)),
        &["nothing is mapped at this address"],
    ),
    (
        "a large block twice",
        || {
            let block = heap::malloc(SLAB_MAX + 1);
            free(block);
            free(block);
        },
        &["the block that was here was freed before; free each block once"],
    ),
    (
        "a block twice, seen when it returns to its slab",
        || {
            let block = heap::malloc(100);
            free(block);
            free(block);
            heap::trim(0);
        },
        &["this 112-byte block was freed before; free each block once"],
    ),
    (
        "after the slab was given back",
        || {
            let block = heap::malloc(100);
            free(block);
            heap::trim(0);
            free(block);
        },
        &["the block that was here was freed before"],
    ),
    (
        "realloc of an interior pointer",
        || {
            // SAFETY: the call is a mistake, which is expected to end the process.
            unsafe { heap::realloc(heap::malloc(64).wrapping_add(8), 100) };
        },
        &["realloc(0x", "the pointer is 8 bytes into a 64-byte block"],
    ),
    (
        "size of an interior pointer",
        || {
            // SAFETY: the call is a mistake, which is expected to end the process.
            let _ = unsafe { heap::usable_size(heap::malloc(64).wrapping_add(8)) };
        },
        &["malloc_usable_size(0x", "the pointer is 8 bytes into a 64-byte block"],
    ),
    (
        "another heap's block",
        || {
            let (one, other) = (Heap::create(), Heap::create());
            // SAFETY: the heap exists.
            let block = unsafe { Heap::alloc(one, 100, 16, false) };
            // SAFETY: the call is a mistake, which is expected to end the process.
            unsafe { Heap::free(other, block) };
        },
        &["hw_heap_free(0x", "this 112-byte block belongs to another heap"],
    ),
    (
        "a heap's free of a plain block",
        || {
            // SAFETY: the call is a mistake, which is expected to end the process.
            unsafe { Heap::free(Heap::create(), heap::malloc(SLAB_MAX + 1)) };
        },
        &["hw_heap_free(0x", "belongs to another heap"],
    ),
    (
        "a destroyed heap's block",
        || {
            let own = Heap::create();
            // SAFETY: the heap exists.
            let block = unsafe { Heap::alloc(own, 100, 16, false) };
            // SAFETY: a block is used again below, which is the mistake of this case.
            unsafe { Heap::destroy(own) };
            free(block);
        },
        &["the block that was here was freed before"],
    ),
];

#[test]
fn misuse() {
    if let Some(case) = common::case() {
        let (_, run, _) = CASES.iter().find(|(name, _, _)| *name == case).unwrap();
        // SAFETY: only the process's own limit changes.
        unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) };
        return run();
    }
    for (case, _, expected) in CASES {
        let output = run_alone("misuse", case, "");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.signal(),
            Some(libc::SIGABRT),
            "{case}: {}\n{said}",
            output.status
        );
        let lines: Vec<&str> =
            said.lines().filter(|line| line.starts_with("heapwright: ")).collect();
        let [line] = lines[..] else { panic!("{case}: not one line: {said}") };
        for part in expected {
            assert!(line.contains(part), "{case}: {line}");
        }
    }
}
