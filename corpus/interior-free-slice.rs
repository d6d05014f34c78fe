// finds: interior-free
// words: 8 bytes into an 80-byte
// One element of a boxed slice is made a box of its own.
include!("corpus.rs");

fn main() {
    let mut all: Box<[u64]> = vec![1u64; 10].into_boxed_slice();
    let second: *mut u64 = black_box(&mut all[1]);
    bug! { drop(unsafe { Box::from_raw(second) }); }
    black_box(second);
}
