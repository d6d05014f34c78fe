//! The variants: what a policy decides, as constants, and the table of all.
//!
//! ```text
//!   name                   order    looks at  precedence  skips current  else waits for
//!   before                 linear   all       yes         no             current
//!   precedence-4-current   random   4         yes         no             current        <- the library's
//!   ...
//! ```
//!
//! A name says what a variant is: `precedence` or `plain` (without), how many caches it
//! looks at, what it waits for when the look was in vain. `skip-` passes over the
//! current cache, `linear-` begins at cache 0; `stay` and `wander` look at none.
//!
//! The review published the total seconds that t-test1 spent in allocation functions,
//! on 72 cores with 32 caches, for nine of them. They were measured in scudo, whose
//! starting point read all precedences after the scan; here they are read during it,
//! one after each try that failed, as in all the others.

use crate::Visitor;
use crate::library::{self, Caches, Choice, below, spread};

/// Where a scan begins, and how it goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// At a random cache, by a random stride that is coprime with their number.
    Random,
    /// At cache 0, one after the other.
    Linear,
}

/// Which cache is waited for where the scan ends without one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fallback {
    /// The one that the thread had.
    Current,
    /// A random one.
    Random,
}

/// How a thread finds another cache when its own is held.
pub trait Policy {
    /// How many caches it looks at.
    const SCAN: usize;
    /// In which order.
    const ORDER: Order;
    /// Whether it then waits for the one that has been contended longest.
    const PRECEDENCE: bool;
    /// Whether the scan passes over the cache whose try has just failed.
    const SKIP_CURRENT: bool;
    /// What it waits for otherwise.
    const FALLBACK: Fallback;

    /// Chooses a cache for a thread whose try of `current` has failed.
    fn choose(caches: &(impl Caches + ?Sized), current: usize) -> Choice {
        scan::<Self>(caches, current)
    }
}

/// What `P`'s constants say, done.
pub fn scan<P: Policy + ?Sized>(caches: &(impl Caches + ?Sized), current: usize) -> Choice {
    let count = caches.count();
    let random = spread(caches.precedence(current));
    let (mut at, stride) = match P::ORDER {
        Order::Linear => (0, 1),
        // The start takes the upper bits, the stride others.
        Order::Random => {
            let stride = caches.stride(below(random.rotate_left(16), caches.strides()));
            (below(random, count), stride)
        }
    };
    let mut lowest = usize::MAX;
    let mut candidate = None;
    for _ in 0..P::SCAN.min(count) {
        if !(P::SKIP_CURRENT && at == current) {
            if caches.try_lock(at) {
                return Choice::Locked(at);
            }
            let precedence = caches.precedence(at);
            // 0: it was given back and locked again in between. Not one to wait for.
            if P::PRECEDENCE && precedence != 0 && precedence < lowest {
                lowest = precedence;
                candidate = Some(at);
            }
        }
        at += stride;
        // More than once where the strides are already those of more caches.
        while at >= count {
            at -= count;
        }
    }
    Choice::Wait(candidate.unwrap_or_else(|| match P::FALLBACK {
        Fallback::Current => current,
        Fallback::Random => below(random.rotate_left(8), count),
    }))
}

/// The library's, which the review chose: its constants in words, and its own function.
#[derive(Clone, Copy, Debug)]
pub struct Reviewed;

impl Policy for Reviewed {
    const SCAN: usize = library::SCAN;
    const ORDER: Order = Order::Random;
    const PRECEDENCE: bool = true;
    const SKIP_CURRENT: bool = false;
    const FALLBACK: Fallback = Fallback::Current;

    fn choose(caches: &(impl Caches + ?Sized), current: usize) -> Choice {
        library::choose(caches, current)
    }
}

/// What the review measured: seconds in allocation functions, of all threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Review {
    /// 40 threads at a time.
    pub threads_40: u32,
    /// 80 threads at a time.
    pub threads_80: u32,
}

/// One way to find a cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Variant {
    /// What it is called on command lines and in tables.
    pub name: &'static str,
    /// What it does, in words.
    pub what: &'static str,
    /// How many caches it looks at.
    pub scan: usize,
    /// In which order.
    pub order: Order,
    /// Whether it waits for the one that was contended longest.
    pub precedence: bool,
    /// Whether it passes over the current one.
    pub skip_current: bool,
    /// What it waits for otherwise.
    pub fallback: Fallback,
    /// What the review measured of it, if it did.
    pub review: Option<Review>,
}

impl Variant {
    /// The review's seconds with 40 threads, or with the 80 that are `more`.
    pub fn reviewed(&self, more: bool) -> Option<f64> {
        let review = self.review?;
        Some(f64::from(if more { review.threads_80 } else { review.threads_40 }))
    }

