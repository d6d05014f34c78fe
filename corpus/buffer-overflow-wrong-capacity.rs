// finds: buffer-overflow
// sizes: 24 3000 400000
// words: %SIZE%-byte
// from_raw_parts with too large a capacity: push believes it.
include!("corpus.rs");

fn main() {
    let mut v = std::mem::ManuallyDrop::new(vec![1u8; size()]);
    let mut again = unsafe { Vec::from_raw_parts(v.as_mut_ptr(), v.len(), v.capacity() + pick!(8, 0)) };
    again.push(2);
    drop(black_box(again));
}
