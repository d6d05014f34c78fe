// leaks: definite 1 SIZE+1 at A in work
// sizes: 24 3000
// CString::into_raw for a C function that does not free; nobody takes it back.
include!("../corpus.rs");
use std::ffi::CString;

unsafe extern "C" {
    fn strlen(text: *const std::ffi::c_char) -> usize;
}

#[inline(never)]
fn work() -> usize {
    let text = CString::new("x".repeat(size())).unwrap(); // LEAK A
    let raw = text.into_raw();
    let n = unsafe { strlen(black_box(raw)) };
    fix! { drop(unsafe { CString::from_raw(raw) }); }
    n
}

fn main() {
    assert_eq!(work(), size());
    wipe();
}
