//! The table of "Gotta alloc fast", the article about Zig's MemoryPool.
//!
//! A churn that hovers about half of a target of 256 live objects: in each
//! round, with the probability that the target is filled to, a random live
//! object is destroyed (the last one takes its place in the list), and, with the
//! rest of the probability, one is made. Objects of one byte, 8 KiB and 1 MiB,
//! for 2.5 million, one million and 25 thousand rounds.
//!
//! `zig/article.zig` does the same with the same random numbers, so all columns
//! make and destroy the same objects; each run prints its counts, and the report
//! compares them. The article's own generator is another, so its counts and
//! peaks differ a little; they stand beside ours.
//!
//! *Untouched*: the pointer is all that is looked at. *Touched*: one byte of each
//! page of a new object is written, and its last.
//!
//! The nanoseconds hold the loop itself: two random numbers a round and two
//! branches that no processor can foresee. The column `loop` is that loop over a
//! store which does nothing.

use std::hint::black_box;
use std::time::Instant;

use crate::measure::{PAGE, warm_host};
use figures::random::Random;

const TARGET: usize = 256;
const ROOM: usize = 4 * TARGET;

/// Something that makes and destroys objects of one size, uninitialized.
pub trait Store {
    /// A new object.
    fn create(&mut self) -> *mut u8;

    /// Takes one back.
    ///
    /// # Safety
    ///
    /// It came from [`create`](Self::create) of this store and is destroyed once.
    unsafe fn destroy(&mut self, object: *mut u8);
}

/// The loop alone.
struct Nothing;

impl Store for Nothing {
    #[inline(always)]
    fn create(&mut self) -> *mut u8 {
        std::ptr::dangling_mut()
    }

    #[inline(always)]
    unsafe fn destroy(&mut self, object: *mut u8) {
        black_box(object);
    }
}

#[inline(always)]
fn touch<const BYTES: usize>(object: *mut u8) {
    for offset in (0..BYTES).step_by(PAGE) {
        // SAFETY: within the object, which has BYTES bytes.
        unsafe { object.add(offset).write_volatile(1) };
    }
    if BYTES > 1 {
        // SAFETY: the object's last byte.
        unsafe { object.add(BYTES - 1).write_volatile(1) };
    }
}

/// What Zig's `doNotOptimizeAway` does with a pointer: somebody may have used it, and
/// what it leads to. (`black_box` would also store it and load it again.)
#[inline(always)]
fn keep(object: *mut u8) {
    // SAFETY: no instruction.
    unsafe { std::arch::asm!("/* {0} */", in(reg) object, options(nostack, preserves_flags)) };
}

/// The article's loop; prints what it took and what it did.
pub fn churn<const BYTES: usize, const TOUCHED: bool>(mut store: impl Store, rounds: usize) {
    let mut live = [std::ptr::null_mut::<u8>(); ROOM];
    let (mut count, mut peak, mut made, mut destroyed) = (0usize, 0, 0u64, 0u64);
    let mut random = Random::new(crate::SEED);
    let start = Instant::now();
    for _ in 0..rounds {
        let fill = count.cast_signed() as f64 / TARGET as f64;
        if random.fraction() <= fill && count > 0 {
            // No bounds are checked, as in the Zig program's release mode: the count
            // never comes near the list's length.
            let at = random.below(count);
            // SAFETY: below the count.
            let object = unsafe { *live.get_unchecked(at) };
            count -= 1;
            // SAFETY: the count was one more, so the list has this place.
            let last = unsafe { *live.get_unchecked(count) };
            // SAFETY: below the old count.
            unsafe { *live.get_unchecked_mut(at) = last };
            // SAFETY: it was created, and has just left the list.
            unsafe { store.destroy(object) };
            destroyed += 1;
        }
        if random.fraction() >= fill {
            let object = store.create();
            keep(object);
            if TOUCHED {
                touch::<BYTES>(object);
            }
            // SAFETY: the count stays below the list's length.
            unsafe { *live.get_unchecked_mut(count) = object };
            count += 1;
            peak = peak.max(count);
            made += 1;
        }
    }
    let ns = start.elapsed().as_nanos() as f64 / (made + destroyed) as f64;
    // Copies: what is printed by reference would live in memory in the loop.
    let (made, destroyed, peak) = (black_box(made), black_box(destroyed), black_box(peak));
    println!(
        "figure ns {ns:.3}\nfigure made {made}\nfigure destroyed {destroyed}\nfigure peak {peak}"
    );
}

fn of_size<const BYTES: usize, const TOUCHED: bool>(name: &str, rounds: usize) -> Option<()> {
    match name {
        "loop" if !TOUCHED || BYTES == 1 => churn::<BYTES, false>(Nothing, rounds),
        "glibc" => churn::<BYTES, TOUCHED>(crate::peers::Glibc::<BYTES>, rounds),
        _ => return crate::ours::article::<BYTES, TOUCHED>(name, rounds),
    }
    Some(())
}

/// `STORE BYTES ROUNDS touched|untouched WARM`, as the Zig program has it.
pub fn run(words: &[&str]) -> Option<()> {
    let [name, bytes, rounds, touched, warm] = *words else { return None };
    let (rounds, touched) = (rounds.parse().ok()?, touched == "touched");
    warm_host(warm.parse().ok()?);
    match (bytes, touched) {
        ("1", false) => of_size::<1, false>(name, rounds),
        ("1", true) => of_size::<1, true>(name, rounds),
        ("8192", false) => of_size::<8192, false>(name, rounds),
        ("8192", true) => of_size::<8192, true>(name, rounds),
        ("1048576", false) => of_size::<1048576, false>(name, rounds),
        ("1048576", true) => of_size::<1048576, true>(name, rounds),
        _ => None,
    }
}
