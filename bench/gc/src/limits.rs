//! The smallest heap in which a load runs: the limit is halved and doubled until it is known
//! to a step of some percent.
//!
//! *Runs* means: ends well, two times of two, within eight times what it takes without a limit.
//! Just above the least heap at all a collector does nothing else, and with two threads it may be
//! luck whether there is memory. Of the short runs of --quick, where luck is more, five of five.

use crate::options::Options;
use crate::run::{self, Ended, Variant};
use figures::report::Report;

/// From a limit that is refused to one that is not.
const STEP: f64 = 1.03;
const QUICK_STEP: f64 = 1.5;
/// KiB; no load here runs in less.
const LEAST: f64 = 256.0;
const PATIENCE: f64 = 8.0;
const TIMES: usize = 2;
const QUICK_TIMES: usize = 5;

/// In KiB; nothing if it does not run at all, which the report knows.
pub(crate) fn smallest(
    options: &Options,
    report: &mut Report,
    variant: &Variant,
) -> Result<Option<u64>, String> {
    let free = match run::once(options, variant, options.seconds)? {
        Ended::Well(run) => run,
        Ended::OutOfMemory => {
            report.failed(format!("{}: out of memory without a limit", variant.name));
            return Ok(None);
        }
        Ended::Badly(why) => {
            report.failed(format!("{} without a limit: {why}", variant.name));
            return Ok(None);
        }
    };
    let seconds = (free.number("wall_ns").unwrap_or_default() / 1e9 * PATIENCE).ceil() as u64 + 1;
    let runs = |limit: f64| {
        let limited = variant.clone().with([format!("limit={}", limit as u64)]);
        for _ in 0..if options.quick { QUICK_TIMES } else { TIMES } {
            if !matches!(run::once(options, &limited, seconds)?, Ended::Well(_)) {
                return Ok(false);
            }
        }
        Ok(true)
    };
    // Without a limit it had no more than its peak; the limit is of the heap alone.
    let highest = free.number("peak").unwrap_or_default() / 1024.0;
    search(highest, if options.quick { QUICK_STEP } else { STEP }, runs)
        .map(|found| found.map(|limit| limit as u64))
}

fn search(
    highest: f64,
    step: f64,
    mut runs: impl FnMut(f64) -> Result<bool, String>,
) -> Result<Option<f64>, String> {
    let (mut refused, mut enough) = (LEAST, highest.max(2.0 * LEAST));
    // The peak may not do as a limit: what is in one piece may find no place.
    for _ in 0..4 {
        if runs(enough)? {
            break;
        }
        refused = enough;
        enough *= 2.0;
    }
    if refused == enough / 2.0 && !runs(enough)? {
        return Ok(None);
    }
    while enough / refused > step {
        let middle = (enough * refused).sqrt();
        if runs(middle)? {
            enough = middle;
        } else {
            refused = middle;
        }
    }
    Ok(Some(enough))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_is_found_from_above_and_from_below() {
        for highest in [700.0, 5000.0, 1e6] {
            let found = search(highest, 1.03, |limit| Ok(limit >= 3000.0)).unwrap().unwrap();
            assert!((3000.0..3090.0).contains(&found), "{found}");
        }
    }

    #[test]
    fn there_may_be_none() {
        assert_eq!(search(1000.0, 1.03, |_| Ok(false)), Ok(None));
    }
}
