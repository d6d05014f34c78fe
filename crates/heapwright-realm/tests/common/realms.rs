//! Every way in which a realm may collect, for property tests.

use heapwright::gc::Layout;
use heapwright::gc::raw::{Options, STRESS, VERIFY_BARRIERS, VERIFY_HEAP};
use proptest::prelude::*;

/// Returns a configuration with as many cases as time allows: each case is a long run.
pub(crate) fn config() -> ProptestConfig {
    ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 48 },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Options except `least`. Verified, except under Miri, which is slow.
pub(crate) fn ways_to_collect(least: usize) -> impl Strategy<Value = Options> {
    any::<[bool; 5]>().prop_map(move |[incremental, generations, stress, ruby, compact]| Options {
        incremental,
        generations,
        compact,
        verify: match (cfg!(miri), stress) {
            (true, _) => 0,
            (false, true) => VERIFY_HEAP | VERIFY_BARRIERS | STRESS,
            (false, false) => VERIFY_HEAP | VERIFY_BARRIERS,
        },
        layout: if ruby { Layout::Ruby } else { Layout::Fine },
        least,
        step_ns: 2_000,
        ..Options::new()
    })
}
