//! A workload's plot: speed and heap bytes against threads, a line for each setting
//! (`figures::plot`).

use ::figures::machine::machine;
use ::figures::plot::{Name, Panel, Picture, Point};
use ::figures::statistics::median;

use crate::metric::{self, Metric};
use crate::plan::Workload;
use crate::results::{Place, Results};
use crate::setting::{caches, is_ours};

/// The plot, if the workload was run.
pub(crate) fn of(results: &Results, workload: &Workload) -> Option<String> {
    let threads = results.threads(workload.name);
    if threads.is_empty() {
        return None;
    }
    let settings = results.settings();
    let line = |setting: &str, metric: &Metric| {
        let point = |&threads: &u32| {
            let values =
                results.values(Place { workload: workload.name, threads, setting }, metric);
            let rounds: Vec<f64> = values.iter().map(|value| value / metric.unit).collect();
            let least = rounds.iter().copied().reduce(f64::min)?;
            let most = rounds.iter().copied().reduce(f64::max)?;
            Some(Point { across: threads.into(), value: median(&rounds), least, most })
        };
        threads.iter().filter_map(point).collect()
    };
    let panel = |metric: &Metric| Panel {
        label: metric.label.to_owned(),
        below: "threads at a time",
        tick: (|threads| threads.to_string(), " threads"),
        powers_from: if metric.unit > 1.0 { 30.0 } else { f64::INFINITY },
        lines: settings.iter().map(|setting| line(setting, metric)).collect(),
    };
    let name = |name: &&str| {
        let caches = caches(name).filter(|_| !name.contains(':'));
        let note = caches.map_or(String::new(), |k| format!(" ({k} caches)"));
        Name { name: (*name).to_owned(), note, ours: is_ours(name) }
    };
    let machine = machine();
    let picture = Picture {
        title: format!("{}: speed and memory against threads", workload.name),
        about: format!("{}. {machine}.", workload.about),
        heading: format!("{}: {}", workload.name, workload.about),
        corner: machine.split(',').next().unwrap_or_default().to_owned(),
        names: settings.iter().map(name).collect(),
        panels: [workload.speed, metric::HEAP_PEAK].map(panel).into(),
    };
    Some(picture.svg())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::WORKLOADS;
    use crate::results::tests::lines;
    use ::figures::cells::Cells;

    #[test]
    fn a_plot_is_xml_with_a_line_for_each_and_all_points_on_their_panel() {
        for threads in [&[2, 40, 80][..], &[7], &[1, 1000]] {
            let mut text = String::new();
            let settings = ["exclusive", "shared", "shared:8", "percpu", "<&\"peer'>", "glibc"];
            for (at, setting) in settings.iter().enumerate() {
                for &threads in threads {
                    let memory = f64::from(threads) * 1e6 * (at + 1) as f64;
                    let fields = [
                        ("requests", 1000.0),
                        ("wall_ns", 1e9),
                        ("rss_peak", memory),
                        ("rss_end", memory),
                        ("anonymous_end", memory),
                        ("stacks", 0.0),
                        ("own", 0.0),
                    ];
                    text += &lines(("rpc", &format!("{threads} none"), setting), 1, &fields);
                }
            }
            let results = Results::of(Cells::parse(&text).unwrap());
            assert_eq!(of(&results, &WORKLOADS[3]), None);
            let svg = of(&results, &WORKLOADS[1]).unwrap();
            let document = roxmltree::Document::parse(&svg).unwrap();
            let paths = document.descendants().filter(|node| node.has_tag_name("path")).count();
            // Two panels and the legend.
            assert_eq!(paths, 3 * settings.len());
            let words: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
            for word in ["requests a second", "<&\"peer'>", "shared:8", "stacks apart, MiB"] {
                assert!(words.iter().any(|text| text.contains(word)), "{word}");
            }
            // Needs nothing from elsewhere, and no number failed.
            assert!(!svg.contains("href") && !svg.contains("url(") && !svg.contains("NaN"));
            let circles = document.descendants().filter(|node| node.has_tag_name("circle"));
            for circle in circles {
                let place = |name: &str| circle.attribute(name).unwrap().parse::<f64>().unwrap();
                assert!((20.0..980.0).contains(&place("cx")), "{circle:?}");
                assert!((73.0..490.0).contains(&place("cy")), "{circle:?}");
            }
        }
    }
}
