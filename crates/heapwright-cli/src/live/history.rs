//! A series of looks at processes: rates between two looks, and the course over all.

use super::Seen;
use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

const KEPT: usize = 600;

/// Rates of a process, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rates {
    pub(crate) faults: f64,
    /// Bytes returned to the kernel.
    pub(crate) given_back: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) live: u64,
    pub(crate) resident: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Watched {
    pub(crate) seen: Seen,
    /// The rates since the previous look; `None` at the first look.
    pub(crate) rates: Option<Rates>,
    pub(crate) points: VecDeque<Point>,
    at: Instant,
}

#[derive(Default)]
pub(crate) struct History {
    processes: BTreeMap<u32, Watched>,
}

impl History {
    /// Adds a look at all processes. Forgets those that have ended.
    pub(crate) fn add(&mut self, seen: Vec<Seen>, at: Instant) {
        let mut before = std::mem::take(&mut self.processes);
        for seen in seen {
            let known = before.remove(&seen.process.pid);
            // The process may have executed another program.
            let known = known.filter(|known| known.seen.process.command == seen.process.command);
            let rates = known.as_ref().and_then(|known| rates(known, &seen, at));
            let mut points = known.map(|known| known.points).unwrap_or_default();
            if points.len() == KEPT {
                points.pop_front();
            }
            points.push_back(Point {
                live: seen.report.as_ref().map_or(0, |report| report.parts.live),
                resident: seen.process.resident,
            });
            self.processes.insert(seen.process.pid, Watched { seen, rates, points, at });
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Watched> {
        self.processes.values()
    }

    pub(crate) fn get(&self, pid: u32) -> Option<&Watched> {
        self.processes.get(&pid)
    }
}

fn rates(before: &Watched, now: &Seen, at: Instant) -> Option<Rates> {
    let seconds = at.checked_duration_since(before.at)?.as_secs_f64();
    let rate = |before: u64, now: u64| now.saturating_sub(before) as f64 / seconds;
    let given = |seen: &Seen| seen.report.as_ref().map_or(0, |report| report.stats.purged_bytes);
    (seconds > 0.0).then(|| Rates {
        faults: rate(before.seen.process.faults, now.process.faults),
        given_back: rate(given(&before.seen), given(now)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::Process;
    use std::time::Duration;

    fn seen(pid: u32, faults: u64) -> Seen {
        let command = vec!["x".to_owned()];
        Seen { process: Process { pid, faults, command, ..Process::default() }, report: None }
    }

    #[test]
    fn rates_are_of_one_process() {
        let mut history = History::default();
        let began = Instant::now();
        history.add(vec![seen(1, 100), seen(2, 5)], began);
        assert_eq!(history.get(1).map(|watched| watched.rates), Some(None));
        let mut other = seen(2, 1000);
        other.process.command = vec!["y".to_owned()];
        history.add(vec![seen(1, 150), other], began + Duration::from_secs(2));
        let rates = |pid| history.get(pid).and_then(|watched| watched.rates);
        assert_eq!(rates(1).map(|rates| rates.faults), Some(25.0));
        assert_eq!(rates(2), None, "another program");
        assert_eq!(history.get(1).map(|watched| watched.points.len()), Some(2));
        history.add(vec![], began + Duration::from_secs(3));
        assert_eq!(history.all().count(), 0);
    }
}
