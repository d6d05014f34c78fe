// finds: interior-free
// sizes: 24 3000 400000
// words: 4 bytes into a %SIZE%-byte
// The rest of a vector, without its first four bytes, as a vector.
include!("corpus.rs");

fn main() {
    let mut v = std::mem::ManuallyDrop::new(vec![1u8; size()]);
    let skip = pick!(4, 0);
    let rest = unsafe { Vec::from_raw_parts(v.as_mut_ptr().add(skip), v.len() - skip, v.capacity() - skip) };
    drop(black_box(rest));
}
