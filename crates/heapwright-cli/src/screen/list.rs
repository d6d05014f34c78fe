//! Draws the table of processes.

use super::State;
use crate::live::Watched;
use crate::output::size;
use crate::output::top::{Column, NONE};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState, Wrap};

/// The order in which a narrow screen drops columns.
const LEAST_WANTED: [Column; 9] = [
    Column::Limit,
    Column::Age,
    Column::Metadata,
    Column::Model,
    Column::Faults,
    Column::Waiting,
    Column::Caches,
    Column::Partial,
    Column::NotOurs,
];

/// The least letters of a command that are shown.
const COMMAND: usize = 16;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let [head, body] = Layout::vertical([Constraint::Length(2), Constraint::Min(0)]).areas(area);
    let processes = state.processes();
    frame.render_widget(Line::from(summary(&processes)).style(state.strong()), head);
    if processes.is_empty() {
        frame.render_widget(Paragraph::new(NONE).wrap(Wrap { trim: true }), body);
        return;
    }
    let columns = columns(usize::from(area.width));
    let side = |column: Column| {
        if column.is_number() { Alignment::Right } else { Alignment::Left }
    };
    let cell = |column: Column, text: String| Cell::from(Text::from(text).alignment(side(column)));
    let header = columns.iter().map(|&column| {
        let title = cell(column, column.title().to_owned());
        let underlined = Style::new().add_modifier(Modifier::UNDERLINED);
        if column == state.sort { title.style(underlined) } else { title }
    });
    let rows = processes
        .iter()
        .map(|watched| Row::new(columns.iter().map(|&column| cell(column, column.text(watched)))));
    let widths = columns.iter().map(|&column| match column {
        Column::Command => Constraint::Fill(1),
        _ => Constraint::Length(column.width() as u16),
    });
    let table = Table::new(rows, widths)
        .header(Row::new(header).style(state.strong()))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut place = TableState::default().with_selected(state.mark(&processes));
    frame.render_stateful_widget(table, body, &mut place);
}

fn summary(processes: &[&Watched]) -> String {
    let resident = processes.iter().map(|watched| watched.seen.process.resident).sum();
    let live =
        |watched: &&Watched| watched.seen.report.as_ref().map_or(0, |report| report.parts.live);
    let live = processes.iter().map(live).sum();
    let plural = if processes.len() == 1 { "process" } else { "processes" };
    format!(
        "heapwright top: {} {plural}, {} resident, {} of it live",
        processes.len(),
        size(resident),
        size(live)
    )
}

/// Returns the columns that fit into this many letters.
fn columns(width: usize) -> Vec<Column> {
    let mut columns = Column::ALL.to_vec();
    let needed = |columns: &[Column]| {
        columns.iter().map(|column| column.width() + 1).sum::<usize>() + COMMAND
    };
    for least in LEAST_WANTED {
        if needed(&columns) <= width {
            break;
        }
        columns.retain(|&column| column != least);
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_screens_have_fewer_columns() {
        assert_eq!(columns(200), Column::ALL);
        assert_eq!(columns(10), [Column::Pid, Column::Resident, Column::Live, Column::Command]);
        let at_80 = columns(80);
        assert!(at_80.contains(&Column::Partial) && !at_80.contains(&Column::Limit), "{at_80:?}");
    }
}
