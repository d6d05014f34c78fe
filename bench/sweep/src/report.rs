//! What a person reads: a table for each group, a line for each group, the worst cells, and what is
//! asked and found. A time is the least of the rounds; a ratio is that of two such times, to the
//! fastest peer in the same cell, whoever that is.

use figures::machine::machine;
use figures::options::GLIBC;
use figures::statistics::{Estimate, estimate};
use figures::text::{number, table};
use figures::verdict::{Asked, Figure, Kind, figures};

use crate::cells::{Cell, Sweep};
use crate::options::{OURS, PER_CPU};

/// How many of the worst cells are shown.
const WORST: usize = 20;
/// Frees in cold memory, which are judged beside one peer: the group, the peer, the bound.
const COLD: (&str, &str, f64) = ("replace-400000", "mimalloc", 0.55);

/// Bytes as people say them: `10 KB`, `12000 B`.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        n if n >= 1 << 20 && n % (1 << 18) == 0 => format!("{} MB", n as f64 / f64::from(1 << 20)),
        n if n >= 1 << 10 && n % (1 << 10) == 0 => format!("{} KB", n >> 10),
        n => format!("{n} B"),
    }
}

/// The geometric mean; nothing of none.
fn mean(ratios: impl Iterator<Item = f64>) -> Option<Estimate> {
    estimate(&ratios.map(|ratio| vec![ratio]).collect::<Vec<_>>())
}

fn shown(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"))
}

/// Those of ours that took part: name and place.
fn ours(sweep: &Sweep) -> Vec<(&'static str, usize)> {
    [OURS, PER_CPU].into_iter().filter_map(|name| Some((name, sweep.allocator(name)?))).collect()
}

/// The ratios of cells to the best peer of each, the worst first: the ratio, whose the best time
/// is, the cell.
fn ratios<'a>(sweep: &'a Sweep, cells: &[&'a Cell], at: usize) -> Vec<(f64, &'a str, &'a Cell)> {
    let ratio = |cell: &&'a Cell| sweep.to_best(cell, at).map(|(ratio, peer)| (ratio, peer, *cell));
    let mut all: Vec<_> = cells.iter().filter_map(ratio).collect();
    all.sort_by(|one, other| other.0.total_cmp(&one.0));
    all
}

fn to_glibc(sweep: &Sweep, cells: &[&Cell], at: usize) -> Option<Estimate> {
    let glibc = sweep.allocator(GLIBC)?;
    mean(cells.iter().filter_map(|cell| Some(cell.least(at)? / cell.least(glibc)?)))
}

fn of_threads(sweep: &Sweep, threads: u32) -> Vec<&Cell> {
    sweep.cells.iter().filter(|cell| cell.threads == threads).collect()
}

/// Those that there are cells of.
pub(crate) fn numbers_of_threads(sweep: &Sweep) -> Vec<u32> {
    let mut all: Vec<u32> = sweep.cells.iter().map(|cell| cell.threads).collect();
    all.dedup();
    all
}

pub(crate) fn threads_text(threads: u32) -> String {
    if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") }
}

/// What is asked and found.
pub(crate) fn judge(sweep: &Sweep) -> Vec<Figure> {
    let mut all = Vec::new();
    for threads in numbers_of_threads(sweep) {
        let cells = of_threads(sweep, threads);
        let (asked, asked_worst) = if threads == 1 { (1.0, 1.3) } else { (1.1, 1.5) };
        for (name, at) in ours(sweep) {
            let ratios = ratios(sweep, &cells, at);
            let Some((worst, peer, cell)) = ratios.first() else { continue };
            let who = format!("{}, {name}", threads_text(threads));
            let mut figure = |what: String, asked, estimate| {
                all.push(Figure::new(format!("{who}: {what}"), asked, "x", Kind::Middle, estimate));
            };
            let best = mean(ratios.iter().map(|(ratio, ..)| *ratio));
            let count = ratios.len();
            let what = format!("geomean of {count} cells, to the best peer in each");
            figure(what, Asked::AtMost(asked), best);
            let what = format!("worst cell, {} {}, to {peer}", cell.group, bytes(cell.bytes));
            figure(what, Asked::AtMost(asked_worst), Some(Estimate::single(*worst)));
            figure("geomean to glibc".to_owned(), Asked::Nothing, to_glibc(sweep, &cells, at));
            let (group, peer, bound) = COLD;
            let ratio = |cell: &&Cell| Some(cell.least(at)? / cell.least(sweep.allocator(peer)?)?);
            let cold = cells.iter().filter(|cell| cell.group == group).find_map(ratio);
            if let Some(ratio) = cold {
                let what = format!("{group}, to {peer}");
                figure(what, Asked::AtMost(bound), Some(Estimate::single(ratio)));
            }
        }
    }
    all
}

/// The cells of a group under each allocator that was measured there.
fn group_table(sweep: &Sweep, cells: &[&Cell]) -> String {
    let took_part = |at: &usize| cells.iter().any(|cell| !cell.ns[*at].is_empty());
    let columns: Vec<usize> = (0..sweep.allocators.len()).filter(took_part).collect();
    let ours: Vec<_> = ours(sweep).into_iter().filter(|(_, at)| columns.contains(at)).collect();
    let mut head = vec!["ns"];
    head.extend(columns.iter().map(|&at| sweep.allocators[at].as_str()));
    let ratios: Vec<String> = ours.iter().map(|(name, _)| format!("{name} to the best")).collect();
    head.extend(ratios.iter().map(String::as_str));
    let row = |cell: &&Cell| {
        let times = columns.iter().map(|&at| cell.least(at).map_or("-".to_owned(), number));
        let ratios = ours.iter().map(|&(_, at)| shown(sweep.to_best(cell, at).map(|(r, _)| r)));
        [bytes(cell.bytes)].into_iter().chain(times).chain(ratios).collect()
    };
    table(&head, &cells.iter().map(row).collect::<Vec<Vec<String>>>())
}

