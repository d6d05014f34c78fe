//! Compares the chunk with a model, on the fake operating system.
//!
//! After each operation, each unit below the frontier must be in exactly one place: a taken run, a
//! detached run, a free run or a foreign mapping. A free run's index, tags and queue must agree.
//! The tests write marks into taken runs. So they detect a run that claims to read as zero and does
//! not, or that is handed out twice. `os::portable` has no piecewise windows.
//!
//! `world` has the model. This file tries random operations, and a system that refuses calls.
//! `windows` and `purging` test single properties.

extern crate std;

#[cfg(all(not(miri), target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod purging;
#[cfg(any(miri, all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod windows;
mod world;

use proptest::prelude::*;

use super::*;
use crate::os::fake::Fake;
use crate::testing::{cases, sample};
use world::{Op, PAGES, Space, WINDOW, World, op, ops};

fn play(space: Space, page: usize, ops: &[Op]) {
    let mut world = World::open(space, page);
    for op in ops {
        world.apply(op);
    }
    world.finish();
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn a_generous_window_keeps_account_of_every_unit(page in prop::sample::select(&PAGES), ops in ops(60)) {
        play(Space::Generous, page, &ops);
    }

    #[test]
    #[cfg_attr(
        not(all(target_os = "linux", not(miri), any(target_arch = "x86_64", target_arch = "aarch64"))),
        ignore = "the portable back end cannot reserve at an address"
    )]
    fn a_piecewise_window_keeps_account_of_every_unit(
        page in prop::sample::select(&PAGES),
        ops in ops(60),
    ) {
        play(Space::Piecewise, page, &ops);
    }
}

fn refuse_each_call(refuse: fn(&Fake, u64)) {
    let scripts = sample(&prop::collection::vec(prop::collection::vec(op(), 36), 2));
    let growth =
        [20, 30, 8, 12, 40, 3].map(|units| Op::Take { units, want_zero: true, hard: true });
    let in_the_way = Op::Foreign { at: window::PIECE + 2, units: 5 };
    let growth = [in_the_way].into_iter().chain(growth).collect();
    for script in scripts.into_iter().chain([growth]) {
        for space in [Space::Generous, Space::Piecewise] {
            for page in [4 << 10, 64 << 10] {
                let calls = (0..).find(|&call| !refuses_call(space, page, &script, refuse, call));
                assert!(calls > Some(8), "the operations must need the system: {calls:?} calls");
            }
        }
    }
}

fn refuses_call(space: Space, page: usize, ops: &[Op], refuse: fn(&Fake, u64), call: u64) -> bool {
    let mut world = World::closed(space, page);
    refuse(&world.os, call);
    world.refusing = true;
    if world.chunk.open(WINDOW) {
        for op in ops {
            world.apply(op);
        }
        let made = world.os.calls() > call;
        world.finish();
        made
    } else {
        assert!(world.os.calls() > call, "nothing was refused, and the window did not open");
        // SAFETY: the window never opened; no thread has any of it.
        unsafe { world.os.give_back() };
        true
    }
}

#[test]
#[cfg_attr(
    not(all(
        target_os = "linux",
        not(miri),
        any(target_arch = "x86_64", target_arch = "aarch64")
    )),
    ignore = "hundreds of windows, piecewise ones, too"
)]
fn a_system_that_refuses_one_call_costs_nothing_but_that() {
    refuse_each_call(Fake::refuse_only);
}

#[test]
#[cfg_attr(
    not(all(
        target_os = "linux",
        not(miri),
        any(target_arch = "x86_64", target_arch = "aarch64")
    )),
    ignore = "hundreds of windows, piecewise ones, too"
)]
fn a_system_that_refuses_all_calls_from_some_point_on_loses_nothing() {
    refuse_each_call(Fake::refuse_after);
}
