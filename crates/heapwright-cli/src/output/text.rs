//! The text of reports on findings and heap profiles, in the form of sanitizers and valgrind.

mod profile;
pub(super) mod report;
