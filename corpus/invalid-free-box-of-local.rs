// finds: invalid-free
// words: stack
include!("corpus.rs");

fn main() {
    let mut local = [1u8; 40];
    let raw: *mut [u8; 40] = black_box(&mut local);
    let owned = pick!(raw, Box::into_raw(Box::new(local)));
    drop(unsafe { Box::from_raw(black_box(owned)) });
    black_box(&mut local);
}
