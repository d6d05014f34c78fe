//! Time against memory: a dot for each allocator, on logarithmic axes. The ratio 2 is as far from 1
//! as the ratio 1/2. Only heapwright has a colour.

use super::document::Part;
use super::race;
use crate::bench::allocators::OPTION_SET;
use crate::bench::comparison::Group;
use crate::bench::results::{Measure, Results};
use crate::bench::statistics::Estimate;
use askama::Template;

const MARKS: [f64; 15] =
    [1.0, 0.5, 2.0, 0.25, 4.0, 0.1, 10.0, 0.75, 1.5, 0.9, 1.1, 0.6, 1.25, 0.8, 1.75];

/// The bounds of an axis; values outside are drawn at its ends.
const LEAST: f64 = 0.2;
const MOST: f64 = 5.0;

/// An axis from `low` to `high`, with its start and length in the drawing.
#[derive(Clone, Copy, Debug)]
struct Scale {
    low: f64,
    high: f64,
    start: f64,
    length: f64,
}

struct Mark {
    place: String,
    text: String,
}

impl Scale {
    /// Makes an axis that shows 1, with some room around it, and these values.
    fn around(values: impl Iterator<Item = f64>, start: f64, length: f64) -> Self {
        const ROOM: f64 = 1.06;
        let (mut low, mut high) = (1.0 / 1.15, 1.15);
        for value in values.filter(|value| value.is_finite() && *value > 0.0) {
            low = f64::min(low, value / ROOM);
            high = f64::max(high, value * ROOM);
        }
        Self { low: low.max(LEAST), high: high.min(MOST), start, length }
    }

    /// Turns the axis round for a vertical drawing: small values at the far end.
    fn upwards(self) -> Self {
        Self { start: self.start + self.length, length: -self.length, ..self }
    }

    fn number(&self, value: f64) -> f64 {
        let share = (value / self.low).ln() / (self.high / self.low).ln();
        self.start + share.clamp(0.0, 1.0) * self.length
    }

    fn at(&self, value: f64) -> String {
        place(self.number(value))
    }

    fn is_outside(&self, value: f64) -> bool {
        value < self.low || value > self.high
    }

    /// Returns marks that are at least `gap` apart.
    fn marks(&self, gap: f64) -> Vec<Mark> {
        let mut chosen: Vec<f64> = Vec::new();
        for value in MARKS.into_iter().filter(|value| !self.is_outside(*value)) {
            let place = self.number(value);
            if chosen.iter().all(|other| (self.number(*other) - place).abs() >= gap) {
                chosen.push(value);
            }
        }
        chosen
            .into_iter()
            .map(|value| Mark { place: self.at(value), text: format!("{value}") })
            .collect()
    }
}

fn place(coordinate: f64) -> String {
    format!("{coordinate:.1}")
}

#[derive(Template)]
#[template(path = "scatter.html")]
struct Scatter {
    x_marks: Vec<Mark>,
    y_marks: Vec<Mark>,
    dots: Vec<ScatterDot>,
}

#[derive(Default)]
struct ScatterDot {
    class: &'static str,
    name: String,
    title: String,
    x: String,
    y: String,
    /// The ends of the intervals.
    left: String,
    right: String,
    top: String,
    bottom: String,
    label_x: String,
    label_y: String,
    label_anchor: &'static str,
}

const SCATTER: (f64, f64, f64, f64) = (44.0, 12.0, 340.0, 250.0);

/// Draws the means of a race; `None` with a single allocator.
pub(super) fn picture(results: &Results) -> Option<Part> {
    let others: Vec<(usize, Estimate, Estimate)> = (0..results.allocators.len())
        .filter_map(|at| {
            if at == results.baseline() {
                let one = Estimate { value: 1.0, interval: None };
                return Some((at, one, one));
            }
            let name = &results.allocators[at].name;
            let mean = |measure| race::mean(results, Group::All, measure, name);
            Some((at, mean(Measure::Time)?.estimate(), mean(Measure::PeakRss)?.estimate()))
        })
        .collect();
    if others.len() < 2 {
        return None;
    }
    let (left, top, width, height) = SCATTER;
    let ends = |estimate: Estimate| estimate.interval.unwrap_or((estimate.value, estimate.value));
    let span = |estimate: Estimate| [ends(estimate).0, ends(estimate).1];
    let x = Scale::around(others.iter().flat_map(|(_, time, _)| span(*time)), left, width);
    let memories = others.iter().flat_map(|(_, _, memory)| span(*memory));
    let y = Scale::around(memories, top, height).upwards();
    let mut dots: Vec<ScatterDot> = others
        .iter()
        .map(|&(at, time, memory)| {
            let right_half = x.number(time.value) > left + 0.7 * width;
            let shift = if right_half { -6.0 } else { 6.0 };
            let name = results.allocators[at].name.clone();
            ScatterDot {
                class: race::class(results, at),
                title: format!(
                    "{name}: time {}, memory {}",
                    race::estimate(&time),
                    race::estimate(&memory)
                ),
                name: shortened(&name),
                x: x.at(time.value),
                y: y.at(memory.value),
                left: x.at(ends(time).0),
                right: x.at(ends(time).1),
                top: y.at(ends(memory).1),
                bottom: y.at(ends(memory).0),
                label_x: place(x.number(time.value) + shift),
                label_y: place(y.number(memory.value) - 5.0),
                label_anchor: if right_half { "end" } else { "start" },
            }
        })
        .collect();
    spread_labels(&mut dots);
    dots.sort_by_key(|dot| dot.class == "ours");
    let (x_marks, y_marks) = (x.marks(30.0), y.marks(20.0));
    Some(Part::Drawing(Scatter { x_marks, y_marks, dots }.to_string()))
}

