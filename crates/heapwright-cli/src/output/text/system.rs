//! The doctor's answer about a whole machine, in words.
//!
//! ```text
//! heapwright would take effect on 1,150 of the 1,203 programs on PATH
//!
//!   - 12 gain privileges ... (mount, passwd, su, ...)
//!   - /etc/ld.so.preload is not there
//! ```

use crate::inspect::system::System;
use crate::output::{Look, printable_text, units};
use std::fmt::Write;

/// The whole answer.
pub(crate) fn answer(system: &System, look: Look) -> String {
    let programs = units::counted(system.programs as u64, "program");
    let heading = format!(
        "heapwright would take effect on {} of the {programs} on PATH",
        units::count(system.reached as u64)
    );
    let mut out = format!("{}\n\n", look.strong(&heading));
    for kind in &system.kinds {
        let more = if kind.count > kind.examples.len() { ", ..." } else { "" };
        let examples = printable_text(&kind.examples.join(", "));
        let _ = writeln!(
            out,
            "  - {} ({examples}{more}): {}",
            units::counted(kind.count as u64, "program"),
            kind.text
        );
    }
    for finding in &system.preload {
        let _ = writeln!(out, "  - {}", printable_text(&finding.text));
    }
    out
}
