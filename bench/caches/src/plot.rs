//! A workload's plot: speed and heap bytes against threads, a line for each setting.
//!
//! ```text
//!   +--------------------- title ----------------------+
//!   |  speed               |  heap, stacks apart       |
//!   |  ^     .--*          |  ^        *               |
//!   |  |  *-'              |  |   *---'                |
//!   |  +-----------> T     |  +------------> T         |
//!   |  legend: a line, a mark and a name each          |
//!   +--------------------------------------------------+
//! ```
//!
//! One SVG file that needs nothing else. Its colours are style rules with a second set
//! for readers who want it dark. Lines differ in colour, mark and dashes, so that
//! colour alone tells nothing: heapwright's are solid, the others' dashed. Threads
//! are on a scale of doublings. A thin bar spans the rounds, from the smallest to the
//! largest; each point says its numbers when it is pointed at.

use std::fmt::Write as _;

use ::figures::statistics::median;

use crate::metric::Metric;
use crate::plan::Workload;
use crate::results::{Cell, Results};
use crate::setting::Setting;
use ::figures::text::number;

const WIDTH: f64 = 980.0;
const PANEL_WIDTH: f64 = 390.0;
const PANEL_HEIGHT: f64 = 270.0;
const TOP: f64 = 74.0;
const LEFTS: [f64; 2] = [74.0, 564.0];
const LEGEND_TOP: f64 = TOP + PANEL_HEIGHT + 62.0;
const LEGEND_COLUMNS: usize = 4;
const LEGEND_ROW: f64 = 22.0;

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

/// A line of the plot.
struct Series<'a> {
    setting: &'a Setting,
    /// Threads; the median, the smallest, the largest.
    points: Vec<(u32, [f64; 3])>,
}

