//! Which policy? Read once, when the library is loaded.
//!
//! A name that is unknown is said in one line, and the library's own policy stays: a
//! measurement that goes on under a wrong name would be worse, so the race itself
//! checks names before it runs anything.

use core::ffi::{CStr, c_char};

use heapwright::policies::Policy;
use policies::Visitor;

const VARIABLE: &CStr = c"HEAPWRIGHT_POLICY";

#[used]
#[unsafe(link_section = ".init_array.00100")]
static CONSTRUCTOR: extern "C" fn() = construct;

/// Tells the library to follow a policy.
struct Set;

impl Visitor for Set {
    type Output = ();

    fn visit<P: Policy>(self) {
        heapwright::policies::set::<P>();
    }
}

extern "C" fn construct() {
    // SAFETY: the name is a string; nobody changes the environment before `main`.
    let value: *const c_char = unsafe { libc::getenv(VARIABLE.as_ptr()) };
    if value.is_null() {
        return;
    }
    // SAFETY: not null, so a string of the environment.
    let name = unsafe { CStr::from_ptr(value) };
    let known = name.to_str().ok().and_then(|name| policies::with(name, Set));
    if known.is_none() {
        say(b"heapwright: HEAPWRIGHT_POLICY='");
        say(name.to_bytes());
        say(b"' is no policy; the library's own is followed (policies list shows the names)\n");
    }
}

fn say(text: &[u8]) {
    heapwright::process::write_stderr(text);
}
