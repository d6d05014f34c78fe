//! Refusals: lets the window refuse memory to a thread, for tests (feature `testing`).
//!
//! ```text
//!   | thread, left | thread, left | ...      left: the takes that still succeed
//! ```

use crate::os;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// An upper bound of the tests that run at once.
const MOST: usize = 256;

/// A thread's token, or 0, and the takes that still succeed. Only the thread uses the latter.
struct Refusal(AtomicUsize, AtomicUsize);

static ALL: [Refusal; MOST] = [const { Refusal(AtomicUsize::new(0), AtomicUsize::new(0)) }; MOST];

fn of(token: usize) -> Option<&'static Refusal> {
    ALL.iter().find(|refusal| refusal.0.load(Ordering::Relaxed) == token)
}

/// Refuses memory of the window to this thread after this number of takes; `None`: never.
pub fn refuse_after(takes: Option<usize>) {
    let me = os::thread_token();
    let Some(takes) = takes else {
        if let Some(mine) = of(me) {
            mine.0.store(0, Ordering::Relaxed);
        }
        return;
    };
    let claim = |refusal: &&Refusal| {
        refusal.0.compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    };
    let mine = of(me).or_else(|| ALL.iter().find(claim)).expect("fewer threads are refused memory");
    mine.1.store(takes, Ordering::Relaxed);
}

pub(crate) fn is_refused() -> bool {
    of(os::thread_token()).is_some_and(|mine| {
        let left = mine.1.load(Ordering::Relaxed);
        mine.1.store(left.saturating_sub(1), Ordering::Relaxed);
        left == 0
    })
}
