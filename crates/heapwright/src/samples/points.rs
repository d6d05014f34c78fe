//! Points in time: the live bytes and the process's resident bytes from the start to now.
//!
//! ```text
//!   changes   e   e e |        |        |   e    |            a sample is made, resized or freed
//!   cells     |-------|--------|--------|--------|--          `step` nanoseconds each
//!   points            p                 p           made before a change: at the end of the cell
//!                                                   of the last change, and of the last cell
//!                                                   without a change
//! ```
//!
//! The first change after a point makes the point, with the live bytes since the previous change.
//! So the point is exact, and a time without changes takes two points. When the room is full, cells
//! double, and each keeps its last point. From the 64th point on, there are always at least 64.
//! Called by the other files of `samples`, under its lock.

const MOST: usize = 256;
/// The first length of a cell in nanoseconds. Each cell takes at most one call of the kernel.
const FIRST_STEP_NS: u64 = 1 << 23;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) ns: u64,
    pub(super) live: f64,
    /// The resident bytes, or 0 if unknown.
    pub(super) resident: u64,
}

pub(super) struct Points {
    list: [Point; MOST],
    count: usize,
    doublings: u32,
    /// The start of the cell of the last change.
    cell_ns: u64,
}

impl Points {
    /// Returns no points, as zeroed memory does.
    pub(super) const fn new() -> Self {
        let none = Point { ns: 0, live: 0.0, resident: 0 };
        Self { list: [none; MOST], count: 0, doublings: 0, cell_ns: 0 }
    }

    fn step_ns(&self) -> u64 {
        FIRST_STEP_NS << self.doublings
    }

    fn next_ns(&self) -> u64 {
        self.cell_ns.saturating_add(self.step_ns())
    }

    pub(super) fn begin(&mut self, live: f64, resident: u64) {
        (self.count, self.doublings, self.cell_ns) = (0, 0, 0);
        self.push(Point { ns: 0, live, resident });
    }

    #[inline]
    pub(super) fn is_due(&self, ns: u64) -> bool {
        ns >= self.next_ns()
    }

    /// Adds points before a change at `ns` after the start, if [`Points::is_due`].
    pub(super) fn add(&mut self, ns: u64, live: f64, resident: u64) {
        let (first, last) = (self.next_ns(), ns - ns % self.step_ns());
        self.push(Point { ns: first, live, resident });
        if last > first {
            self.push(Point { ns: last, live, resident });
        }
        self.cell_ns = ns - ns % self.step_ns();
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Point> {
        self.list[..self.count].iter()
    }

    fn push(&mut self, point: Point) {
        if self.count == MOST {
            self.thin();
        }
        self.list[self.count] = point;
        self.count += 1;
    }

    /// Doubles the cells until half of the room is free. Each cell keeps its last point.
    fn thin(&mut self) {
        while self.count > MOST / 2 {
            self.doublings += 1;
            let step_ns = self.step_ns();
            let cell = |point: &Point| point.ns.div_ceil(step_ns);
            let mut kept = 0;
            for at in 0..self.count {
                let next = self.list[..self.count].get(at + 1);
                if next.is_none_or(|next| cell(next) != cell(&self.list[at])) {
                    self.list[kept] = self.list[at];
                    kept += 1;
                }
            }
            self.count = kept;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    extern crate std;
    use std::vec::Vec;

    #[test]
    fn a_time_without_changes_is_flat() {
        let mut points = Points::new();
        points.begin(0.0, 1);
        // 100 bytes are allocated, nothing changes for long, and then they are freed.
        assert!(!points.is_due(FIRST_STEP_NS - 1) && points.is_due(FIRST_STEP_NS));
        points.add(1000 * FIRST_STEP_NS + 7, 100.0, 2);
        let all: Vec<_> =
            points.iter().map(|point| (point.ns / FIRST_STEP_NS, point.live)).collect();
        assert_eq!(all, [(0, 0.0), (1, 100.0), (1000, 100.0)]);
        assert!(!points.is_due(1001 * FIRST_STEP_NS - 1));
    }

    proptest! {
        #![proptest_config(crate::cases::cases(100))]

        /// Each point has the live bytes of its time, and there are enough points.
        #[test]
        fn points_are_what_was_live(steps in prop::collection::vec(0u64..40, 1..3000)) {
            let mut points = Points::new();
            points.begin(0.0, 0);
            let (mut now, mut changes, mut made) = (0, Vec::from([(0, 0.0)]), 1);
            for (number, distance) in steps.into_iter().enumerate() {
                now += 1 << distance.min(30);
                if points.is_due(now) {
                    points.add(now, changes[changes.len() - 1].1, 0);
                    made += 1;
                }
                changes.push((now, number as f64 + 1.0));
            }
            let all: Vec<_> = points.iter().copied().collect();
            prop_assert!(all.windows(2).all(|two| two[0].ns < two[1].ns));
            for point in &all {
                let before = changes.partition_point(|&(at, _)| at < point.ns).max(1) - 1;
                prop_assert_eq!(point.live, changes[before].1);
            }
            prop_assert!(all.len() <= MOST && all.len() >= made.min(MOST / 4));
            prop_assert!(now < points.next_ns() && points.next_ns() - now <= points.step_ns());
        }
    }
}
