//! The page of pictures: for each pattern nanoseconds over size, a line for each allocator.

use figures::machine::machine;
use figures::plot::{Name, Panel, Picture, Point};

use crate::cells::{Cell, Sweep};
use crate::options::OURS;
use crate::report::{bytes, numbers_of_threads, threads_text};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:980px;margin:24px auto;\
                     padding:0 16px;color:#1b1f24;background:#fff}svg{max-width:100%;height:auto}\
                     @media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}}";

fn picture(sweep: &Sweep, threads: u32) -> Picture {
    let measured = |at: &usize| {
        sweep.cells.iter().any(|cell| cell.threads == threads && !cell.ns[*at].is_empty())
    };
    let allocators: Vec<usize> = (0..sweep.allocators.len()).filter(measured).collect();
    let name = |&at: &usize| {
        let name = sweep.allocators[at].clone();
        Name { ours: name.starts_with(OURS), name, note: String::new() }
    };
    let point = |cell: &Cell, at: usize| {
        let value = cell.least(at)?;
        let most = cell.ns[at].iter().copied().fold(value, f64::max);
        Some(Point { across: cell.bytes as f64, value, least: value, most })
    };
    let panel = |group: (u32, &str)| {
        let cells = sweep.of(group);
        let line = |&at: &usize| cells.iter().filter_map(|cell| point(cell, at)).collect();
        Panel {
            label: format!("{}, ns", group.1),
            below: "bytes",
            tick: (|count| bytes(count as u64), ""),
            powers_from: 1.0,
            lines: allocators.iter().map(line).collect(),
        }
    };
    let groups = sweep.groups().into_iter().filter(|group| group.0 == threads);
    let heading = format!("nanoseconds an operation over size, {}", threads_text(threads));
    Picture {
        title: heading.clone(),
        about: machine(),
        heading,
        corner: "the least of the rounds; bars span them".to_owned(),
        names: allocators.iter().map(name).collect(),
        panels: groups.map(panel).collect(),
    }
}

/// The page, which is XML too.
pub(crate) fn of(sweep: &Sweep) -> String {
    let pictures =
        numbers_of_threads(sweep).into_iter().map(|threads| picture(sweep, threads).svg());
    format!(
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'/><title>The sweep</title>\
         <style>{STYLE}</style></head>\n<body><h1>Entry points, sizes, patterns</h1>\n\
         <p>{}. bench/sweep/sweep.cc says what an operation of each pattern is.</p>\n{}</body></html>\n",
        machine().replace('&', "&amp;").replace('<', "&lt;"),
        pictures.collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_xml_with_a_line_for_each_that_was_measured() {
        let page = of(&crate::report::tests::made_up());
        let document = roxmltree::Document::parse(page.split_once('\n').unwrap().1).unwrap();
        let paths = document.descendants().filter(|node| node.has_tag_name("path")).count();
        // Four of the five on one panel and in its legend.
        assert_eq!(paths, 8);
        let words: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
        assert!(words.iter().any(|text| text.starts_with("<fast>, 10 KB: 10.0 (10.0 to 12.0")));
    }
}
