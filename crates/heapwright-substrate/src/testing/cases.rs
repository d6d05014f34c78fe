//! How many cases a property is tried with: for the unit tests of this crate and, by its path, of
//! those above. (A feature that brought it would bring `std` to the preload library, where Cargo
//! builds both at once.)

extern crate std;

use proptest::test_runner::Config;

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
