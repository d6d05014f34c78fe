//! `heapwright-launcher`: runs one program and reports its costs.
//!
//! ```text
//! heapwright-launcher REPORT LIMIT PARENT PROGRAM [ARGUMENTS...]
//!
//! REPORT   the number of an open descriptor that the report is written to
//! LIMIT    milliseconds after which the program is killed; 0 for no limit
//! PARENT   the process that must stay alive for the program to go on
//! PROGRAM  a path; it becomes the program's argv[0] too
//!
//! the report, one line of decimal numbers:
//! wall_ns user_us system_us peak_rss_kib minor_faults major_faults code signal ended
//! ```
//!
//! `ended` is 0 if the program ended by itself, 1 if the limit ended it, 2 if the launcher got a
//! signal to stop. If the program cannot be started, a line `not-started ERRNO` comes first.
//!
//! **Purpose.** On Linux a process's peak resident size survives `exec`: a program that a big
//! parent starts is charged with the parent's memory. So the launcher is static, without a C
//! library and a heap, and ignores the `LD_PRELOAD` in its environment, which it passes on.
//!
//! **No process stays behind.** The program leads its own process group. The launcher kills the
//! group when the limit is over, when the program has ended, and after SIGINT, SIGTERM, SIGHUP or
//! SIGQUIT. The kernel sends SIGTERM when PARENT dies. If the launcher is killed, the kernel kills
//! the program.
//!
//! **Waiting.** These signals and SIGCHLD are blocked, and `rt_sigtimedwait` takes them one by one.
//! `wait4` counts the program and the descendants that it waited for. Times and faults are sums,
//! and the peak is that of the largest single process.

#![no_std]
#![no_main]

mod arguments;
mod memory;
mod report;
mod system;

use arguments::Arguments;
use report::Report;
use system::{CLOCK_NS, Signals, Usage};

/// Exit codes of the launcher itself; the report has the program's own.
const DONE: i32 = 0;
const BAD_ARGUMENTS: i32 = 2;
const NO_PROCESS: i32 = 125;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    ByItself = 0,
    ByLimit = 1,
    OnRequest = 2,
}

/// Continues `_start`.
///
/// # Safety
///
/// `_start` calls it once, with the initial stack.
unsafe extern "C" fn launch(stack: *const usize) -> ! {
    // SAFETY: the caller passes the kernel's initial stack on.
    let arguments = unsafe { Arguments::new(stack) };
    system::exit(arguments.map_or(BAD_ARGUMENTS, |arguments| run(&arguments)))
}

fn run(arguments: &Arguments) -> i32 {
    let report = arguments.report;
    system::close_on_exec(report);
    // An ignored SIGCHLD would discard the program's status.
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
    // Both processes do this, so the order does not matter.
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

/// Runs in the child: becomes the program, or reports the reason if it cannot.
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

fn wait(child: i32, limit_ms: u64, start: u64) -> Ended {
    const NS_PER_MS: u64 = 1_000_000;
    let deadline = match limit_ms {
        0 => None,
        limit => Some(start.saturating_add(limit.saturating_mul(NS_PER_MS))),
    };
    let mut ended = Ended::ByItself;
    while !system::has_ended(child) {
        let left = match deadline {
            // The program was killed already, and will die.
            _ if ended != Ended::ByItself => CLOCK_NS,
            Some(deadline) => deadline.saturating_sub(system::now()),
            None => CLOCK_NS,
        };
        let signal = Signals::watched().take(left);
        if system::is_stop(signal) {
            ended = Ended::OnRequest;
            system::kill_group(child);
        } else if ended == Ended::ByItself && deadline.is_some_and(|at| system::now() >= at) {
            // The program may have ended at the last moment.
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
