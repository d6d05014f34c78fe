//! The table of variants.
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

use heapwright::policies::{Fallback, Order, Policy, Reviewed};

use crate::Visitor;

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
mod tests {
    use super::*;
    extern crate std;
    use std::format;
    use std::string::String;
    use std::vec::Vec;

    /// A name, from what a variant is.
    fn name(variant: &Variant) -> String {
        let count = match variant.scan {
            EVERY => String::from("all"),
            scan => format!("{scan}"),
        };
        let precedence = if variant.precedence { "precedence" } else { "plain" };
        let fallback = match variant.fallback {
            Fallback::Current => "current",
            Fallback::Random => "random",
        };
        match (variant.order, variant.scan) {
            (Order::Linear, EVERY) if variant.precedence => "before".into(),
            (Order::Linear, EVERY) => "linear-plain".into(),
            (Order::Random, 0) if fallback == "current" => "stay".into(),
            (Order::Random, 0) => "wander".into(),
            (Order::Random, _) => {
                let skip = if variant.skip_current { "skip-" } else { "" };
                format!("{skip}{precedence}-{count}-{fallback}")
            }
            (Order::Linear, _) => panic!("no name for {variant:?}"),
        }
    }

    #[test]
    fn names_say_what_variants_are() {
        for variant in ALL {
            assert_eq!(variant.name, name(variant));
        }
    }

    #[test]
    fn a_name_leads_to_the_type_it_names() {
        struct Constants;
        impl Visitor for Constants {
            type Output = (usize, Order, bool, bool, Fallback);
            fn visit<P: Policy>(self) -> Self::Output {
                (P::SCAN, P::ORDER, P::PRECEDENCE, P::SKIP_CURRENT, P::FALLBACK)
            }
        }
        let mut seen = Vec::new();
        for v in ALL {
            let constants = (v.scan, v.order, v.precedence, v.skip_current, v.fallback);
            assert_eq!(with(v.name, Constants), Some(constants));
            assert!(!seen.contains(&constants), "{} is there twice", v.name);
            seen.push(constants);
        }
        assert_eq!(with("precedence-5-current", Constants), None);
    }

    #[test]
    fn the_review_measured_nine_and_chose_the_librarys() {
        let nine: Vec<_> = ALL.iter().filter_map(|v| Some((v.name, v.review?))).collect();
        assert_eq!(nine.len(), 9);
        let best = nine.iter().min_by_key(|(_, review)| review.threads_40).unwrap();
        assert_eq!(best.0, crate::CHOSEN);
        let chosen = find(crate::CHOSEN).unwrap();
        assert_eq!((chosen.scan, chosen.precedence), (Reviewed::SCAN, Reviewed::PRECEDENCE));
    }
}
