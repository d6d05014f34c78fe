//! Draws one process: parts, facts, live and resident bytes over time, and stacks that allocate.

use super::State;
use crate::live::{Point, Watched};
use crate::output::size;
use crate::output::top::{facts, heading, parts};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline};

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &State, pid: u32) {
    let Some(watched) = state.history.get(pid) else {
        frame.render_widget(Line::from(format!("process {pid} has ended")), area);
        return;
    };
    let facts = facts(watched);
    let parts = watched.seen.report.as_ref().map(|report| parts(&report.parts)).unwrap_or_default();
    let [head, told, divided, drawn, sites] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(facts.len() as u16 + 1),
        Constraint::Length(parts.len() as u16 + 1),
        Constraint::Length(7),
        Constraint::Min(0),
    ])
    .areas(area);
    let heading = heading(&watched.seen.process, watched.seen.report.as_ref());
    frame.render_widget(Line::from(heading).style(state.strong()), head);
    let lines: Vec<Line<'_>> = facts
        .into_iter()
        .map(|(what, value)| Line::from(format!("  {what:<18} {value}")))
        .collect();
    frame.render_widget(Paragraph::new(lines), told);
    draw_parts(frame, divided, state, watched, &parts);
    draw_lines(frame, drawn, state, watched);
    state.sites.draw(frame, sites, state.strong());
}

fn draw_parts(
    frame: &mut Frame<'_>,
    area: Rect,
    state: &State,
    watched: &Watched,
    parts: &[(&'static str, u64)],
) {
    let whole = watched.seen.process.resident.max(1);
    let room = usize::from(area.width).saturating_sub(40).min(60);
    let lines: Vec<Line<'_>> = parts
        .iter()
        .map(|&(name, bytes)| {
            let share = bytes as f64 / whole as f64;
            let letters = (share * room as f64).round() as usize;
            let full = if state.look.unicode { "█" } else { "#" };
            Line::from(vec![
                Span::from(format!("  {name:<18} {:>10} {:>5.1} % ", size(bytes), share * 100.0)),
                Span::styled(full.repeat(letters.min(room)), state.drawn()),
            ])
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), area);
}

/// Draws the course of live and resident bytes, the last look at the right.
fn draw_lines(frame: &mut Frame<'_>, area: Rect, state: &State, watched: &Watched) {
    let [resident, live] =
        Layout::vertical([Constraint::Length(3), Constraint::Length(3)]).areas(area);
    let most = watched.points.iter().map(|point| point.resident).max().unwrap_or(0).max(1);
    for (name, area, is_live) in [("resident", resident, false), ("live", live, true)] {
        let of = |point: &Point| if is_live { point.live } else { point.resident };
        let [label, graph] =
            Layout::horizontal([Constraint::Length(13), Constraint::Min(0)]).areas(area);
        let now = watched.points.back().map_or(0, of);
        let text = vec![Line::from(format!("  {name}")), Line::from(format!("  {}", size(now)))];
        frame.render_widget(Paragraph::new(text), label);
        let kept = watched.points.len().saturating_sub(usize::from(graph.width));
        let data: Vec<u64> = watched.points.iter().skip(kept).map(of).collect();
        if state.look.unicode {
            let line = Sparkline::default().data(data).max(most).style(state.drawn());
            frame.render_widget(line, graph);
        } else {
            frame.render_widget(letters(&data, most), graph);
        }
    }
}

/// Returns a graph of letters, for terminals without block characters.
fn letters(data: &[u64], most: u64) -> Paragraph<'static> {
    const ROWS: u64 = 3;
    let row = |row: u64| {
        let text: String = data
            .iter()
            .map(|&value| {
                // Each row has two halves.
                let height =
                    (value as u128 * u128::from(2 * ROWS)).div_ceil(u128::from(most)) as u64;
                match height.saturating_sub(2 * (ROWS - 1 - row)) {
                    0 => ' ',
                    1 => '.',
                    _ => '|',
                }
            })
            .collect();
        Line::from(text)
    };
    Paragraph::new((0..ROWS).map(row).collect::<Vec<_>>())
}
