//! Live bytes over time: an area, its axes, and the checks. The chart of a heap profile also has
//! the process's resident memory, and the moments of its figures. The chart of a growth is a small
//! line.
//!
//! The drawing is stretched to the page's width; its words are HTML, placed in percent. Many
//! samples are reduced to the lowest and the highest of each stretch.

use super::stack::clipped;
use super::{sentences, units};
use crate::report::model::{Check, Process, Profile, ProfilePoint, Sample};
use askama::Template;
use std::fmt::Write;

const POINTS: usize = 480;

#[derive(Template)]
#[template(path = "chart.html")]
pub(super) struct Chart {
    name: String,
    pid: u32,
    peak: String,
    area: String,
    line: String,
    /// The resident memory, as a line; empty if unknown.
    resident: String,
    x_marks: Vec<Mark>,
    y_marks: Vec<Mark>,
    checks: Vec<CheckMark>,
    /// `ns,bytes,blocks` of each point, or in a heap profile `ns,bytes,resident bytes`, for figures
    /// under the pointer.
    points: String,
    is_profile: bool,
    ns: u64,
    top: u64,
}

struct Mark {
    place: String,
    text: String,
}

struct CheckMark {
    place: String,
    sign: String,
    title: String,
}

pub(super) struct Sparkline {
    pub(super) area: String,
    pub(super) line: String,
}

impl Chart {
    /// Makes the chart of a process; `None` with fewer than two samples.
    pub(super) fn of(process: &Process) -> Option<Self> {
        let end = process.lasted().max(1);
        let checks = process.checks.iter().map(|check| CheckMark {
            place: units::css(check.ns, end),
            sign: check.number.to_string(),
            title: format!(
                "check {} {}, at {}: {} live",
                check.number,
                sentences::occasion(check.occasion),
                sentences::duration(check.ns),
                sentences::amount(check.live)
            ),
        });
        let checks = checks.take(50).collect();
        Some(Self { checks, ..Self::drawn(process, &thinned(&process.samples), &[], end)? })
    }

    /// Makes the chart of a heap profile; `None` for one with fewer than two points.
    pub(super) fn of_profile(process: &Process, check: &Check, profile: &Profile) -> Option<Self> {
        let mut points = profile.points.clone();
        // The peak lies between two points.
        points.push(ProfilePoint { ns: profile.peak_ns, live: profile.peak_bytes, resident: None });
        points.sort_by_key(|point| point.ns);
        let sample = |ns, bytes| Sample { ns, blocks: 0, bytes };
        let live: Vec<_> = points.iter().map(|point| sample(point.ns, point.live)).collect();
        let resident = points.iter().filter_map(|point| Some(sample(point.ns, point.resident?)));
        let resident: Vec<_> = resident.collect();
        let end = check.ns.max(1);
        let mark = |ns: u64, sign: &str, title| CheckMark {
            place: units::css(ns, end),
            sign: sign.to_owned(),
            title,
        };
        let peak = units::bytes(profile.peak_bytes);
        let mut checks = vec![mark(
            profile.peak_ns,
            "P",
            format!("the peak, at {}: {peak} live", sentences::duration(profile.peak_ns)),
        )];
        checks.extend(profile.earlier_ns().map(|ns| {
            let at = sentences::duration(ns);
            mark(ns, "G", format!("growth is counted from here, {at}, to the end"))
        }));
        // A single point and the peak do not make a chart.
        Some(Self { checks, is_profile: true, ..Self::drawn(process, &live, &resident, end)? })
            .filter(|_| profile.points.len() > 1)
    }

    /// Removes the name, for a page that already has it as its title.
    pub(super) fn forget_name(&mut self) {
        self.name.clear();
    }

