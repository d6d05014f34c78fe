// leaks: definite 1 SIZE at A in work
// sizes: 24 3000 400000
// std::mem::forget of what owns memory.
include!("../corpus.rs");

#[inline(never)]
fn work() {
    let v = black_box(vec![1u8; size()]); // LEAK A
    bug! { std::mem::forget(v); }
    fix! { drop(v); }
}

fn main() {
    work();
    wipe();
}