fn series<'a>(results: &'a Results, workload: &Workload, metric: Metric) -> Vec<Series<'a>> {
    let of = |setting: &'a Setting| {
        let name = setting.name.as_str();
        let points = results.threads(workload.name).into_iter().filter_map(|threads| {
            let cell = Cell { workload: workload.name, threads, setting: name };
            let rounds: Vec<f64> = results
                .rounds(cell, metric)
                .into_values()
                .map(|value| value / metric.unit())
                .collect();
            let least = rounds.iter().copied().reduce(f64::min)?;
            let most = rounds.iter().copied().reduce(f64::max)?;
            Some((threads, [median(&rounds), least, most]))
        });
        Series { setting, points: points.collect() }
    };
    results.settings.iter().map(of).collect()
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
    fn of(series: &[Series<'_>], may_be_powers: bool) -> Self {
        let values = || series.iter().flat_map(|s| &s.points).flat_map(|(_, values)| *values);
        let most = values().fold(0.0, f64::max).max(1e-9);
        let least = values().fold(most, f64::min).max(most / 1e6);
        if may_be_powers && most / least > 30.0 {
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

    /// Where a value stands on a panel.
    fn at(&self, value: f64) -> f64 {
        let part = if self.by_powers {
            (value.max(self.least) / self.least).ln() / (self.most / self.least).ln()
        } else {
            (value - self.least) / (self.most - self.least)
        };
        TOP + PANEL_HEIGHT * (1.0 - part)
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

/// The class of a setting's line: `o1` is ours, `p1` another's.
fn classes(settings: &[Setting]) -> Vec<(String, usize)> {
    let (mut ours, mut others) = (0, 0);
    let of = |setting: &Setting| {
        let (letter, count) = if setting.ours { ('o', &mut ours) } else { ('p', &mut others) };
        *count += 1;
        (format!("{letter}{}", (*count - 1) % 6), *count - 1)
    };
    settings.iter().map(of).collect()
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

/// Where a number of threads stands.
fn across(threads: u32, all: &[u32], left: f64) -> f64 {
    let log = |n: u32| f64::from(n.max(1)).log2();
    let (first, last) = (log(all[0]), log(all[all.len() - 1]));
    let part = if last > first { (log(threads) - first) / (last - first) } else { 0.5 };
    left + 14.0 + (PANEL_WIDTH - 28.0) * part
}

fn panel(svg: &mut String, results: &Results, workload: &Workload, metric: Metric, left: f64) {
    let threads = results.threads(workload.name);
    let lines = series(results, workload, metric);
    let axis = Upwards::of(&lines, metric.unit() > 1.0);
    let (right, bottom) = (left + PANEL_WIDTH, TOP + PANEL_HEIGHT);
    for &tick in &axis.ticks {
        let y = axis.at(tick);
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
    for &count in &threads {
        let x = across(count, &threads, left);
        let _ = writeln!(
            svg,
            "<line class='axis' x1='{x:.1}' x2='{x:.1}' y1='{bottom:.1}' y2='{:.1}'/>\
             <text class='quiet' x='{x:.1}' y='{:.1}' text-anchor='middle'>{count}</text>",
            bottom + 4.0,
            bottom + 18.0
        );
    }
    let powers = if axis.by_powers { " (scale of powers of ten)" } else { "" };
    let _ = writeln!(
        svg,
        "<text x='{left:.1}' y='{:.1}'>{}{powers}</text>\
         <text class='quiet' x='{:.1}' y='{:.1}' text-anchor='middle'>threads at a time (scale of doublings)</text>",
        TOP - 14.0,
        escape(metric.label()),
        left + PANEL_WIDTH / 2.0,
        bottom + 36.0
    );
    for (line, (class, which)) in lines.iter().zip(classes(&results.settings)) {
        if line.points.is_empty() {
            continue;
        }
        let _ = writeln!(svg, "<g class='{class} {}'>", kind(line.setting));
        let mut path = String::new();
        let mut marks = String::new();
        for &(threads_here, [middle, least, most]) in &line.points {
            let (x, y) = (across(threads_here, &threads, left), axis.at(middle));
            let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { "M" } else { "L" });
            let _ = write!(
                marks,
                "<g><title>{}, {threads_here} threads: {} ({} to {} over the rounds)</title>{}</g>",
                escape(&line.setting.name),
                number(middle),
                number(least),
                number(most),
                mark(which, x, y)
            );
            if axis.at(least) - axis.at(most) > 1.0 {
                let _ = writeln!(
                    svg,
                    "<line stroke-width='1' x1='{x:.1}' x2='{x:.1}' y1='{:.1}' y2='{:.1}'/>",
                    axis.at(least),
                    axis.at(most)
                );
            }
        }
        let _ = writeln!(svg, "<path d='{path}'{}/>", dashes(line.setting, which));
        let _ = writeln!(svg, "<g class='marks'>{marks}</g></g>");
    }
}

fn kind(setting: &Setting) -> &'static str {
    if setting.ours { "line" } else { "other" }
}

fn dashes(setting: &Setting, which: usize) -> String {
    if setting.ours {
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

fn legend(svg: &mut String, settings: &[Setting]) {
    let width = (WIDTH - 48.0) / LEGEND_COLUMNS as f64;
    for (at, (setting, (class, which))) in settings.iter().zip(classes(settings)).enumerate() {
        let x = 24.0 + width * (at % LEGEND_COLUMNS) as f64;
        let y = LEGEND_TOP + LEGEND_ROW * (at / LEGEND_COLUMNS) as f64;
        let caches = setting.caches.filter(|_| !setting.name.contains(':'));
        let caches = caches.map_or(String::new(), |k| format!(" ({k} caches)"));
        let _ = writeln!(
            svg,
            "<g class='{class} {}'><path d='M{x:.1} {y:.1}h34'{}/><g class='marks'>{}</g></g>\
             <text x='{:.1}' y='{:.1}'>{}{caches}</text>",
            kind(setting),
            dashes(setting, which),
            mark(which, x + 17.0, y),
            x + 42.0,
            y + 4.0,
            escape(&setting.name)
        );
    }
}

/// The plot, if the workload was run.
pub(crate) fn of(results: &Results, workload: &Workload) -> Option<String> {
    if results.threads(workload.name).is_empty() {
        return None;
    }
    let rows = results.settings.len().div_ceil(LEGEND_COLUMNS);
    let height = LEGEND_TOP + LEGEND_ROW * rows as f64 + 8.0;
    let mut svg = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' width='{WIDTH}' \
         height='{height}' role='img' aria-labelledby='title about'>\n\
         <title id='title'>{name}: speed and memory against threads</title>\n\
         <desc id='about'>{about}. {machine}.</desc>\n",
        name = workload.name,
        about = escape(workload.about),
        machine = escape(&results.machine)
    );
    svg.push_str(&style());
    let _ = writeln!(
        svg,
        "<text x='24' y='28' font-size='15' font-weight='600'>{}: {}</text>\
         <text class='quiet' x='{:.1}' y='28' text-anchor='end'>{}</text>",
        workload.name,
        escape(workload.about),
        WIDTH - 24.0,
        escape(results.machine.split(',').next().unwrap_or_default())
    );
    for (metric, left) in [workload.speed, Metric::HeapPeak].into_iter().zip(LEFTS) {
        panel(&mut svg, results, workload, metric, left);
    }
    legend(&mut svg, &results.settings);
    svg.push_str("</svg>\n");
    Some(svg)
}

/// What XML must not contain, in its words.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan;
    use crate::results::tests::one;

    fn results(threads: &[u32]) -> Results {
        let mut settings = Setting::all_ours("/a.so", &[8, 32], 2);
        settings.push(Setting::peer("scudo=/s.so").unwrap());
        settings.push(Setting::peer("<&\"peer'>=/p.so").unwrap());
        settings.push(Setting::glibc());
        let machine = "2 processors, \"R&D\" <x>, Linux 6".to_owned();
        let mut results = Results { settings, machine, ..Results::default() };
        for (at, setting) in results.settings.clone().iter().enumerate() {
            for &threads in threads {
                for round in 1..=3 {
                    let memory = f64::from(threads) * 1e6 * (at + 1) as f64;
                    let fields = [
                        ("requests", 1000.0 * f64::from(round)),
                        ("wall_ns", 1e9),
                        ("rss_peak", memory),
                        ("rss_end", memory),
                        ("anonymous_end", memory),
                        ("stacks", 0.0),
                        ("own", 0.0),
                    ];
                    let cell = ("rpc", threads, setting.name.as_str());
                    results.runs.push(one(cell, round, "none", &fields));
                }
            }
        }
        results
    }

    #[test]
    fn a_plot_is_xml_with_a_line_for_each() {
        let results = results(&[2, 40, 80]);
        let svg = of(&results, plan::workload("rpc").unwrap()).unwrap();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let paths = document.descendants().filter(|node| node.has_tag_name("path")).count();
        // Two panels and the legend.
        assert_eq!(paths, 3 * results.settings.len());
        let words: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
        for word in ["requests a second", "<&\"peer'>", "shared (2 caches)", "shared:8", "40"] {
            assert!(words.iter().any(|text| text.contains(word)), "{word}");
        }
        assert!(words.iter().any(|text| text.contains("heap at its peak, stacks apart, MiB")));
        assert!(svg.contains("prefers-color-scheme:dark"));
        // Needs nothing from elsewhere, and no number failed.
        assert!(!svg.contains("href") && !svg.contains("url(") && !svg.contains("NaN"));
        assert!(!svg.contains("inf"));
    }

    #[test]
    fn all_points_lie_on_their_panel() {
        for threads in [&[2, 40, 80][..], &[7], &[1, 1000]] {
            let svg = of(&results(threads), plan::workload("rpc").unwrap()).unwrap();
            let document = roxmltree::Document::parse(&svg).unwrap();
            let circles = document.descendants().filter(|node| node.has_tag_name("circle"));
            for circle in circles {
                let place = |name: &str| circle.attribute(name).unwrap().parse::<f64>().unwrap();
                assert!((20.0..WIDTH).contains(&place("cx")), "{circle:?}");
                assert!((TOP - 1.0..LEGEND_TOP + 80.0).contains(&place("cy")), "{circle:?}");
            }
        }
    }

    #[test]
    fn what_was_not_run_has_no_plot() {
        assert_eq!(of(&results(&[2]), plan::workload("idle").unwrap()), None);
    }

    #[test]
    fn steps_are_round() {
        assert_eq!([0.9, 4.0, 7.0, 23.0, 99.0, 101.0].map(step), [0.2, 1.0, 2.0, 5.0, 20.0, 50.0]);
        assert_eq!([0.1 + 0.2, 5.0, 20_000.0, 1.5e6].map(shortly), ["0.3", "5", "20k", "1.5M"]);
    }
}
