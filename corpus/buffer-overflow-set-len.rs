// finds: buffer-overflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
// A length beyond the capacity, and a fill.
include!("corpus.rs");

fn main() {
    let n = size();
    let mut v: Vec<u8> = Vec::with_capacity(n);
    unsafe { std::ptr::write_bytes(black_box(v.as_mut_ptr()), 1, n + pick!(1, 0)) };
    unsafe { v.set_len(n) };
    black_box(&v);
}
