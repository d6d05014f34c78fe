// leaks: definite 1 10*24 at A in work with 10 10*SIZE
// leaks: indirect 10 10*SIZE at B in text
// sizes: 24 3000
// Vec::leak: the texts in it are lost with it.
include!("../corpus.rs");

#[inline(never)]
fn text() -> String {
    "x".repeat(size()) // LEAK B
}

#[inline(never)]
fn work() {
    let mut texts: Vec<String> = black_box(Vec::with_capacity(10)); // LEAK A
    for _ in 0..10 {
        texts.push(text());
    }
    let leaked = black_box(texts.leak());
    fix! { drop(unsafe { Vec::from_raw_parts(leaked.as_mut_ptr(), 10, 10) }); }
    black_box(leaked.len());
}

fn main() {
    work();
    wipe();
}
