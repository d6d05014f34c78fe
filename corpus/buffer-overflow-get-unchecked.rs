// finds: buffer-overflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
// The last index of a slice is not its length.
include!("corpus.rs");

fn main() {
    let mut v = vec![0u32; size() / 4];
    let n = black_box(v.len() - pick!(0, 1));
    unsafe { *v.as_mut_ptr().add(n) = 42 };
    black_box(&mut v);
}
