//! Text for people: one module for each kind of report.

pub(crate) mod bench;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod explain_record;
mod profile;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod top;
