//! The number of cases with which a property is tried: for the unit tests of this crate, and (by
//! the path of this file) of the crates above. (A feature for this file would bring `std` to the
//! preload library, if Cargo builds both at once.)

extern crate std;

use proptest::test_runner::Config;

/// A property is tried `cases` times, or `PROPTEST_CASES` times; a few times under Miri, which is a
/// thousand times slower.
///
/// No file is written: a failure prints its smallest input.
pub(crate) fn cases(cases: u32) -> Config {
    let is_set = !cfg!(miri) && std::env::var_os("PROPTEST_CASES").is_some();
    let default = if cfg!(miri) { Config::with_cases(3) } else { Config::default() };
    let cases = if is_set || cfg!(miri) { default.cases } else { cases };
    Config { cases, failure_persistence: None, ..default }
}
