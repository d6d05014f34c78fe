// finds: double-free
// sizes: 24 3000 400000
// words: %SIZE%-byte
// The parts of a vector are made a vector, and the vector lives on.
include!("corpus.rs");

fn main() {
    let mut v = vec![1u8; size()];
    let again = unsafe { Vec::from_raw_parts(v.as_mut_ptr(), v.len(), v.capacity()) };
    drop(black_box(again));
    fix! { std::mem::forget(v); }
}
