//! What the unit tests share: how many cases a property is tried with, and memory that is refused.

extern crate std;

use proptest::test_runner::Config;

pub(crate) use heapwright_substrate::refusals::refuse_after;

/// A property is tried `cases` times, or as often as `PROPTEST_CASES` says; a
/// few times under Miri, which is a thousand times slower.
///
/// Nothing is kept in files: a failure prints its smallest input.
pub(crate) fn cases(cases: u32) -> Config {
    let is_set = !cfg!(miri) && std::env::var_os("PROPTEST_CASES").is_some();
    let default = if cfg!(miri) { Config::with_cases(3) } else { Config::default() };
    let cases = if is_set || cfg!(miri) { default.cases } else { cases };
    Config { cases, failure_persistence: None, ..default }
}
