//! Leaves out the blocks that the runtime libraries keep until a process ends.
//!
//! Valgrind has the C library (`__libc_freeres`) and libstdc++ free their own memory at exit. This
//! command frees nothing. A block counts as freed if a library function allocated it, and the
//! library's globals still reach it. Streams that the program opened, and copies that it keeps
//! (`strdup`), are reported.

use crate::report::model::{Leak, Report};
use heapwright_record::debug::{Reach, Root};

const C_LIBRARY: [&str; 4] = ["libc.so", "libc-", "ld-linux", "ld-musl"];
const CXX_LIBRARY: [&str; 2] = ["libstdc++.so", "libc++"];

/// The functions that open a stream, which the program must close.
const STREAMS: [&str; 6] = ["fopen", "fdopen", "popen", "open_memstream", "fmemopen", "tmpfile"];

/// Removes the libraries' blocks from a report's leaks and sums.
pub(super) fn leave_out(report: &mut Report, c_library: bool, cxx_library: bool) {
    let files: Vec<&str> = [(c_library, &C_LIBRARY[..]), (cxx_library, &CXX_LIBRARY[..])]
        .into_iter()
        .filter(|(wanted, _)| *wanted)
        .flat_map(|(_, files)| files.iter().copied())
        .collect();
    let leaks = std::mem::take(&mut report.leaks);
    for leak in leaks {
        if !is_kept_by(report, &leak, &files) {
            report.leaks.push(leak);
            continue;
        }
        let Some(process) = report.processes.get_mut(leak.process) else { continue };
        if let Some(check) = process.checks.get_mut(leak.check) {
            check.live.blocks = check.live.blocks.saturating_sub(leak.lost.blocks);
            check.live.bytes = check.live.bytes.saturating_sub(leak.lost.bytes);
        }
        if let Some(end) = &mut process.end {
            end.frees = end.frees.saturating_add(leak.lost.blocks);
        }
    }
}

/// Returns whether code in these files allocated the block, and their globals reach the block.
fn is_kept_by(report: &Report, leak: &Leak, files: &[&str]) -> bool {
    let is_one = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        files.iter().any(|file| name.starts_with(file))
    };
    let Some(path) = leak.path.as_ref().filter(|_| leak.reach == Reach::Reachable) else {
        return false;
    };
    let is_rooted = path.root == Root::Globals && path.module.as_deref().is_some_and(is_one);
    let mut frames = report.stacks.frames(leak.stack);
    let is_made = frames.next().is_some_and(|frame| {
        let file = frame.place.as_ref().map(|place| String::from_utf8_lossy(&place.path));
        file.is_some_and(|file| is_one(&file))
            && !frame
                .functions
                .iter()
                .filter_map(|function| function.name.as_deref())
                .any(|name| STREAMS.iter().any(|stream| name.contains(stream)))
    });
    is_rooted && is_made
}
