// finds: buffer-underflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
include!("corpus.rs");

fn main() {
    let mut v = vec![0u8; size()];
    unsafe { black_box(v.as_mut_ptr()).wrapping_sub(pick!(1, 0)).write_volatile(42) };
    black_box(&mut v);
}
