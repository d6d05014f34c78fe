//! The number of cases with which a property is tested. The crates above include this file by its
//! path. (With a feature instead, a build of the tests and the preload library together would bring
//! `std` into the library.)

extern crate std;

use proptest::test_runner::Config;

/// A configuration with `cases` or `PROPTEST_CASES` cases; under Miri, 3. Failures write no file.
pub(crate) fn cases(cases: u32) -> Config {
    let is_set = !cfg!(miri) && std::env::var_os("PROPTEST_CASES").is_some();
    let default = if cfg!(miri) { Config::with_cases(3) } else { Config::default() };
    let cases = if is_set || cfg!(miri) { default.cases } else { cases };
    Config { cases, failure_persistence: None, ..default }
}
