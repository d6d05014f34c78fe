// leaks: definite 1 40 at A in work
// Box::leak for a reference that lives a line long.
include!("../corpus.rs");

#[inline(never)]
fn work() -> u8 {
    let leaked: &'static mut [u8; 40] = Box::leak(Box::new(black_box([7u8; 40]))); // LEAK A
    let first = black_box(&mut *leaked)[0];
    fix! { drop(unsafe { Box::from_raw(leaked) }); }
    first
}

fn main() {
    assert_eq!(work(), 7);
    wipe();
}
