//! The cache models: properties that hold under each model, with any threads, forks and schedulers.
//! Each case here names its model. The tests in other files run under the model that
//! `HEAPWRIGHT_TEST_CACHE` names (see `support`, and ci/test.sh, which sets it).
mod support;
use support::{How, ON_HEAPWRIGHT, Outcome, command, compile, run, skip};

/// The models. The shared caches are one, a few, and far more than CPUs and threads.
const MODELS: [&str; 7] =
    ["auto", "exclusive", "shared:1", "shared:2", "shared:8", "shared:1024", "percpu"];

/// With this setting, the C library registers no area for restartable sequences.
const WITHOUT_RSEQ: &str = "glibc.pthread.rseq=0";

fn under(model: &str, program: &str, arguments: &[&str]) -> Outcome {
    let program = compile(program, How::Preload, &[]);
    run(command(&program, How::Preload).args(arguments).env("HEAPWRIGHT", format!("cache={model}")))
}

fn fine_under_all(program: &str, arguments: &[&str]) {
    for model in MODELS {
        under(model, program, arguments).is_fine((program, model));
    }
    without_rseq(program, arguments);
}

fn without_rseq(program: &str, arguments: &[&str]) {
    let compiled = compile(program, How::Preload, &[]);
    let mut command = command(&compiled, How::Preload);
    command.args(arguments).env("HEAPWRIGHT", "cache=percpu");
    command.env("GLIBC_TUNABLES", WITHOUT_RSEQ);
    run(&mut command).is_fine((program, "percpu", WITHOUT_RSEQ));
}

fn fine_where_shared(program: &str, arguments: &[&str]) {
    for model in MODELS.into_iter().filter(|model| !["auto", "exclusive"].contains(model)) {
        under(model, program, arguments).is_fine((program, arguments, model));
    }
    without_rseq(program, arguments);
}

/// For a program with only large blocks: with runs in CPUs' arrays, and in caches with a lock.
fn fine_where_runs_are_shared(program: &str, arguments: &[&str]) {
    for model in ["percpu", "shared:2"] {
        under(model, program, arguments).is_fine((program, arguments, model));
    }
    without_rseq(program, arguments);
}

fn seconds() -> String {
    std::env::var("HEAPWRIGHT_TEST_SECONDS").unwrap_or_else(|_| "1".into())
}

/// Whether the suite runs again under a model. These tests need no second run.
fn is_again() -> bool {
    let is_again = std::env::var_os("HEAPWRIGHT_TEST_CACHE").is_some();
    if is_again {
        skip("these tests name their models themselves, and have run without another one");
    }
    is_again
}

/// The number of caches that threads share under a model, as far as it can be raised.
fn shared(model: &str) -> &str {
    model.strip_prefix("shared:").unwrap_or("0")
}

#[test]
fn caches_may_be_raised_beside_their_users() {
    if is_again() {
        return;
    }
    for model in MODELS {
        under(model, "caches_raise.c", &[shared(model)]).is_fine(model);
    }
}

#[test]
fn short_threads_leave_memory_where_ten_do() {
    if is_again() {
        return;
    }
    let cpus = std::thread::available_parallelism().map_or(1, usize::from).to_string();
    for (model, caches) in
        [("exclusive", "0"), ("shared:2", "2"), ("shared:8", "8"), ("percpu", cpus.as_str())]
    {
        under(model, "caches_short_threads.c", &["100000", caches]).is_fine(model);
    }
}

#[test]
fn storms_of_forks_end() {
    if is_again() {
        return;
    }
    fine_under_all("caches_fork.c", &[&seconds()]);
    fine_where_runs_are_shared("caches_fork.c", &[&seconds(), "runs"]);
}

/// A handler may interrupt malloc if threads share caches. If they do not, it must not, as with any
/// malloc; `signals.c` tests that case.
#[test]
fn signal_handlers_may_interrupt_malloc() {
    if is_again() {
        return;
    }
    for what in ["fast", "all"] {
        fine_where_shared("caches_signals.c", &[what, &seconds()]);
    }
    fine_where_runs_are_shared("caches_signals.c", &["all", &seconds(), "4", "runs"]);
}

