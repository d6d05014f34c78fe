//! The doctor's answer about a whole machine, in words.
//!
//! ```text
//! heapwright would take effect on 1,150 of the 1,203 programs on PATH
//!
//!   - 12 gain privileges ... (mount, passwd, su, ...)
//!   - /etc/ld.so.preload is not there
//! ```

use crate::inspect::system::System;
use crate::output::document::{Part, on_screen};
use crate::output::{Look, printable_text, units};

/// The whole answer.
pub(crate) fn answer(system: &System, look: Look) -> String {
    let programs = units::counted(system.programs as u64, "program");
    let heading = format!(
        "heapwright would take effect on {} of the {programs} on PATH",
        units::count(system.reached as u64)
    );
    let kinds = system.kinds.iter().map(|kind| {
        let more = if kind.count > kind.examples.len() { ", ..." } else { "" };
        let examples = printable_text(&kind.examples.join(", "));
        let programs = units::counted(kind.count as u64, "program");
        format!("- {programs} ({examples}{more}): {}", kind.text)
    });
    let preload = system.preload.iter().map(|of| format!("- {}", printable_text(&of.text)));
    let parts = [Part::heading(heading), Part::text_of("", ""), Part::listed(kinds.chain(preload))];
    on_screen(&parts, look)
}
