// finds: invalid-free
// words: invalid-free-cstring-literal
// CString::from_raw of a text that the program was born with. (It ends the text
// with a NUL first, so the text must be one that can be written.)
include!("corpus.rs");
use std::ffi::CString;

static mut TEXT: [u8; 10] = *b"a literal\0";

fn main() {
    let raw = pick!((&raw mut TEXT).cast(), CString::new("a copy").unwrap().into_raw());
    drop(unsafe { CString::from_raw(black_box(raw)) });
}