    const fn of<P: Policy>(
        name: &'static str,
        what: &'static str,
        review: Option<(u32, u32)>,
    ) -> Self {
        Self {
            name,
            what,
            scan: P::SCAN,
            order: P::ORDER,
            precedence: P::PRECEDENCE,
            skip_current: P::SKIP_CURRENT,
            fallback: P::FALLBACK,
            review: match review {
                Some((threads_40, threads_80)) => Some(Review { threads_40, threads_80 }),
                None => None,
            },
        }
    }
}

const EVERY: usize = usize::MAX;

/// Declares a policy's type.
macro_rules! policy {
    ($type:ident: $order:ident $scan:expr, $precedence:expr, $skip:expr, $fallback:ident) => {
        #[derive(Clone, Copy, Debug)]
        struct $type;

        impl Policy for $type {
            const SCAN: usize = $scan;
            const ORDER: Order = Order::$order;
            const PRECEDENCE: bool = $precedence;
            const SKIP_CURRENT: bool = $skip;
            const FALLBACK: Fallback = Fallback::$fallback;
        }
    };
}

//                       order  looks  precedence skip   else
policy!(Before:          Linear EVERY, true,      false, Current);
policy!(LinearPlain:     Linear EVERY, false,     false, Current);
policy!(Precedence4Rand: Random 4,     true,      false, Random);
policy!(PrecedenceAll:   Random EVERY, true,      false, Current);
policy!(PrecedenceAllRa: Random EVERY, true,      false, Random);
policy!(Plain4:          Random 4,     false,     false, Current);
policy!(Plain4Rand:      Random 4,     false,     false, Random);
policy!(PlainAll:        Random EVERY, false,     false, Current);
policy!(PlainAllRand:    Random EVERY, false,     false, Random);
policy!(Stay:            Random 0,     false,     false, Current);
policy!(Wander:          Random 0,     false,     false, Random);
policy!(Precedence8:     Random 8,     true,      false, Current);
policy!(Plain8:          Random 8,     false,     false, Current);
policy!(SkipPrecedence4: Random 4,     true,      true,  Current);
policy!(SkipPlain4:      Random 4,     false,     true,  Current);
policy!(SkipPrecedAll:   Random EVERY, true,      true,  Current);

/// Makes the table, and the way from a name to its type.
macro_rules! table {
    ($($type:ty, $name:literal, $review:expr, $what:literal;)*) => {
        /// All variants, those of the review first.
        pub const ALL: &[Variant] = &[$(Variant::of::<$type>($name, $what, $review)),*];

        /// Does something for the variant of a name; nothing if there is none.
        pub fn with<V: Visitor>(name: &str, visitor: V) -> Option<V::Output> {
            match name {
                $($name => Some(visitor.visit::<$type>()),)*
                _ => None,
            }
        }
    };
}

table! {
    Before, "before", Some((960, 3315)),
        "where the review began: all from cache 0 on, then the one contended longest";
    Reviewed, "precedence-4-current", Some((810, 3200)),
        "what the review chose, and the library's: 4, then the longest contended, else the current";
    Precedence4Rand, "precedence-4-random", Some((815, 3125)),
        "4, then the longest contended, else a random one";
    PrecedenceAll, "precedence-all-current", Some((880, 3940)),
        "all, then the longest contended, else the current";
    PrecedenceAllRa, "precedence-all-random", Some((890, 3755)),
        "all, then the longest contended, else a random one";
    Plain4, "plain-4-current", Some((900, 3365)), "4, then the current";
    Plain4Rand, "plain-4-random", Some((840, 3300)), "4, then a random one";
    PlainAll, "plain-all-current", Some((1025, 3600)), "all, then the current";
    PlainAllRand, "plain-all-random", Some((890, 3785)), "all, then a random one";
    Stay, "stay", None, "none: waits for the current";
    Wander, "wander", None, "none: waits for a random one";
    Precedence8, "precedence-8-current", None, "8, then the longest contended, else the current";
    Plain8, "plain-8-current", None, "8, then the current";
    SkipPrecedence4, "skip-precedence-4-current", None,
        "as the review first had it: 4 without the current, then the longest contended";
    SkipPlain4, "skip-plain-4-current", None, "4 without the current, then the current";
    SkipPrecedAll, "skip-precedence-all-current", None,
        "all but the current, then the longest contended";
    LinearPlain, "linear-plain", None, "all from cache 0 on, then the current";
}

/// The variant of a name.
pub fn find(name: &str) -> Option<&'static Variant> {
    ALL.iter().find(|variant| variant.name == name)
}

#[cfg(test)]
mod tests;
