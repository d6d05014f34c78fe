//! The smallest heap in which a load runs. A binary search finds the limit, to some percent.
//!
//! A load *runs* under a limit if two runs of two end well, each within eight times the duration
//! without a limit. Near the smallest limit the collector takes nearly all time. With two threads,
//! chance decides. With --quick, five short runs of five must end well.

use std::path::Path;

use ::figures::plan::Planned;
use ::figures::run::Runner;

/// A limit in KiB in which no load here runs.
const LEAST: f64 = 256.0;
const PATIENCE: f64 = 8.0;

/// Returns the limit in KiB, if any works. The program prints `wall_ns` and its `peak`.
pub(crate) fn smallest(
    launcher: &Path,
    seconds: u64,
    quick: bool,
    command: &[String],
) -> Result<Option<u64>, String> {
    // The ratio of two limits at which the search ends, and the runs for each limit.
    let (step, times) = if quick { (1.5, 5) } else { (1.03, 2) };
    let planned = |more: Option<String>| {
        let words = command.iter().cloned().chain(more).collect();
        Planned::new(("smallest", "-", "-"), words)
    };
    let nowhere = Path::new("/dev/null");
    let free = Runner::new(launcher, seconds, nowhere)?.once(&planned(None))?;
    if let Err(why) = &free.end {
        return Err(format!("{} without a limit: {why}", command.join(" ")));
    }
    let numbers = free.printed().0;
    let of = |name| numbers.iter().find(|one| one.0 == name).map_or(0.0, |one| one.1);
    let runner =
        Runner::new(launcher, (of("wall_ns") / 1e9 * PATIENCE).ceil() as u64 + 1, nowhere)?;
    let found = search(of("peak") / 1024.0, step, |limit| {
        for _ in 0..times {
            if runner.once(&planned(Some(format!("limit={}", limit as u64))))?.end.is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    });
    Ok(found?.map(|limit| limit as u64))
}

fn search(
    highest: f64,
    step: f64,
    mut runs: impl FnMut(f64) -> Result<bool, String>,
) -> Result<Option<f64>, String> {
    let (mut refused, mut enough) = (LEAST, highest.max(2.0 * LEAST));
    // The peak may be too low as a limit: a large object needs contiguous room.
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
