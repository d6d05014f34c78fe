//! ephemerons and finalizers, against bdwgc: what a table costs that keeps nothing, and an object that wants something done
//! when it has died.
//!
//! Limits and bdwgc's ways to grow are as for [`crate::peers`], figures as in [`crate::holes`].

use crate::holes::limited;
use crate::options::Options;
use crate::report::Report;
use ::figures::verdict::Asked;

const NOTHING_ASKED: [Asked; 2] = [Asked::Nothing, Asked::Nothing];

pub(crate) fn ephemerons(options: &Options, report: &mut Report) -> Result<(), String> {
    let sizes = options.sizes("keys=50000 rounds=500000", "keys=2000 rounds=20000");
    limited(options, report, "ephemerons", &sizes, &[1, 2, 8], NOTHING_ASKED)
}

pub(crate) fn finalizers(options: &Options, report: &mut Report) -> Result<(), String> {
    let sizes = options.sizes("kept=50000 rounds=500000", "kept=2000 rounds=20000");
    limited(options, report, "finalizers", &sizes, &[1, 2, 8], NOTHING_ASKED)
}
