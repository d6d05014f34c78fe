//! The number of cases with which a property is tried. The crates above use this file by its path:
//! a feature would bring `std` to the preload library, if Cargo builds both at once.

extern crate std;

use proptest::test_runner::Config;

/// `cases`, or `PROPTEST_CASES`; a few under Miri. A failure writes no file.
pub(crate) fn cases(cases: u32) -> Config {
    let is_set = !cfg!(miri) && std::env::var_os("PROPTEST_CASES").is_some();
    let default = if cfg!(miri) { Config::with_cases(3) } else { Config::default() };
    let cases = if is_set || cfg!(miri) { default.cases } else { cases };
    Config { cases, failure_persistence: None, ..default }
}