    /// Makes a chart without marks; `None` with fewer than two samples.
    fn drawn(process: &Process, live: &[Sample], resident: &[Sample], end: u64) -> Option<Self> {
        if live.len() < 2 {
            return None;
        }
        let highest = |samples: &[Sample]| samples.iter().map(|sample| sample.bytes).max();
        let most_live = highest(live)?;
        let highest = most_live.max(highest(resident).unwrap_or(0)).max(1);
        let step = byte_step(highest);
        let top = highest.div_ceil(step).saturating_mul(step);
        let line = drawn(live, 0, end, top);
        let mut points = String::new();
        let mut resident_before = resident.iter().peekable();
        let mut third = 0;
        for sample in live {
            while let Some(known) = resident_before.next_if(|known| known.ns <= sample.ns) {
                third = known.bytes;
            }
            let third = if resident.is_empty() { sample.blocks } else { third };
            let _ = write!(points, "{},{},{third} ", sample.ns, sample.bytes);
        }
        let time_step = time_step(end);
        let x_marks = (0..=end / time_step)
            .map(|mark| mark * time_step)
            .map(|ns| Mark { place: units::css(ns, end), text: time_mark(ns) });
        let y_marks = (0..=top / step)
            .map(|mark| mark * step)
            .map(|bytes| Mark { place: units::css(bytes, top), text: units::round_bytes(bytes) });
        Some(Self {
            name: clipped(sentences::command(process)),
            pid: process.pid,
            peak: units::bytes(most_live),
            area: line.area,
            line: line.line,
            resident: drawn(resident, 0, end, top).line,
            x_marks: x_marks.collect(),
            y_marks: y_marks.collect(),
            checks: Vec::new(),
            points: points.trim_end().to_owned(),
            is_profile: false,
            ns: end,
            top,
        })
    }
}

impl Sparkline {
    /// Returns the line as a small picture with this description.
    pub(super) fn picture(&self, what: &str) -> String {
        format!(
            "<svg class=\"spark\" viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\" \
             role=\"img\" aria-label=\"{what}\"><path class=\"area\" d=\"{}\"/>\
             <path class=\"line\" d=\"{}\"/></svg>",
            self.area, self.line
        )
    }

    pub(super) fn of(points: &[Sample]) -> Self {
        let points = thinned(points);
        let (start, end) = match (points.first(), points.last()) {
            (Some(first), Some(last)) => (first.ns, last.ns.max(first.ns.saturating_add(1))),
            _ => (0, 1),
        };
        let top = points.iter().map(|point| point.bytes).max().unwrap_or(0).max(1);
        drawn(&points, start, end, top)
    }
}

/// Returns the paths in a box of 1000 by 100, with the origin at the bottom.
fn drawn(samples: &[Sample], start: u64, end: u64, top: u64) -> Sparkline {
    let x = |ns: u64| units::share(ns.saturating_sub(start), end - start) * 1000.0;
    let mut line = String::new();
    for sample in samples {
        let letter = if line.is_empty() { 'M' } else { 'L' };
        let y = 100.0 - units::share(sample.bytes, top) * 100.0;
        let _ = write!(line, "{letter}{:.1} {y:.2}", x(sample.ns));
    }
    let (first, last) = (samples.first().map_or(0, |s| s.ns), samples.last().map_or(0, |s| s.ns));
    let area = match line.strip_prefix('M') {
        Some(rest) => format!("M{:.1} 100L{rest}L{:.1} 100Z", x(first), x(last)),
        None => String::new(),
    };
    Sparkline { area, line }
}

/// Returns at most [`POINTS`] samples: the lowest and the highest of each stretch of samples.
fn thinned(samples: &[Sample]) -> Vec<Sample> {
    if samples.len() <= POINTS {
        return samples.to_vec();
    }
    let stretch = samples.len().div_ceil(POINTS / 2);
    let mut out = Vec::new();
    for stretch in samples.chunks(stretch) {
        let low = stretch.iter().enumerate().min_by_key(|(_, sample)| sample.bytes);
        let high = stretch.iter().enumerate().max_by_key(|(_, sample)| sample.bytes);
        let (Some(low), Some(high)) = (low, high) else { continue };
        let (first, last) = if low.0 <= high.0 { (low, high) } else { (high, low) };
        out.push(*first.1);
        if first.0 != last.0 {
            out.push(*last.1);
        }
    }
    out
}

