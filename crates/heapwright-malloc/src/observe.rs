//! For tests alone (feature `observe`): the events of the debug heap's hooks.
//!
//! A test program calls `hw_observe` with a function. Like the start in debug mode, the call sets
//! our fault handler and makes the C++ forms distinguishable. Threads that *begin* to allocate
//! afterwards call the function in every slow call. The function must not allocate.

use core::sync::atomic::{AtomicPtr, Ordering};
use heapwright::heap::Verdict;
use heapwright::heap::observe::{self, Event, Watcher};
use libc::{c_int, c_void};

/// An [`Event`] in plain words, for a test program. Unknown values are -1.
#[repr(C)]
struct Seen {
    /// r)equest, f)ree, a)nother size, s)ignal, d)lclose, e)xit.
    what: u8,
    origin: u8,
    zero: bool,
    size: usize,
    align: usize,
    /// The new size of a resize; the address of a fault.
    other: usize,
    is_write: c_int,
    context: *mut c_void,
}

type Callback = unsafe extern "C" fn(*const Seen) -> c_int;

static CALLBACK: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

fn watch(event: Event) -> Verdict {
    let mut seen = Seen {
        what: b'e',
        origin: 0,
        zero: false,
        size: !0,
        align: !0,
        other: 0,
        is_write: -1,
        context: core::ptr::null_mut(),
    };
    match event {
        Event::Request(origin, size, align, zero) => {
            (seen.what, seen.origin, seen.size, seen.align) = (b'r', origin as u8, size, align);
            seen.zero = zero;
        }
        Event::Return(origin, size, align) => {
            (seen.what, seen.origin) = (b'f', origin as u8);
            (seen.size, seen.align) = (size.unwrap_or(!0), align.unwrap_or(!0));
        }
        Event::Resize(origin, new, size, align) => {
            (seen.what, seen.origin, seen.other) = (b'a', origin as u8, new);
            (seen.size, seen.align) = (size.unwrap_or(!0), align.unwrap_or(!0));
        }
        Event::Fault(address, is_write, context) => {
            (seen.what, seen.other, seen.context) = (b's', address, context);
            seen.is_write = is_write.map_or(-1, c_int::from);
        }
        Event::Forget => seen.what = b'd',
        Event::AtExit => {}
    }
    // SAFETY: `hw_observe` stores only null and functions of this type.
    let callback = unsafe {
        core::mem::transmute::<*mut c_void, Option<Callback>>(CALLBACK.load(Ordering::Acquire))
    };
    // SAFETY: the test program promised `hw_observe` that the function may be called.
    match callback.map(|callback| unsafe { callback(&raw const seen) }) {
        Some(1) => Verdict::GoOn,
        Some(2) => Verdict::Stop,
        _ => Verdict::NotOurs,
    }
}

/// # Safety
///
/// The function may be called at any time, by any thread.
#[unsafe(no_mangle)]
unsafe extern "C" fn hw_observe(callback: Callback) {
    static WATCH: Watcher = watch;
    CALLBACK.store(callback as *mut c_void, Ordering::Release);
    observe::begin(&WATCH);
    crate::constructor::begin_debugging();
    crate::at_exit::prepare();
}
