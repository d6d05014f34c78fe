//! `heapwright trim PID` has a process give free memory back to the kernel, like `hw_purge`.
//!
//! ```text
//! resident size -> order (`live::Orders`) -> answer -> resident size, until it falls no more
//! ```

use crate::live::{Orders, Process, Refusal, Statuses};
use crate::output::{self, printable_text};
use crate::process::{Exit, interrupt};
use crate::wrong::wrong;
use anyhow::{anyhow, bail};
use std::thread;
use std::time::{Duration, Instant};

/// Have a running process on heapwright give its free memory back to the kernel.
///
/// The process follows the order at its next slow allocation or free, as if it called hw_purge().
/// Blocks in the lists of its threads stay. Exits with 0, or with 1 if the process does not follow
/// the order. Exits with 2 for a wrong command line, or a process that is not on heapwright.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "Example: heapwright trim 4242")]
pub(crate) struct Args {
    /// The process
    #[arg(value_name = "PID")]
    pid: u32,
}

/// The wait for a process that allocates nothing.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time for which one order is valid. It is short, so that Ctrl-C soon ends the command.
const STEP: Duration = Duration::from_millis(500);
/// The time between two reads of the resident size.
const LOOK: Duration = Duration::from_millis(50);

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let pid = args.pid;
    let hardened = || anyhow!("process {pid} is hardened, and follows no orders");
    let ended = || anyhow!("process {pid} has ended");
    let slot = Statuses::open().slot_of(pid)?;
    if slot.is_hardened() {
        return Err(hardened());
    }
    let Some(orders) = Orders::to(slot) else {
        return Err(wrong(format!("another command gives orders to process {pid}; wait for it")));
    };
    let look = || Process::of(pid).ok_or_else(ended);
    let before = look()?;
    interrupt::notice();
    let began = Instant::now();
    loop {
        match orders.trim(STEP) {
            Ok(()) => break,
            Err(Refusal::Quiet) if interrupt::came().is_none() && began.elapsed() < PATIENCE => {}
            Err(Refusal::Quiet) => bail!(
                "process {pid} has not followed the order: it allocated and freed too little for \
                 {:.0} s. It keeps its free memory until it is busy again; heapwright explain \
                 {pid} says how much that is",
                began.elapsed().as_secs_f64()
            ),
            Err(Refusal::Gone) => return Err(ended()),
            Err(Refusal::Hardened) => return Err(hardened()),
            Err(_) => bail!(
                "process {pid} cannot follow the order: its library is of another version than \
                 this command"
            ),
        }
    }
    // The process answers just before it gives the memory back.
    let mut after = before.resident;
    loop {
        thread::sleep(LOOK);
        let now = look()?.resident;
        if now >= after && began.elapsed() > 4 * LOOK {
            break;
        }
        after = after.min(now);
    }
    let (name, size) = (printable_text(before.name()), output::size);
    let text = format!(
        "process {pid} ({name}): {} went back to the kernel; resident {} before, {} now\n",
        size(before.resident - after),
        size(before.resident),
        size(after)
    );
    output::to_stdout(|out| out.write_all(text.as_bytes()))?;
    Ok(Exit::Code(0))
}