/// Returns a step for two to six marks, such as 1/4, 1/2, 1, 2, 5 or 10 of a power of 1024.
fn byte_step(highest: u64) -> u64 {
    let mut unit = 1;
    while highest / 1024 >= unit {
        unit *= 1024;
    }
    let steps = [1, 2, 5, 10, 20, 50, 100, 200, 500];
    // Bytes have no steps of a quarter or a half.
    let parts = [unit / 4, unit / 2].into_iter().filter(|_| unit > 1);
    let mut all = parts.chain(steps.map(|step: u64| step.saturating_mul(unit)));
    all.find(|step| highest.div_ceil(*step) <= 5).unwrap_or(highest)
}

/// Returns a step for at most nine marks.
fn time_step(end: u64) -> u64 {
    const SECOND: u64 = 1_000_000_000;
    let small = (0..9).flat_map(|power| [1, 2, 5].map(|step| step * 10_u64.pow(power)));
    let large = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 86_400];
    let mut all = small.chain(large.map(|step| step * SECOND));
    all.find(|step| end / step <= 8).unwrap_or(end / 6).max(1)
}

/// Formats a time on the axis: `250 ms`, `30 s`, `5 min`, `2 h`.
fn time_mark(ns: u64) -> String {
    let seconds = ns as f64 / 1e9;
    match ns {
        0 => "0".to_owned(),
        ns if ns < 1_000_000 => format!("{} µs", ns as f64 / 1e3),
        ns if ns < 1_000_000_000 => format!("{} ms", ns as f64 / 1e6),
        _ if seconds < 120.0 => format!("{seconds} s"),
        _ if seconds < 7200.0 => format!("{} min", seconds / 60.0),
        _ => format!("{} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round() {
        let marks = |highest: u64| {
            let step = byte_step(highest);
            let top = highest.div_ceil(step) * step;
            (0..=top / step).map(|mark| units::round_bytes(mark * step)).collect::<Vec<_>>()
        };
        assert_eq!(marks(9 << 20), ["0 B", "2 MiB", "4 MiB", "6 MiB", "8 MiB", "10 MiB"]);
        assert_eq!(marks(3), ["0 B", "1 B", "2 B", "3 B"]);
        assert_eq!(marks(1024), ["0 B", "256 B", "512 B", "768 B", "1 KiB"]);
        for highest in [1, 1023, 1025, 5000, 700 << 10, 3 << 40, u64::MAX / 4] {
            assert!((2..=6).contains(&marks(highest).len()), "{highest}: {:?}", marks(highest));
        }
        for (end, step, text) in [
            (60_000_000_000, 10_000_000_000, "10 s"),
            (1_500_000, 200_000, "200 µs"),
            (7_200_000_000_000, 900_000_000_000, "15 min"),
        ] {
            assert_eq!((time_step(end), &*time_mark(time_step(end))), (step, text));
        }
    }

    #[test]
    fn thinning_keeps_the_peaks() {
        let sample = |ns| Sample { ns, blocks: 1, bytes: if ns == 4321 { 999 } else { ns % 7 } };
        let samples: Vec<_> = (0..10_000).map(sample).collect();
        let thin = thinned(&samples);
        assert!(thin.len() <= POINTS && thin.iter().any(|sample| sample.bytes == 999));
        assert!(thin.is_sorted_by_key(|sample| sample.ns));
    }

    #[test]
    fn a_line_goes_from_edge_to_edge() {
        let sample = |ns, bytes| Sample { ns, blocks: 1, bytes };
        let line = Sparkline::of(&[sample(5, 0), sample(10, 4), sample(15, 2)]);
        assert_eq!(line.line, "M0.0 100.00L500.0 0.00L1000.0 50.00");
        assert_eq!(line.area, "M0.0 100L0.0 100.00L500.0 0.00L1000.0 50.00L1000.0 100Z");
        assert_eq!(Sparkline::of(&[]).line, "");
    }
}
