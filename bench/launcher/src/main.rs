//! `heapwright-launcher`: runs one program and writes down what it cost.
//!
//! ```text
//! heapwright-launcher REPORT LIMIT PARENT PROGRAM [ARGUMENTS...]
//!
//! REPORT   the number of an open descriptor that the report is written to
//! LIMIT    milliseconds after which the program is killed; 0 for no limit
//! PARENT   the process that must stay alive for the program to go on
//! PROGRAM  a path; it becomes the program's argv[0] too
//! ```
//!
//! The report is one line of decimal numbers:
//!
//! ```text
//! wall_ns user_us system_us peak_rss_kib minor_faults major_faults code signal ended
//! ```
//!
//! `ended` is 0 if the program ended by itself, 1 if the limit ended it, 2 if
//! the launcher was asked to stop. A program that cannot be started leaves a
//! line `not-started ERRNO` before that.
//!
//! **Why it exists.** On Linux a process's peak resident size survives `exec`:
//! a program that a big parent starts is charged with the parent's memory. This
//! parent has some tens of KiB: it is static, has no C library and no heap. Being
//! static, it is not touched by the `LD_PRELOAD` in the environment, which it
//! hands on as it got it.
//!
//! **Nobody stays behind.** The program leads a process group of its own, and
//! the whole group is killed when the limit is over, when the launcher is asked
//! to stop (SIGINT, SIGTERM, SIGHUP, SIGQUIT; SIGTERM is also what the kernel
//! sends it when PARENT dies), and when the program itself has ended. If the
//! launcher is killed outright, the kernel kills the program with it.
//!
//! **How it waits.** All those signals and SIGCHLD are blocked and taken one by
//! one with `rt_sigtimedwait`, so there are no handlers and no races.
//!
//! `wait4` counts the program and those of its descendants that it waited for:
//! times and faults are sums, the peak is that of the largest single process.

#![no_std]
#![no_main]

mod arguments;
mod memory;
mod report;
mod system;

use arguments::Arguments;
use report::Report;
use system::{CLOCK_NS, Signals, Usage};

/// Exit codes of the launcher itself; the program's own is in the report.
const DONE: i32 = 0;
const BAD_ARGUMENTS: i32 = 2;
const NO_PROCESS: i32 = 125;

/// How the run came to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    ByItself = 0,
    ByLimit = 1,
    OnRequest = 2,
}

/// Where `_start` goes on, with the stack as the kernel laid it out: the number
/// of arguments, their pointers, a null, the environment's pointers, a null.
///
/// # Safety
///
/// Called once, with that stack.
unsafe extern "C" fn launch(stack: *const usize) -> ! {
    // SAFETY: the caller passes the kernel's stack on.
    let arguments = unsafe { Arguments::new(stack) };
    system::exit(arguments.map_or(BAD_ARGUMENTS, |arguments| run(&arguments)))
}

fn run(arguments: &Arguments) -> i32 {
    let report = arguments.report;
    system::close_on_exec(report);
    // Otherwise an ignored SIGCHLD would throw the program's status away.
    system::default_child_signal();
    let before = Signals::watched().block();
    system::die_with_parent(system::SIGTERM);
    if system::parent() != arguments.parent {
        return NO_PROCESS;
    }

    let launcher = system::own_pid();
    let start = system::now();
    let child = match system::fork() {
        0 => become_program(arguments, before, launcher),
        child if child > 0 => child,
        _ => return NO_PROCESS,
    };
    // Both sides do it, so that it is done whoever comes first.
    system::lead_group(child);

    let ended = wait(child, arguments.limit_ms, start);
    let wall = system::now() - start;
    // The program is dead but not yet reaped, so the group's number is its own.
    system::kill_group(child);
    let mut usage = Usage::ZERO;
    let status = system::reap(child, &mut usage);
    let signal = status & 0x7f;
    let code = if signal == 0 { (status >> 8) & 0xff } else { 0 };
    let mut line = Report::new();
    for number in [
        wall,
        usage.user_us(),
        usage.system_us(),
        usage.peak_rss_kib(),
        usage.minor_faults(),
        usage.major_faults(),
        u64::from(code),
        u64::from(signal),
        ended as u64,
    ] {
        line.number(number);
    }
    line.send(report);
    DONE
}

/// The child's side: becomes the program or says why not.
fn become_program(arguments: &Arguments, signals: Signals, launcher: i32) -> ! {
    system::lead_group(0);
    system::die_with_parent(system::SIGKILL);
    // The launcher may have died before the line above.
    if system::parent() != launcher {
        system::exit(NO_PROCESS);
    }
    signals.restore();
    let error = system::exec(arguments.program, arguments.environment);
    let mut line = Report::new();
    line.text(b"not-started");
    line.number(u64::from(error.unsigned_abs()));
    line.send(arguments.report);
    system::exit(127)
}

/// Waits for the program's end, and sees to it that there is one.
fn wait(child: i32, limit_ms: u64, start: u64) -> Ended {
    const NS_PER_MS: u64 = 1_000_000;
    let deadline = match limit_ms {
        0 => None,
        limit => Some(start.saturating_add(limit.saturating_mul(NS_PER_MS))),
    };
    let mut ended = Ended::ByItself;
    while !system::has_ended(child) {
        let left = match deadline {
            // Killed already: death is sure to come.
            _ if ended != Ended::ByItself => CLOCK_NS,
            Some(deadline) => deadline.saturating_sub(system::now()),
            None => CLOCK_NS,
        };
        let signal = Signals::watched().take(left);
        if system::is_stop(signal) {
            ended = Ended::OnRequest;
            system::kill_group(child);
        } else if ended == Ended::ByItself && deadline.is_some_and(|at| system::now() >= at) {
            // It may have ended in the very last moment.
            if system::has_ended(child) {
                break;
            }
            ended = Ended::ByLimit;
            system::kill_group(child);
        }
    }
    ended
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    system::exit(NO_PROCESS)
}
