//! Pictures: panels of lines in one SVG, two a row, with a legend.
//!
//! ```text
//!   +------------------- heading ----------------------+
//!   |  label               |  label                    |
//!   |  ^     .--*          |  ^        *               |
//!   |  |  *-'              |  |   *---'                |
//!   |  +-----------> x     |  +------------> x         |
//!   |  legend: a line, a mark and a name each          |
//!   +--------------------------------------------------+
//! ```
//!
//! It needs nothing else, as a file or in a page. Its colours are style rules with a second set
//! for readers who want it dark. Lines differ in colour, mark and dashes, so that
//! colour alone tells nothing: heapwright's are solid, the others' dashed. What lies across
//! is on a scale of doublings. A thin bar spans the rounds, from the smallest to the
//! largest; each point says its numbers when it is pointed at.

use std::fmt::Write as _;

use crate::text::number;

const WIDTH: f64 = 980.0;
const PANEL_WIDTH: f64 = 390.0;
const PANEL_HEIGHT: f64 = 270.0;
/// A panel with what stands above and below it.
const ROW: f64 = PANEL_HEIGHT + 84.0;
const TOP: f64 = 74.0;
const LEFTS: [f64; 2] = [74.0, 564.0];
const LEGEND_COLUMNS: usize = 4;
const LEGEND_ROW: f64 = 22.0;
/// Numbers on the axis across need so much room.
const APART: f64 = 44.0;

/// Colours of lines on light ground and on dark, ours and then the others'.
const OURS: [(&str, &str); 6] = [
    ("#0a58ca", "#6ea8fe"),
    ("#146c43", "#5fd39a"),
    ("#5c8a00", "#a9d64b"),
    ("#00838f", "#4dd0e1"),
    ("#c2410c", "#ff9d66"),
    ("#8a6d00", "#e6c84b"),
];
const OTHERS: [(&str, &str); 6] = [
    ("#8b1a8b", "#e58be5"),
    ("#b3446c", "#f29ab8"),
    ("#6b7280", "#a7afbd"),
    ("#7c4a1e", "#d3a071"),
    ("#4338ca", "#a5a0ff"),
    ("#374151", "#d6dae1"),
];
const DASHES: [&str; 4] = ["7 3", "2 3", "9 3 2 3", "4 4"];

/// Who has a line on each panel, and a place in the legend.
#[derive(Clone, Debug)]
pub struct Name {
    /// The name.
    pub name: String,
    /// What the legend says behind it.
    pub note: String,
    /// Whether it is heapwright.
    pub ours: bool,
}

/// A point of a line.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Where it lies across, above 0.
    pub across: f64,
    /// What was measured there.
    pub value: f64,
    /// Of the rounds the least.
    pub least: f64,
    /// Of the rounds the most.
    pub most: f64,
}

/// A panel.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What stands above it: what is measured.
    pub label: String,
    /// What stands below it: what lies across.
    pub below: &'static str,
    /// A place across, in words; and what is behind them where a point speaks.
    pub tick: (fn(f64) -> String, &'static str),
    /// If the most is so many times the least, the scale upwards is of powers of ten.
    pub powers_from: f64,
    /// For each name its points.
    pub lines: Vec<Vec<Point>>,
}

/// A picture.
#[derive(Clone, Debug)]
pub struct Picture {
    /// What it is, for who cannot see it.
    pub title: String,
    /// More of that.
    pub about: String,
    /// The line at its top.
    pub heading: String,
    /// What stands at the right of that.
    pub corner: String,
    /// The lines.
    pub names: Vec<Name>,
    /// The panels.
    pub panels: Vec<Panel>,
}

/// 1, 2 or 5 times a power of ten: at most six steps to `most`.
fn step(most: f64) -> f64 {
    let power = 10f64.powf((most / 5.0).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|times| times * power);
    steps.into_iter().find(|step| most / step <= 5.0).unwrap_or(10.0 * power)
}

/// An axis of values, upwards: from 0, or by powers where they differ much.
struct Upwards {
    least: f64,
    most: f64,
    by_powers: bool,
    ticks: Vec<f64>,
}

