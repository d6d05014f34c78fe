// finds: buffer-overflow
// sizes: 32 3008 400000
// words: %SIZE%-byte
// needs: guard=all
// A slice made from raw parts that is one element too long.
include!("corpus.rs");

fn main() {
    let v = vec![1u32; size() / 4];
    let all = unsafe { std::slice::from_raw_parts(black_box(v.as_ptr()), v.len() + pick!(1, 0)) };
    assert!(black_box(all).iter().map(|&n| u64::from(n)).sum::<u64>() > 0);
}