#[test]
fn forks_and_signal_handlers_do_not_wait_for_each_other() {
    if is_again() {
        return;
    }
    fine_where_shared("caches_fork_signals.c", &[&seconds()]);
    fine_where_runs_are_shared("caches_fork_signals.c", &[&seconds(), "runs"]);
}

#[test]
fn threads_may_go_from_cpu_to_cpu() {
    if is_again() {
        return;
    }
    fine_under_all("caches_wander.c", &[&seconds()]);
    fine_where_runs_are_shared("caches_wander.c", &[&seconds(), "runs"]);
}

#[test]
fn what_flows_from_thread_to_thread_is_not_kept() {
    if is_again() {
        return;
    }
    for flow in [["1", "1"], ["1", "4"], ["4", "1"]] {
        fine_under_all("caches_flow.c", &flow);
    }
}

#[test]
fn threads_that_hand_blocks_over_give_their_caches_up() {
    if is_again() {
        return;
    }
    for threads in ["2", "4", "16"] {
        fine_under_all("caches_hand_over.c", &[threads]);
    }
    under("auto", "caches_hand_over.c", &["3", "shares"]).is_fine("auto");
}

#[test]
fn a_program_that_becomes_quiet_gives_back() {
    if is_again() {
        return;
    }
    fine_under_all("caches_quiet.c", &[]);
}

#[test]
fn a_thread_that_became_quiet_gives_back() {
    if is_again() {
        return;
    }
    // With `auto`, this many threads and the main thread have caches of their own.
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    fine_under_all("caches_quiet.c", &[&(2 * cpus).to_string()]);
}

#[test]
fn a_sandbox_may_refuse_the_fence() {
    if is_again() {
        return;
    }
    under("percpu", "caches_sandbox.c", &["300"]).is_fine("percpu");
}

#[test]
fn destructors_of_threads_allocate_and_free() {
    if is_again() {
        return;
    }
    fine_under_all("thread_keys.c", &[]);
    fine_under_all("cxx_thread_local.cc", &[]);
}

#[test]
fn every_way_to_the_library_knows_the_models() {
    if is_again() {
        return;
    }
    for how in ON_HEAPWRIGHT {
        for model in ["shared:2", "percpu"] {
            for name in ["thread_storm.c", "fork_memory.c", "thread_handover.c"] {
                let program = compile(name, how, &[]);
                let mut command = command(&program, how);
                run(command.env("HEAPWRIGHT", format!("cache={model}")))
                    .is_fine((name, how, model));
            }
        }
    }
}

#[test]
fn models_that_do_not_exist_are_one_line_and_the_default_is_used() {
    if is_again() {
        return;
    }
    for model in
        ["", "shared:0", "shared:1025", "shared:", "shared:-1", "shared:two", "percpu:2", "Shared"]
    {
        for how in [How::Preload, How::Static] {
            let program = compile("caches_raise.c", how, &[]);
            let mut command = command(&program, how);
            // The default shares no caches: an argument tells the program so.
            let outcome = run(command.arg("0").env("HEAPWRIGHT", format!("cache={model}")));
            assert!(outcome.status.success(), "{model}: {outcome:?}");
            outcome.said_one_line(model, &["cache=", "exclusive", "shared:K", "percpu"]);
        }
    }
}

#[test]
fn the_programs_are_right_on_the_c_library() {
    if is_again() {
        return;
    }
    for (name, arguments) in [
        ("caches_short_threads.c", &["2000", "0"][..]),
        ("caches_fork.c", &["1"]),
        ("caches_wander.c", &["1"]),
    ] {
        let program = compile(name, How::Plain, &[]);
        run(command(&program, How::Plain).args(arguments)).is_fine(name);
    }
}