impl Upwards {
    fn of(panel: &Panel) -> Self {
        let values = || panel.lines.iter().flatten().flat_map(|p| [p.value, p.least, p.most]);
        let most = values().fold(0.0, f64::max).max(1e-9);
        let least = values().fold(most, f64::min).max(most / 1e6);
        if most / least > panel.powers_from {
            let (from, to) = (least.log10().floor(), most.log10().ceil());
            let powers = (from as i32..=to as i32).map(|power| 10f64.powi(power));
            return Self {
                least: 10f64.powf(from),
                most: 10f64.powf(to),
                by_powers: true,
                ticks: powers.collect(),
            };
        }
        let step = step(most);
        let count = (most / step).ceil().max(1.0);
        let ticks = (0..=count as u32).map(|tick| f64::from(tick) * step).collect();
        Self { least: 0.0, most: count * step, by_powers: false, ticks }
    }

    /// Where a value stands on a panel, from its top.
    fn at(&self, value: f64) -> f64 {
        let part = if self.by_powers {
            (value.max(self.least) / self.least).ln() / (self.most / self.least).ln()
        } else {
            (value - self.least) / (self.most - self.least)
        };
        PANEL_HEIGHT * (1.0 - part)
    }
}

/// A mark, of which each line has its own.
fn mark(which: usize, x: f64, y: f64) -> String {
    match which % 6 {
        0 => format!("<circle cx='{x:.1}' cy='{y:.1}' r='4'/>"),
        1 => format!("<rect x='{:.1}' y='{:.1}' width='7' height='7'/>", x - 3.5, y - 3.5),
        2 => polygon(&[(x, y - 5.0), (x + 4.6, y + 3.2), (x - 4.6, y + 3.2)]),
        3 => polygon(&[(x, y - 5.2), (x + 5.2, y), (x, y + 5.2), (x - 5.2, y)]),
        4 => polygon(&[(x, y + 5.0), (x + 4.6, y - 3.2), (x - 4.6, y - 3.2)]),
        _ => polygon(&[
            (x - 2.2, y - 4.6),
            (x + 2.2, y - 4.6),
            (x + 4.6, y),
            (x + 2.2, y + 4.6),
            (x - 2.2, y + 4.6),
            (x - 4.6, y),
        ]),
    }
}

fn polygon(corners: &[(f64, f64)]) -> String {
    let corners: Vec<String> = corners.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    format!("<polygon points='{}'/>", corners.join(" "))
}

/// The classes of the lines, `o1` is ours, `p1` another's; and their numbers among these.
fn classes(names: &[Name]) -> Vec<(String, usize)> {
    let (mut ours, mut others) = (0, 0);
    let of = |name: &Name| {
        let (letter, count) = if name.ours { ('o', &mut ours) } else { ('p', &mut others) };
        *count += 1;
        (format!("{letter}{}", (*count - 1) % 6), *count - 1)
    };
    names.iter().map(of).collect()
}

fn style() -> String {
    let mut light = String::from(
        "svg{background:#fff;font:12px system-ui,sans-serif}text{fill:#1b1f24}\
         .quiet{fill:#57606a}.grid{stroke:#d8dee4}.axis{stroke:#57606a}\
         path,line{fill:none}.line{stroke-width:2.2}.other{stroke-width:1.3}\
         .other .marks *{fill:#fff}",
    );
    let mut dark = String::from(
        "svg{background:#0d1117}text{fill:#e6edf3}.quiet{fill:#9da7b3}.grid{stroke:#2b323b}\
         .axis{stroke:#9da7b3}.other .marks *{fill:#0d1117}",
    );
    for (letter, colours) in [("o", OURS), ("p", OTHERS)] {
        for (at, (on_light, on_dark)) in colours.iter().enumerate() {
            let fill = if letter == "o" { "fill" } else { "stroke" };
            let _ = write!(
                light,
                ".{letter}{at}{{stroke:{on_light}}}.{letter}{at} .marks *{{{fill}:{on_light}}}"
            );
            let _ = write!(
                dark,
                ".{letter}{at}{{stroke:{on_dark}}}.{letter}{at} .marks *{{{fill}:{on_dark}}}"
            );
        }
    }
    format!("<style>{light}@media(prefers-color-scheme:dark){{{dark}}}</style>\n")
}

