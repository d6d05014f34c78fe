//! An allocator as it is set up: a column of the results, a row of every table, a line of every
//! plot.
//!
//! ```text
//!   exclusive   HEAPWRIGHT=cache=exclusive   libheapwright.so     1 cache a thread
//!   auto        HEAPWRIGHT=cache=auto        libheapwright.so     the default: some of a thread, and a CPU's
//!   shared      HEAPWRIGHT=cache=shared      libheapwright.so     K = min(CPUs, 32)
//!   shared:K    HEAPWRIGHT=cache=shared:K    libheapwright.so     K
//!   percpu      HEAPWRIGHT=cache=percpu      libheapwright.so     CPUs
//!   a peer      what bench/peers says        its library
//!   glibc                                    none
//! ```

pub(crate) use ::figures::options::{Allocator, GLIBC};

/// The row that the others' ratios are of.
pub(crate) const EXCLUSIVE: &str = "exclusive";
/// What nobody has to ask for.
pub(crate) const AUTO: &str = "auto";
/// K as it comes.
pub(crate) const SHARED: &str = "shared";
/// A cache a CPU.
pub(crate) const PER_CPU: &str = "percpu";
/// The peer that the figures name.
pub(crate) const SCUDO: &str = "scudo";

/// The most caches that are shared if nobody says how many.
const MOST_SHARED: u32 = 32;

/// Whether a setting is heapwright's.
pub(crate) fn is_ours(name: &str) -> bool {
    [EXCLUSIVE, AUTO, PER_CPU].contains(&name) || is_shared(name)
}

/// Whether its caches are shared by all threads, K of them.
pub(crate) fn is_shared(name: &str) -> bool {
    name.split(':').next() == Some(SHARED)
}

/// How many caches there are, where threads share them.
pub(crate) fn caches(name: &str) -> Option<u32> {
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    match name {
        SHARED => Some(cpus.min(MOST_SHARED)),
        PER_CPU => Some(cpus),
        _ => name.strip_prefix("shared:")?.parse().ok(),
    }
}

/// All of heapwright's.
pub(crate) fn all_ours(library: &str, shared: &[u32]) -> Vec<Allocator> {
    let more = shared.iter().map(|caches| format!("{SHARED}:{caches}"));
    let names = [EXCLUSIVE, AUTO, SHARED].map(str::to_owned).into_iter().chain(more);
    let of = |name: String| {
        let environment = [format!("HEAPWRIGHT=cache={name}"), format!("LD_PRELOAD={library}")];
        Allocator::new(&name, environment)
    };
    names.chain([PER_CPU.to_owned()]).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_are_those_that_were_asked_for() {
        let all = all_ours("/a.so", &[8, 32]);
        let names: Vec<&str> = all.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["exclusive", "auto", "shared", "shared:8", "shared:32", "percpu"]);
        assert_eq!(all[3].environment, ["HEAPWRIGHT=cache=shared:8", "LD_PRELOAD=/a.so"]);
        assert!(names.iter().all(|name| is_ours(name)) && !is_ours("scudo"));
        assert_eq!(["exclusive", "shared:8", "scudo"].map(caches), [None, Some(8), None]);
        assert!(is_shared("shared") && is_shared("shared:8") && !is_shared("auto"));
    }
}
