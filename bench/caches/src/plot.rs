//! A workload's plot: speed and heap bytes against threads, a line for each setting
//! (`figures::plot`).

use ::figures::plot::{Name, Panel, Picture, Point};
use ::figures::statistics::median;

use crate::metric::Metric;
use crate::plan::Workload;
use crate::results::{Cell, Results};
use crate::setting::Setting;

fn line(results: &Results, workload: &Workload, metric: Metric, setting: &Setting) -> Vec<Point> {
    let points = results.threads(workload.name).into_iter().filter_map(|threads| {
        let cell = Cell { workload: workload.name, threads, setting: &setting.name };
        let rounds = results.rounds(cell, metric).into_values();
        let rounds: Vec<f64> = rounds.map(|value| value / metric.unit()).collect();
        let least = rounds.iter().copied().reduce(f64::min)?;
        let most = rounds.iter().copied().reduce(f64::max)?;
        Some(Point { across: threads.into(), value: median(&rounds), least, most })
    });
    points.collect()
}

fn panel(results: &Results, workload: &Workload, metric: Metric) -> Panel {
    let settings = results.settings.iter();
    Panel {
        label: metric.label().to_owned(),
        below: "threads at a time",
        tick: (|threads| threads.to_string(), " threads"),
        powers_from: if metric.unit() > 1.0 { 30.0 } else { f64::INFINITY },
        lines: settings.map(|setting| line(results, workload, metric, setting)).collect(),
    }
}

fn name(setting: &Setting) -> Name {
    let caches = setting.caches.filter(|_| !setting.name.contains(':'));
    let note = caches.map_or(String::new(), |k| format!(" ({k} caches)"));
    Name { name: setting.name.clone(), note, ours: setting.ours }
}

/// The plot, if the workload was run.
pub(crate) fn of(results: &Results, workload: &Workload) -> Option<String> {
    if results.threads(workload.name).is_empty() {
        return None;
    }
    let metrics = [workload.speed, Metric::HeapPeak];
    let picture = Picture {
        title: format!("{}: speed and memory against threads", workload.name),
        about: format!("{}. {}.", workload.about, results.machine),
        heading: format!("{}: {}", workload.name, workload.about),
        corner: results.machine.split(',').next().unwrap_or_default().to_owned(),
        names: results.settings.iter().map(name).collect(),
        panels: metrics.map(|metric| panel(results, workload, metric)).into(),
    };
    Some(picture.svg())
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
                assert!((20.0..980.0).contains(&place("cx")), "{circle:?}");
                assert!((73.0..490.0).contains(&place("cy")), "{circle:?}");
            }
        }
    }

    #[test]
    fn what_was_not_run_has_no_plot() {
        assert_eq!(of(&results(&[2]), plan::workload("idle").unwrap()), None);
    }
}
