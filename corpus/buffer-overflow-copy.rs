// finds: buffer-overflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
include!("corpus.rs");

fn main() {
    let n = size();
    let from = vec![1u8; n + 8];
    let mut to = vec![0u8; n];
    unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), black_box(to.as_mut_ptr()), n + pick!(3, 0)) };
    black_box(&to);
}