/// For each group the means, and its worst cell.
fn summary(sweep: &Sweep, threads: u32, (name, at): (&str, usize)) -> String {
    let mut rows = Vec::new();
    for group in sweep.groups().into_iter().filter(|group| group.0 == threads) {
        let cells = sweep.of(group);
        let ratios = ratios(sweep, &cells, at);
        let Some((worst, peer, cell)) = ratios.first() else { continue };
        let mean = |estimate: Option<Estimate>| shown(estimate.map(|estimate| estimate.value));
        rows.push(vec![
            group.1.to_owned(),
            mean(self::mean(ratios.iter().map(|(ratio, ..)| *ratio))),
            mean(to_glibc(sweep, &cells, at)),
            format!("{worst:.2}: {}, to {peer}", bytes(cell.bytes)),
        ]);
    }
    let head = format!("{name}, {}", threads_text(threads));
    table(&[&head, "geomean to the best", "to glibc", "worst cell"], &rows)
}

/// The worst cells.
fn worst(sweep: &Sweep, threads: u32, name: &str, ratios: Vec<(f64, &str, &Cell)>) -> String {
    let at = sweep.allocator(name);
    let row = |(ratio, peer, cell): (f64, &str, &Cell)| {
        let time = |at: Option<usize>| at.and_then(|at| cell.least(at)).map_or("-".into(), number);
        let cell = format!("{} {}", cell.group, bytes(cell.bytes));
        vec![cell, shown(Some(ratio)), time(at), format!("{peer} {}", time(sweep.allocator(peer)))]
    };
    let rows: Vec<Vec<String>> = ratios.into_iter().take(WORST).map(row).collect();
    let head = format!("worst cells of {name}, {}", threads_text(threads));
    table(&[&head, "to the best", "ns", "the best"], &rows)
}

/// All of it, in Markdown.
pub(crate) fn text(sweep: &Sweep, judged: &[Figure]) -> String {
    let mut text = format!("{}.\n\n", machine());
    for group in sweep.groups() {
        let table = group_table(sweep, &sweep.of(group));
        text += &format!("### {}, {}\n\n{table}", group.1, threads_text(group.0));
    }
    for threads in numbers_of_threads(sweep) {
        for ours in ours(sweep) {
            let ratios = ratios(sweep, &of_threads(sweep, threads), ours.1);
            if !ratios.is_empty() {
                text += &summary(sweep, threads, ours);
                text += &worst(sweep, threads, ours.0, ratios);
            }
        }
    }
    text += &figures(judged);
    for (who, what) in &sweep.failures {
        text += &format!("- FAILED: {who}, {what}\n");
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Three cells of one group, by one thread.
    pub(crate) fn made_up() -> Sweep {
        let names = [OURS, PER_CPU, "slow", "<fast>", GLIBC];
        let allocators = names.map(str::to_owned);
        let cell = |bytes: u64, ours: &[f64]| Cell {
            threads: 1,
            group: "malloc".to_owned(),
            bytes,
            ns: vec![ours.to_vec(), vec![], vec![20.0, 30.0], vec![10.0, 12.0], vec![40.0]],
        };
        let cells = vec![cell(16, &[5.0, 6.0]), cell(10_240, &[90.0, 20.0]), cell(12_000, &[10.0])];
        Sweep { allocators: allocators.to_vec(), cells, ..Sweep::default() }
    }

    #[test]
    fn the_least_is_compared_with_the_best_peer() {
        let sweep = made_up();
        let judged = judge(&sweep);
        let rows: Vec<_> = judged.iter().map(|figure| figure.cells()).collect();
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[0][2..], ["1x", "met"]);
        assert!(rows[1][0].ends_with("worst cell, malloc 10 KB, to <fast>"), "{rows:?}");
        assert_eq!(rows[1][1..], ["<= 1.3x", "2x", "**MISSED**"]);
        assert_eq!(rows[2][2..], ["0.250x", ""]);
    }

    #[test]
    fn frees_in_cold_memory_are_judged_beside_one_peer() {
        let mut sweep = made_up();
        sweep.allocators[2] = COLD.1.to_owned();
        sweep.cells[1].group = COLD.0.to_owned();
        let judged = judge(&sweep);
        let rows: Vec<_> = judged.iter().map(|figure| figure.cells()).collect();
        assert!(rows[3][0].ends_with("replace-400000, to mimalloc"), "{rows:?}");
        assert_eq!(rows[3][1..], ["<= 0.55x", "1x", "**MISSED**"]);
    }

    #[test]
    fn tables_have_who_was_measured() {
        let mut sweep = made_up();
        sweep.failures.push(("slow".into(), "calloc, 1 thread".into()));
        let text = text(&sweep, &judge(&sweep));
        assert!(
            text.contains("| ns | heapwright | slow | <fast> | glibc | heapwright to the best |")
        );
        assert!(text.contains("| 10 KB | 20.0 | 20.0 | 10.0 | 40.0 | 2.00 |"), "{text}");
        assert!(text.contains("- FAILED: slow, calloc, 1 thread\n"));
        assert!(sweep.is_sound());
    }

    #[test]
    fn bytes_are_as_people_say_them() {
        let said = [16, 8000, 10_240, 1 << 20, (1 << 20) * 5 / 4, 1_228_800].map(bytes);
        assert_eq!(said, ["16 B", "8000 B", "10 KB", "1 MB", "1.25 MB", "1200 KB"]);
    }
}
