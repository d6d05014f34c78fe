//! The sites of a process's memory: its heap profile, read again with each look.
//!
//! The process is ordered to write its profile. If it does not sample yet, it is first ordered to
//! sample, and then to stop when the user leaves.

use crate::live::{Orders, Refusal, Statuses, Watched};
use crate::output::{amount, size};
use crate::report;
use crate::report::calls::from_look;
use crate::report::model::{Figure, Report, Wanted};
use crate::statistics::Folder;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use std::time::Duration;

/// The mean distance between samples, in bytes.
const PERIOD: u64 = 512 << 10;
/// The longest wait for an answer, during which the screen stands still.
const PATIENCE: Duration = Duration::from_millis(150);
/// The most sites of a heap profile, and the most calls of each.
const SITES: usize = 20;
const CALLS: usize = 4;

#[derive(Default)]
pub(super) struct Sites {
    /// The process on the screen, and the right to give orders to it, which is acquired at a look.
    process: Option<u32>,
    orders: Option<Orders>,
    /// Whether the process samples by this command's order.
    is_ordered: bool,
    lines: Vec<String>,
}

impl Sites {
    pub(super) fn switch(&mut self, process: Option<&Watched>, interval: Duration) {
        if self.process.is_some() {
            self.end();
        } else if let Some(process) = process {
            self.process = Some(process.seen.process.pid);
            self.look(Some(process), interval);
        }
    }

    pub(super) fn end(&mut self) {
        if let Some(orders) = self.orders.take()
            && std::mem::take(&mut self.is_ordered)
        {
            // A process that misses this order stops when its order to sample expires.
            let _ = orders.stop(PATIENCE);
        }
        self.process = None;
        self.lines.clear();
    }

    /// Reads the profile again. The next look follows after `interval`.
    pub(super) fn look(&mut self, process: Option<&Watched>, interval: Duration) {
        let (Some(pid), Some(process)) = (self.process, process) else { return };
        if process.seen.process.pid != pid {
            return;
        }
        let samples = process.seen.report.as_ref().is_some_and(|report| report.facts.sampling != 0);
        match self.read(pid, samples, interval) {
            Ok(lines) => self.lines = lines,
            Err(why) => self.lines = vec![why],
        }
    }

    fn read(&mut self, pid: u32, samples: bool, interval: Duration) -> Result<Vec<String>, String> {
        if self.orders.is_none() {
            let slot = Statuses::open().slot_of(pid).map_err(|error| error.to_string())?;
            self.orders = Orders::to(slot);
        }
        let Some(orders) = &self.orders else {
            return Err("another command is profiling this process".to_owned());
        };
        let say = |refusal| match refusal {
            Refusal::Quiet => "the process does not allocate just now".to_owned(),
            Refusal::Gone => "the process has ended".to_owned(),
            Refusal::Unknown => "the process's library is of another version".to_owned(),
            Refusal::Sandboxed => {
                "the process is in a sandbox, which might end it for writing a file".to_owned()
            }
            Refusal::Hardened => "the process is hardened, and takes no orders".to_owned(),
            Refusal::Failed | Refusal::Busy | Refusal::Taken { .. } => {
                "the process cannot be sampled".to_owned()
            }
        };
        if self.is_ordered || !samples {
            let time = Duration::from_secs(10).max(interval * 3);
            orders.sample(PERIOD, time, PATIENCE).map_err(say)?;
            self.is_ordered = true;
        }
        let folder = Folder::quietly().map_err(|error| error.to_string())?;
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

/// Returns a heading, and the largest sites, each with its innermost calls.
fn sites(report: &Report) -> Vec<String> {
    let Some(profile) = report.checks().rev().find_map(|check| check.profile.as_ref()) else {
        return vec!["nothing was sampled yet".to_owned()];
    };
    let live = profile.total(|site| site.live);
    let mut sites: Vec<_> = profile.sites.iter().filter(|site| site.live.bytes > 0).collect();
    sites.sort_by_key(|site| std::cmp::Reverse(site.live.bytes));
    let mut lines = vec![format!("live memory, estimated from samples: {}", amount(live))];
    for site in sites.iter().take(SITES) {
        let calls = from_look(&report.stacks, site.stack).take(CALLS).map(|call| call.name());
        let calls = calls.collect::<Vec<_>>().join(" < ");
        let (bytes, error) = (size(site.live.bytes), size(site.live_error));
        lines.push(format!("  {bytes:>10} ± {error:>9}  {calls}"));
    }
    lines
}
