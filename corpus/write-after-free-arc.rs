// finds: write-after-free|use-after-free
// words: 56-byte
// One owner too many is dropped: the count is taken down in a freed block. (An
// atomic subtraction reads and writes.)
include!("corpus.rs");
use std::sync::Arc;

fn main() {
    let raw = black_box(Arc::into_raw(Arc::new([1u8; 40])));
    fix! { unsafe { Arc::increment_strong_count(raw) }; }
    unsafe { Arc::decrement_strong_count(raw) };
    unsafe { Arc::decrement_strong_count(black_box(raw)) };
}
