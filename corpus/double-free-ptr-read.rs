// finds: double-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// ptr::read copies an owner; forget is missing.
include!("corpus.rs");

fn main() {
    let first = vec![1u8; size()];
    let second = unsafe { std::ptr::read(&first) };
    drop(black_box(second));
    fix! { std::mem::forget(first); }
}