fn spread_labels(dots: &mut [ScatterDot]) {
    const LETTER: f64 = 6.2;
    const LINE: f64 = 12.0;
    let number = |text: &str| text.parse::<f64>().unwrap_or_default();
    dots.sort_by(|a, b| number(&b.label_y).total_cmp(&number(&a.label_y)));
    let mut taken: Vec<(f64, f64, f64)> = Vec::new();
    for dot in dots {
        let width = dot.name.chars().count() as f64 * LETTER;
        let x = number(&dot.label_x);
        let (from, to) = if dot.label_anchor == "end" { (x - width, x) } else { (x, x + width) };
        let mut y = number(&dot.label_y);
        for &(other_from, other_to, other_y) in &taken {
            if from < other_to && other_from < to && y > other_y - LINE {
                y = other_y - LINE;
            }
        }
        taken.push((from, to, y));
        dot.label_y = place(y);
    }
}

/// Shortens a name; the title has it in full. Option sets differ at their ends, and are cut
/// at the front.
fn shortened(name: &str) -> String {
    const LONGEST: usize = 16;
    let options = name.strip_prefix(OPTION_SET);
    let name = options.unwrap_or(name);
    let over = (name.chars().count() + 1).saturating_sub(LONGEST);
    if over <= 1 {
        return name.to_owned();
    }
    if options.is_some() {
        return std::iter::once('\u{2026}').chain(name.chars().skip(over)).collect();
    }
    name.chars().take(LONGEST - 1).chain(std::iter::once('\u{2026}')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_and_double_are_equally_far_from_one() {
        let scale = Scale::around([0.4, 2.5].into_iter(), 100.0, 200.0);
        let (half, one, double) = (scale.number(0.5), scale.number(1.0), scale.number(2.0));
        assert!((one - half - (double - one)).abs() < 1e-9);
        assert!((one - 200.0).abs() < 1e-9, "{one}");
        let upwards = scale.upwards();
        assert!(upwards.number(0.5) > upwards.number(2.0));
    }

    #[test]
    fn what_is_far_away_is_drawn_at_the_end() {
        let scale = Scale::around([40.0, 0.001].into_iter(), 0.0, 100.0);
        assert_eq!((scale.at(40.0), scale.at(0.001)), ("100.0".to_owned(), "0.0".to_owned()));
        assert!(scale.is_outside(40.0) && !scale.is_outside(4.9));
        // Values that are no ratios do not spoil the axis.
        let scale = Scale::around([f64::NAN, f64::INFINITY, 0.0].into_iter(), 0.0, 100.0);
        assert_eq!(scale.at(1.0), "50.0");
    }

    #[test]
    fn marks_keep_their_distance_and_one_is_among_them() {
        for values in [[0.97, 1.02], [0.3, 4.0]] {
            let scale = Scale::around(values.into_iter(), 0.0, 180.0);
            let marks = scale.marks(24.0);
            assert!(marks.iter().any(|mark| mark.text == "1"));
            let mut places: Vec<f64> =
                marks.iter().map(|mark| mark.place.parse().expect("is a number")).collect();
            places.sort_by(f64::total_cmp);
            assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= 23.8), "{places:?}");
        }
    }

    #[test]
    fn long_names_are_cut_beside_plots() {
        assert_eq!(shortened("mimalloc-no-thp"), "mimalloc-no-thp");
        assert_eq!(shortened("hardened_malloc-light"), "hardened_malloc\u{2026}");
        assert_eq!(shortened("heapwright:purge=never"), "purge=never");
        assert_eq!(shortened("heapwright:cache=percpu,purge=0"), "\u{2026}=percpu,purge=0");
    }

    #[test]
    fn labels_do_not_stand_on_each_other() {
        let dot = |name: &str, x: f64, y: f64| ScatterDot {
            class: "peer",
            name: name.to_owned(),
            label_x: place(x),
            label_y: place(y),
            label_anchor: "start",
            ..ScatterDot::default()
        };
        let mut dots =
            [dot("jemalloc", 100.0, 50.0), dot("mimalloc", 110.0, 53.0), dot("far", 300.0, 52.0)];
        spread_labels(&mut dots);
        let of = |name: &str| {
            let found = dots.iter().find(|dot| dot.name == name).expect("is there");
            found.label_y.clone()
        };
        assert_eq!(
            (of("jemalloc"), of("mimalloc"), of("far")),
            ("41.0".to_owned(), "53.0".to_owned(), "52.0".to_owned())
        );
    }
}
