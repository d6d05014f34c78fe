// What the Rust programs of the corpus share; see corpus.h.

/// `bug! { statements }`: the statements, in the bad program only.
#[allow(unused_macros)]
macro_rules! bug { ($($t:tt)*) => { #[cfg(bad)] { $($t)* } } }

/// `fix! { statements }`: the statements, in the twin only.
#[allow(unused_macros)]
macro_rules! fix { ($($t:tt)*) => { #[cfg(not(bad))] { $($t)* } } }

/// One of two values: the bad program's, and the twin's.
#[allow(unused_macros)]
macro_rules! pick { ($bad:expr, $twin:expr) => { if cfg!(bad) { $bad } else { $twin } } }

#[allow(unused_imports)]
use std::hint::black_box;

/// The program's argument: how large its block is.
#[allow(dead_code)]
fn size() -> usize {
    black_box(std::env::args().nth(1).map_or(24, |text| text.parse().unwrap()))
}

/// Overwrites what functions that have returned left on the stack.
#[allow(dead_code)]
#[inline(never)]
fn wipe() {
    black_box([0u8; 8192]);
}