fn kind(name: &Name) -> &'static str {
    if name.ours { "line" } else { "other" }
}

fn dashes(name: &Name, which: usize) -> String {
    if name.ours {
        String::new()
    } else {
        format!(" stroke-dasharray='{}'", DASHES[which % DASHES.len()])
    }
}

/// A tick's number: no digits that say nothing.
fn shortly(value: f64) -> String {
    let (value, unit) = match value.abs() {
        v if v >= 1e6 => (value / 1e6, "M"),
        v if v >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    // Ticks are 1, 2 or 5 of a power: rounding takes off only what floats add.
    format!("{}{unit}", (value * 1e6).round() / 1e6)
}

/// What XML must not contain, in its words.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

impl Picture {
    /// As SVG.
    pub fn svg(&self) -> String {
        let legend_top = TOP + ROW * self.panels.len().div_ceil(2) as f64 - 22.0;
        let rows = self.names.len().div_ceil(LEGEND_COLUMNS);
        let height = legend_top + LEGEND_ROW * rows as f64 + 8.0;
        let mut svg = format!(
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' \
             width='{WIDTH}' height='{height}' role='img'>\n\
             <title>{}</title>\n<desc>{}</desc>\n{}\
             <text x='24' y='28' font-size='15' font-weight='600'>{}</text>\
             <text class='quiet' x='{:.1}' y='28' text-anchor='end'>{}</text>\n",
            escape(&self.title),
            escape(&self.about),
            style(),
            escape(&self.heading),
            WIDTH - 24.0,
            escape(&self.corner)
        );
        for (at, panel) in self.panels.iter().enumerate() {
            self.draw(&mut svg, panel, LEFTS[at % 2], TOP + ROW * (at / 2) as f64);
        }
        self.legend(&mut svg, legend_top);
        svg + "</svg>\n"
    }

    fn draw(&self, svg: &mut String, panel: &Panel, left: f64, top: f64) {
        let axis = Upwards::of(panel);
        let (right, bottom) = (left + PANEL_WIDTH, top + PANEL_HEIGHT);
        for &tick in &axis.ticks {
            let y = top + axis.at(tick);
            let _ = writeln!(
                svg,
                "<line class='grid' x1='{left:.1}' x2='{right:.1}' y1='{y:.1}' y2='{y:.1}'/>\
                 <text class='quiet' x='{:.1}' y='{:.1}' text-anchor='end'>{}</text>",
                left - 7.0,
                y + 4.0,
                shortly(tick)
            );
        }
        let _ = writeln!(
            svg,
            "<line class='axis' x1='{left:.1}' x2='{right:.1}' y1='{bottom:.1}' y2='{bottom:.1}'/>"
        );
        let mut places: Vec<f64> = panel.lines.iter().flatten().map(|p| p.across).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let (tick, behind) = panel.tick;
        let mut free = left - APART;
        for &place in &places {
            let x = left + across(place, &places);
            let _ = writeln!(
                svg,
                "<line class='axis' x1='{x:.1}' x2='{x:.1}' y1='{bottom:.1}' y2='{:.1}'/>",
                bottom + 4.0
            );
            if x >= free {
                free = x + APART;
                let _ = writeln!(
                    svg,
                    "<text class='quiet' x='{x:.1}' y='{:.1}' text-anchor='middle'>{}</text>",
                    bottom + 18.0,
                    escape(&tick(place))
                );
            }
        }
        let powers = if axis.by_powers { " (scale of powers of ten)" } else { "" };
        let _ = writeln!(
            svg,
            "<text x='{left:.1}' y='{:.1}'>{}{powers}</text>\
             <text class='quiet' x='{:.1}' y='{:.1}' text-anchor='middle'>{} (scale of doublings)</text>",
            top - 14.0,
            escape(&panel.label),
            left + PANEL_WIDTH / 2.0,
            bottom + 36.0,
            escape(panel.below)
        );
        for ((name, line), (class, which)) in
            self.names.iter().zip(&panel.lines).zip(classes(&self.names))
        {
            if line.is_empty() {
                continue;
            }
            let _ = writeln!(svg, "<g class='{class} {}'>", kind(name));
            let (mut path, mut marks) = (String::new(), String::new());
            for point in line {
                let x = left + across(point.across, &places);
                let [y, low, high] =
                    [point.value, point.least, point.most].map(|value| top + axis.at(value));
                let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { "M" } else { "L" });
                let _ = write!(
                    marks,
                    "<g><title>{}, {}{behind}: {} ({} to {} over the rounds)</title>{}</g>",
                    escape(&name.name),
                    escape(&tick(point.across)),
                    number(point.value),
                    number(point.least),
                    number(point.most),
                    mark(which, x, y)
                );
                if low - high > 1.0 {
                    let _ = writeln!(
                        svg,
                        "<line stroke-width='1' x1='{x:.1}' x2='{x:.1}' y1='{low:.1}' y2='{high:.1}'/>"
                    );
                }
            }
            let _ = writeln!(svg, "<path d='{path}'{}/>", dashes(name, which));
            let _ = writeln!(svg, "<g class='marks'>{marks}</g></g>");
        }
    }

    fn legend(&self, svg: &mut String, top: f64) {
        let width = (WIDTH - 48.0) / LEGEND_COLUMNS as f64;
        for (at, (name, (class, which))) in self.names.iter().zip(classes(&self.names)).enumerate()
        {
            let x = 24.0 + width * (at % LEGEND_COLUMNS) as f64;
            let y = top + LEGEND_ROW * (at / LEGEND_COLUMNS) as f64;
            let _ = writeln!(
                svg,
                "<g class='{class} {}'><path d='M{x:.1} {y:.1}h34'{}/><g class='marks'>{}</g></g>\
                 <text x='{:.1}' y='{:.1}'>{}{}</text>",
                kind(name),
                dashes(name, which),
                mark(which, x + 17.0, y),
                x + 42.0,
                y + 4.0,
                escape(&name.name),
                escape(&name.note)
            );
        }
    }
}

