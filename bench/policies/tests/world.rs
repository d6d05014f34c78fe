//! The simulated world keeps its laws, whatever machine it is given.

use policies::calibration::Costs;
use policies::world::{Outcome, Setup, World, simulate};
use proptest::prelude::*;

fn costs() -> impl Strategy<Value = Costs> {
    let few = || prop::collection::vec(1..400u64, 1..5);
    let ns = |most: u64| 0..most;
    (
        (ns(10), ns(200), 1..60u64, ns(60), ns(900), ns(9000)),
        (ns(40_000), ns(4000), 8000..60_000u64, ns(4)),
        few(),
        few(),
    )
        .prop_map(|(short, long, op, work)| Costs {
            try_unlock: short.0,
            line: short.1,
            look: short.2,
            clock: short.3,
            wake_none: short.4,
            wake_call: short.5,
            wake_latency: long.0,
            switch: long.1,
            slice: long.2,
            cold_lines: long.3,
            op,
            work,
        })
}

fn setup() -> impl Strategy<Value = Setup> {
    (1..9usize, 1..20usize, 1..9usize, any::<u64>()).prop_map(|(cpus, threads, caches, seed)| {
        Setup { cpus, threads, caches, ns: 300_000, seed }
    })
}

proptest! {
    // (No file of failures: the strategies contain the found cases.)
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_lock_is_held_by_two_and_time_never_goes_back(
        costs in costs(),
        setup in setup(),
    ) {
        let mut world = World::new(&costs, setup);
        world.check().map_err(TestCaseError::fail)?;
        let mut now = 0;
        let mut ops = 0;
        for _ in 0..4000 {
            if !world.advance() {
                break;
            }
            prop_assert!(world.now() >= now && world.now() <= setup.ns);
            now = world.now();
            world.check().map_err(TestCaseError::fail)?;
            let outcome = world.outcome();
            prop_assert!(outcome.ops >= ops);
            prop_assert!(outcome.holders <= outcome.preempted);
            ops = outcome.ops;
        }
    }

    #[test]
    fn every_thread_gets_somewhere(costs in costs(), setup in setup()) {
        let setup = Setup { ns: 8_000_000, threads: setup.threads.min(6), ..setup };
        let outcome = simulate(&costs, setup);
        prop_assert!(outcome.ops > 100, "{:?}", outcome);
        prop_assert!(outcome.ns <= setup.ns * setup.threads as u64);
    }
}

fn simple() -> Costs {
    Costs {
        try_unlock: 5,
        line: 50,
        look: 20,
        clock: 20,
        wake_none: 200,
        wake_call: 1500,
        wake_latency: 5000,
        switch: 1500,
        slice: 100_000,
        cold_lines: 2,
        op: vec![100],
        work: vec![300],
    }
}

fn run(cpus: usize, threads: usize, caches: usize) -> Outcome {
    simulate(&simple(), Setup { cpus, threads, caches, ns: 10_000_000, seed: 1 })
}

#[test]
fn a_thread_with_a_cache_of_its_own_pays_for_the_lock_alone() {
    let outcome = run(8, 8, 8);
    assert_eq!((outcome.failed, outcome.waits, outcome.cold, outcome.caches), (0, 0, 0, 8));
    // A line is fetched once; then 5 + 100 of every 405 ns.
    assert!((105.0..105.1).contains(&outcome.ns_per_op()), "{outcome:?}");
    let expected = 8 * 10_000_000 / 405;
    assert!(outcome.ops.abs_diff(expected) < 16, "{outcome:?}");
}

#[test]
fn more_threads_than_caches_wait_for_each_other() {
    let two = run(8, 8, 2);
    let four = run(8, 8, 4);
    assert!(two.waits > four.waits && four.waits > 0, "{two:?} {four:?}");
    assert!(two.ns_per_op() > four.ns_per_op() && four.ns_per_op() > 105.0);
    assert!(two.ops <= 2 * 10_000_000 / 105, "{two:?}");
}

#[test]
fn threads_beyond_the_cpus_lose_them_and_some_while_they_hold_a_lock() {
    let fits = run(8, 8, 8);
    assert_eq!(fits.preempted, 0);
    let more = run(8, 12, 8);
    assert!(more.preempted > 100 && more.holders > 0, "{more:?}");
    assert!(more.ns_per_op() > fits.ns_per_op());
}

#[test]
fn the_same_seed_is_the_same_outcome_and_another_is_not() {
    let with = |seed| {
        let costs = Costs { op: vec![50, 150], work: vec![100, 500], ..simple() };
        let setup = Setup { cpus: 4, threads: 6, caches: 3, ns: 2_000_000, seed };
        simulate(&costs, setup)
    };
    assert_eq!(with(1), with(1));
    assert_ne!(with(1), with(2));
}
