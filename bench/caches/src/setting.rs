//! An allocator as it is set up: a row of every table, a line of every plot.
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

use ::figures::options::library;
use serde::{Deserialize, Serialize};

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
/// The program without a preload.
pub(crate) const GLIBC: &str = "glibc";

/// The most caches that are shared if nobody says how many.
const MOST_SHARED: u32 = 32;

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Setting {
    pub(crate) name: String,
    /// `NAME=VALUE`, `LD_PRELOAD` among them.
    pub(crate) environment: Vec<String>,
    /// Whether it is heapwright.
    pub(crate) ours: bool,
    /// How many caches there are, where threads share them.
    pub(crate) caches: Option<u32>,
}

impl Setting {
    fn ours(library: &str, name: String, caches: Option<u32>) -> Self {
        let environment = vec![format!("HEAPWRIGHT=cache={name}"), format!("LD_PRELOAD={library}")];
        Self { name, environment, ours: true, caches }
    }

    /// All of heapwright's.
    pub(crate) fn all_ours(library: &str, shared: &[u32], cpus: u32) -> Vec<Self> {
        let mut all = vec![
            Self::ours(library, EXCLUSIVE.to_owned(), None),
            Self::ours(library, AUTO.to_owned(), None),
            Self::ours(library, SHARED.to_owned(), Some(cpus.min(MOST_SHARED))),
        ];
        for &caches in shared {
            all.push(Self::ours(library, format!("{SHARED}:{caches}"), Some(caches)));
        }
        all.push(Self::ours(library, PER_CPU.to_owned(), Some(cpus)));
        all
    }

    /// glibc.
    pub(crate) fn glibc() -> Self {
        Self { name: GLIBC.to_owned(), environment: Vec::new(), ours: false, caches: None }
    }

    /// Another library.
    pub(crate) fn peer(line: &str) -> Result<Self, String> {
        let (name, environment) = library(line)?;
        Ok(Self { name, environment, ours: false, caches: None })
    }

    /// Whether its caches are shared by all threads, K of them.
    pub(crate) fn is_shared(&self) -> bool {
        self.ours && self.name.split(':').next() == Some(SHARED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_are_those_that_were_asked_for() {
        let all = Setting::all_ours("/a.so", &[8, 32], 2);
        let names: Vec<&str> = all.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["exclusive", "auto", "shared", "shared:8", "shared:32", "percpu"]);
        let caches: Vec<Option<u32>> = all.iter().map(|s| s.caches).collect();
        assert_eq!(caches, [None, None, Some(2), Some(8), Some(32), Some(2)]);
        assert_eq!(all[3].environment, ["HEAPWRIGHT=cache=shared:8", "LD_PRELOAD=/a.so"]);
        assert_eq!(Setting::all_ours("/a.so", &[], 72)[2].caches, Some(32));
        assert!(all[2].is_shared() && all[3].is_shared() && !all[1].is_shared());
    }
}