/// Where a place stands on a panel, from its left.
fn across(place: f64, all: &[f64]) -> f64 {
    let (first, last) = (all[0].log2(), all[all.len() - 1].log2());
    let part = if last > first { (place.log2() - first) / (last - first) } else { 0.5 };
    14.0 + (PANEL_WIDTH - 28.0) * part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        assert_eq!([0.9, 4.0, 7.0, 23.0, 99.0, 101.0].map(step), [0.2, 1.0, 2.0, 5.0, 20.0, 50.0]);
        assert_eq!([0.1 + 0.2, 5.0, 20_000.0, 1.5e6].map(shortly), ["0.3", "5", "20k", "1.5M"]);
    }

    #[test]
    fn panels_stand_two_a_row_above_the_legend() {
        let name = |name: &str, ours| Name { name: name.to_owned(), note: " (n)".to_owned(), ours };
        let point = |across, value| Point { across, value, least: value / 2.0, most: value };
        let panel = Panel {
            label: "ns".to_owned(),
            below: "bytes",
            tick: (|bytes| format!("{bytes} <B>"), " each"),
            powers_from: 1.0,
            lines: vec![vec![point(16.0, 4.0), point(20.0, 5.0), point(4096.0, 50.0)], vec![]],
        };
        let picture = Picture {
            title: "a & b".to_owned(),
            about: String::new(),
            heading: "h".to_owned(),
            corner: "c".to_owned(),
            names: vec![name("us", true), name("it", false)],
            panels: vec![panel; 3],
        };
        let svg = picture.svg();
        assert!(svg.contains("a &amp; b") && svg.contains("us, 4096 &lt;B&gt; each: 50.0 (25.0"));
        // 20 has no room beside 16; a line without points is in the legend alone.
        assert_eq!(svg.matches(">16 &lt;B&gt;</text>").count(), 3);
        assert_eq!(svg.matches(">20 &lt;B&gt;</text>").count(), 0);
        assert_eq!((svg.matches("<path").count(), svg.matches("class='p0").count()), (5, 1));
        assert!(svg.contains(&format!("height='{}'", TOP + 2.0 * ROW - 22.0 + LEGEND_ROW + 8.0)));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }
}
