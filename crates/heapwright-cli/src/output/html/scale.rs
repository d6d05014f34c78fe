//! A logarithmic axis for ratios: 2 is as far from 1 as a half.

/// Marks, the most useful first.
const MARKS: [f64; 15] =
    [1.0, 0.5, 2.0, 0.25, 4.0, 0.1, 10.0, 0.75, 1.5, 0.9, 1.1, 0.6, 1.25, 0.8, 1.75];

/// The bounds of an axis; values outside are drawn at its ends.
const LEAST: f64 = 0.2;
const MOST: f64 = 5.0;

/// An axis from `low` to `high`, with its start and length in the drawing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    start: f64,
    length: f64,
}

/// A mark on an axis.
pub(super) struct Mark {
    pub(super) place: String,
    pub(super) text: String,
}

impl Scale {
    /// Makes an axis that shows 1, with some room around it, and these values.
    pub(super) fn around(values: impl Iterator<Item = f64>, start: f64, length: f64) -> Self {
        const ROOM: f64 = 1.06;
        let (mut low, mut high) = (1.0 / 1.15, 1.15);
        for value in values.filter(|value| value.is_finite() && *value > 0.0) {
            low = f64::min(low, value / ROOM);
            high = f64::max(high, value * ROOM);
        }
        Self { low: low.max(LEAST), high: high.min(MOST), start, length }
    }

    /// Turns the axis round for a vertical drawing: small values at the far end.
    pub(super) fn upwards(self) -> Self {
        Self { start: self.start + self.length, length: -self.length, ..self }
    }

    fn raw(&self, value: f64) -> f64 {
        let share = (value / self.low).ln() / (self.high / self.low).ln();
        self.start + share.clamp(0.0, 1.0) * self.length
    }

    /// Returns the coordinate of a value.
    pub(super) fn at(&self, value: f64) -> String {
        place(self.raw(value))
    }

    /// Returns the coordinate of a value, as a number.
    pub(super) fn number(&self, value: f64) -> f64 {
        self.raw(value)
    }

    /// Returns whether a value lies beyond the ends.
    pub(super) fn is_outside(&self, value: f64) -> bool {
        value < self.low || value > self.high
    }

    /// Returns marks that are at least `gap` apart.
    pub(super) fn marks(&self, gap: f64) -> Vec<Mark> {
        let mut chosen: Vec<f64> = Vec::new();
        for value in MARKS.into_iter().filter(|value| !self.is_outside(*value)) {
            let place = self.raw(value);
            if chosen.iter().all(|other| (self.raw(*other) - place).abs() >= gap) {
                chosen.push(value);
            }
        }
        chosen
            .into_iter()
            .map(|value| Mark { place: self.at(value), text: format!("{value}") })
            .collect()
    }
}

/// Formats a coordinate with one decimal.
pub(super) fn place(coordinate: f64) -> String {
    format!("{coordinate:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_and_double_are_equally_far_from_one() {
        let scale = Scale::around([0.4, 2.5].into_iter(), 100.0, 200.0);
        let (half, one, double) = (scale.raw(0.5), scale.raw(1.0), scale.raw(2.0));
        assert!((one - half - (double - one)).abs() < 1e-9);
        assert!((one - 200.0).abs() < 1e-9, "{one}");
        let upwards = scale.upwards();
        assert!(upwards.raw(0.5) > upwards.raw(2.0));
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
}
