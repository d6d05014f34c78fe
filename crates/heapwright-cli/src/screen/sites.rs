//! Where a process's memory comes from: its heap profile, read anew with each look.
//!
//! A process that samples already is asked to write its profile; one that does not is asked to sample, and to stop when the
//! user has seen enough.

use crate::live::{Files, Orders, Refusal, Watched};
use crate::output::text::top::sites;
use crate::report;
use crate::report::model::{Figure, Wanted};
use crate::statistics::Folder;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use std::time::Duration;

/// Mean distance of samples, in bytes.
const PERIOD: u64 = 512 << 10;
/// How long an answer is waited for: the screen stands still meanwhile.
const PATIENCE: Duration = Duration::from_millis(150);

/// See the module.
#[derive(Default)]
pub(super) struct Sites {
    /// The process that is looked at.
    process: Option<u32>,
    /// Whether it samples because we have asked it to.
    is_ordered: bool,
    /// What is shown.
    lines: Vec<String>,
}

impl Sites {
    /// Begins with a process, or ends.
    pub(super) fn switch(&mut self, files: &Files, process: Option<&Watched>) {
        if self.process.is_some() {
            self.end(files);
        } else if let Some(process) = process {
            self.process = Some(process.seen.process.pid);
            self.lines = vec!["sampling begins when the process allocates".to_owned()];
            self.look(files, Some(process));
        }
    }

    /// Ends.
    pub(super) fn end(&mut self, files: &Files) {
        if let Some(pid) = self.process.take()
            && std::mem::take(&mut self.is_ordered)
            && let Ok(slot) = files.slot_of(pid)
            && let Some(orders) = Orders::to(slot)
        {
            // One that does not hear of it ends by itself.
            let _ = orders.stop(PATIENCE);
        }
        self.lines.clear();
    }

    /// Reads the profile anew.
    pub(super) fn look(&mut self, files: &Files, process: Option<&Watched>) {
        let (Some(pid), Some(process)) = (self.process, process) else { return };
        if process.seen.process.pid != pid {
            return;
        }
        let samples = process.seen.report.as_ref().is_some_and(|report| report.facts.sampling != 0);
        match self.read(files, pid, samples) {
            Ok(lines) => self.lines = lines,
            Err(why) => self.lines = vec![why],
        }
    }

    fn read(&mut self, files: &Files, pid: u32, samples: bool) -> Result<Vec<String>, String> {
        let slot = files.slot_of(pid).map_err(|error| error.to_string())?;
        let orders = Orders::to(slot)
            .ok_or_else(|| "another command profiles this process just now".to_owned())?;
        let say = |refusal| match refusal {
            Refusal::Quiet => "the process does not allocate just now".to_owned(),
            Refusal::Gone => "the process has ended".to_owned(),
            Refusal::Unknown => "the process's library is of another version".to_owned(),
            Refusal::Failed | Refusal::Busy => "the process cannot be sampled".to_owned(),
        };
        if self.is_ordered || !samples {
            orders.sample(PERIOD, PATIENCE).map_err(say)?;
            self.is_ordered = true;
        }
        let folder = Folder::new().map_err(|error| error.to_string())?;
        let file = folder.path().join("profile.1");
        orders.write(&file, PATIENCE).map_err(say)?;
        let wanted = Wanted { figure: Figure::Live, ..Wanted::default() };
        let options =
            report::Options { everything: true, wanted, quiet: true, ..report::Options::default() };
        let made = report::make(&[file], &options).map_err(|error| error.to_string())?;
        Ok(sites(&made.report))
    }

    pub(super) fn draw(&self, frame: &mut Frame<'_>, area: Rect, strong: Style) {
        let Some((first, rest)) = self.lines.split_first() else { return };
        let mut lines = vec![Line::from(first.as_str()).style(strong)];
        lines.extend(rest.iter().map(|line| Line::from(line.as_str())));
        frame.render_widget(Paragraph::new(lines), area);
    }
}
