// finds: double-free
// sizes: 24 3000
// words: %SIZE%-byte
// ManuallyDrop::drop, and then into_inner.
include!("corpus.rs");
use std::mem::ManuallyDrop;

fn main() {
    let mut text = ManuallyDrop::new("x".repeat(size()));
    unsafe { ManuallyDrop::drop(&mut text) };
    bug! { drop(black_box(ManuallyDrop::into_inner(text))); }
}
