extern crate std;

use std::boxed::Box;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::address_map::AddressMap;
use crate::chunk::{Chunk, Want};
use crate::os::fake::Fake;

mod cases;

pub(crate) use cases::cases;

/// The initial target of the first word. No module of this crate reads it.
#[allow(dead_code, reason = "the words of `os::portable` begin without it")]
static NOWHERE: usize = 0;

// The crate above defines the words, but tests of this crate run without that crate.
crate::os::tls::define_words!(NOWHERE);

pub(crate) fn sample<T>(strategy: &impl Strategy<Value = T>) -> T {
    let mut runner = TestRunner::deterministic();
    strategy.new_tree(&mut runner).unwrap().current()
}

pub(crate) fn units(page: usize, count: usize) -> (Fake, &'static AddressMap, usize) {
    let os = Fake::new(page, 1 << 30, None);
    let map: &'static AddressMap = Box::leak(Box::new(AddressMap::new()));
    let mut chunk = Chunk::closed(os, map);
    assert!(chunk.open(4 << 20));
    let run = chunk.take(count, Want::Zero).unwrap();
    assert!(run.zero);
    (os, map, run.unit)
}
