//! `Debug` of values that may lead to themselves.
//!
//! ```text
//!   PRINTED   | thread, object | thread, object | ...     the objects that all threads print now
//! ```
//!
//! A value's `Debug` prints the objects that the value leads to. For an object that is already
//! being printed, `print` prints only the address. At great depth, and after very many objects,
//! `print` also prints only addresses, because a graph of few objects may have very many paths. The
//! `Debug` of references and collections calls `print`.

use core::fmt;

use heapwright_substrate::os;
use heapwright_substrate::sync::Lock;

/// The most objects that a thread prints within each other. `OBJECTS`: the most in one call.
const DEPTH: usize = 128;
const OBJECTS: usize = 10_000;

#[derive(Clone, Copy)]
struct Printed {
    thread: usize,
    object: usize,
    /// In a thread's first entry: the number of objects that the thread has printed since.
    objects: usize,
}

struct All {
    printed: [Printed; 8 * DEPTH],
    count: usize,
}

static PRINTED: Lock<All> =
    Lock::new(All { printed: [Printed { thread: 0, object: 0, objects: 0 }; 8 * DEPTH], count: 0 });

impl All {
    /// Adds an object, unless the thread prints it already, or has printed enough.
    fn enter(&mut self, thread: usize, object: usize) -> bool {
        let (mut depth, mut first) = (0, None);
        for at in 0..self.count {
            let printed = &mut self.printed[at];
            if printed.thread == thread {
                if printed.object == object {
                    return false;
                }
                first.get_or_insert(at);
                depth += 1;
            }
        }
        if let Some(first) = first {
            self.printed[first].objects += 1;
            if depth == DEPTH || self.printed[first].objects > OBJECTS {
                return false;
            }
        }
        if self.count == self.printed.len() {
            return false;
        }
        self.printed[self.count] = Printed { thread, object, objects: 0 };
        self.count += 1;
        true
    }

    fn leave(&mut self, thread: usize, object: usize) {
        let of = |printed: &Printed| printed.thread == thread && printed.object == object;
        if let Some(at) = self.printed[..self.count].iter().rposition(of) {
            self.printed.copy_within(at + 1..self.count, at);
            self.count -= 1;
        }
    }
}

/// Removes an object after it was printed, even if printing unwinds.
struct Leave(usize, usize);

impl Drop for Leave {
    fn drop(&mut self) {
        PRINTED.lock().leave(self.0, self.1);
    }
}

/// Prints an object by `with`. Prints the address if [`All::enter`] refuses the object.
pub(super) fn print(
    f: &mut fmt::Formatter<'_>,
    object: *const u8,
    with: impl FnOnce(&mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    let thread = os::thread_token();
    if !PRINTED.lock().enter(thread, object.addr()) {
        return write!(f, "Gc({object:p})");
    }
    let _leave = Leave(thread, object.addr());
    with(f)
}
