//! The screen of `heapwright top`: a table of processes, or one process in full.
//!
//! ```text
//!   every interval   look -> history
//!   every key        selects the view and the order
//!   either           redraws the screen: `list` or `one`
//! ```
//!
//! A second thread does all this. The second thread may hang if the terminal has gone or takes no
//! more bytes. The first thread waits for the second thread's end, for the end of the terminal, and
//! for signals; it can end the command without the second thread.
//!
//! Drawing writes only changes, so a slow terminal is no problem. A longer pause follows a slow
//! look. A signal that ends the command, or a panic, restores the terminal.

mod list;
mod one;
mod sites;

use crate::live::{History, Statuses, Watched, look};
use crate::output::Look;
use crate::output::top::Column;
use crate::process::{Exit, interrupt};
use anyhow::Context;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::terminal::disable_raw_mode;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::{DefaultTerminal, Frame};
use sites::Sites;
use std::io::{self, IsTerminal};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

#[derive(Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) process: Option<u32>,
    pub(crate) interval: Duration,
    pub(crate) sort: Column,
}

struct State {
    history: History,
    look: Look,
    /// The process shown alone, if any.
    process: Option<u32>,
    /// The process marked in the table; its row may change.
    marked: Option<u32>,
    sort: Column,
    is_reversed: bool,
    shows_help: bool,
    sites: Sites,
}

/// The longest wait for a key, and so for the notice of a signal.
const PATIENCE: Duration = Duration::from_millis(100);

/// The time that the screen has to end after a signal.
const GRACE: Duration = Duration::from_millis(300);

/// Returns when the user ends the screen, a signal comes, or the terminal has gone.
pub(crate) fn run(settings: Settings) -> anyhow::Result<Exit> {
    interrupt::notice();
    let (ended, ends) = io::pipe().context("cannot watch the screen")?;
    let screen = thread::spawn(move || {
        let _ends = ends;
        show(&settings)
    });
    match wait(&ended) {
        None => screen.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        Some(signal) => {
            // All other ways to restore the terminal write to it.
            let _ = disable_raw_mode();
            Ok(Exit::Signal(signal))
        }
    }
}

/// Waits for the screen's end. Returns the signal with which to end if the terminal has gone, or if
/// a signal came and the screen has not ended.
fn wait(ended: &io::PipeReader) -> Option<i32> {
    let place = |fd| libc::pollfd { fd, events: 0, revents: 0 };
    // Keys come from standard input or, failing that, from the output's terminal.
    let input = if io::stdin().is_terminal() { libc::STDIN_FILENO } else { -1 };
    let mut places = [libc::STDOUT_FILENO, input, ended.as_raw_fd()].map(place);
    let mut asked_at = None;
    loop {
        let (count, patience) = (places.len() as libc::nfds_t, PATIENCE.as_millis() as i32);
        // SAFETY: the array has `count` elements and outlives the call.
        unsafe { libc::poll(places.as_mut_ptr(), count, patience) };
        let [output, input, screen] = places
            .map(|place| place.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0);
        if output || input {
            return Some(libc::SIGHUP);
        }
        if screen {
            return None;
        }
        if let Some(signal) = interrupt::came()
            && asked_at.get_or_insert_with(Instant::now).elapsed() > GRACE
        {
            return Some(signal);
        }
    }
}

fn show(settings: &Settings) -> anyhow::Result<Exit> {
    let mut terminal = ratatui::try_init()
        // Some of the set-up may have been done.
        .inspect_err(|_| ratatui::restore())
        .context("cannot use the terminal (try --once)")?;
    let mut state = State {
        history: History::default(),
        look: Look::of(&io::stdout()),
        process: settings.process,
        marked: None,
        sort: settings.sort,
        is_reversed: false,
        shows_help: false,
        sites: Sites::default(),
    };
    let result = watch(&mut terminal, &mut state, settings.interval);
    state.sites.end();
    ratatui::restore();
    result.context("the terminal has gone")
}

fn watch(
    terminal: &mut DefaultTerminal,
    state: &mut State,
    interval: Duration,
) -> io::Result<Exit> {
    let mut next = Instant::now();
    loop {
        if let Some(signal) = interrupt::came() {
            return Ok(Exit::Signal(signal));
        }
        let now = Instant::now();
        if now >= next {
            state.history.add(look(&Statuses::open()), now);
            let shown = state.process.and_then(|pid| state.history.get(pid));
            state.sites.look(shown, interval);
            next = now + interval.max(now.elapsed() * 10);
            terminal.draw(|frame| draw(frame, state))?;
        }
        match event::poll(PATIENCE.min(next.saturating_duration_since(Instant::now()))) {
            Ok(false) => continue,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            polled => polled?,
        };
        match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                if state.is_enough(key, interval) {
                    return Ok(Exit::Code(0));
                }
            }
            // Terminals differ in how they wrap the old picture.
            Event::Resize(..) => terminal.clear()?,
            _ => continue,
        }
        terminal.draw(|frame| draw(frame, state))?;
    }
}

impl State {
    /// Returns whether the key ends the screen.
    fn is_enough(&mut self, key: KeyEvent, interval: Duration) -> bool {
        if self.shows_help {
            self.shows_help = false;
            return false;
        }
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return true,
            KeyCode::Char('q') => return true,
            KeyCode::Char('?' | 'h') => self.shows_help = true,
            KeyCode::Char('s') if self.process.is_some() => {
                let shown = self.process.and_then(|pid| self.history.get(pid));
                self.sites.switch(shown, interval);
            }
            KeyCode::Esc | KeyCode::Backspace => {
                self.sites.end();
                self.process = None;
            }
            KeyCode::Enter if self.process.is_none() => {
                self.process = self.marked().map(|watched| watched.seen.process.pid);
            }
            KeyCode::Up | KeyCode::Char('k') => self.move_mark(-1),
            KeyCode::Down | KeyCode::Char('j') => self.move_mark(1),
            KeyCode::PageUp => self.move_mark(-10),
            KeyCode::PageDown => self.move_mark(10),
            KeyCode::Home => self.move_mark(isize::MIN / 2),
            KeyCode::End => self.move_mark(isize::MAX / 2),
            KeyCode::Left | KeyCode::Char('<') => self.sort_beside(-1),
            KeyCode::Right | KeyCode::Char('>') => self.sort_beside(1),
            KeyCode::Char('r') => self.is_reversed = !self.is_reversed,
            _ => {}
        }
        false
    }

    /// Returns the processes in the order of the table.
    fn processes(&self) -> Vec<&Watched> {
        let mut all: Vec<&Watched> = self.history.all().collect();
        all.sort_by(|a, b| self.sort.key(b).total_cmp(&self.sort.key(a)));
        if self.is_reversed {
            all.reverse();
        }
        all
    }

    fn mark(&self, processes: &[&Watched]) -> usize {
        let is_marked = |watched: &&Watched| Some(watched.seen.process.pid) == self.marked;
        processes.iter().position(is_marked).unwrap_or(0)
    }

    fn marked(&self) -> Option<&Watched> {
        let processes = self.processes();
        processes.get(self.mark(&processes)).copied()
    }

    fn move_mark(&mut self, by: isize) {
        let processes = self.processes();
        let last = processes.len().saturating_sub(1);
        let to = self.mark(&processes).saturating_add_signed(by).min(last);
        self.marked = processes.get(to).map(|watched| watched.seen.process.pid);
    }

    fn sort_beside(&mut self, by: isize) {
        let at = Column::ALL.iter().position(|&column| column == self.sort).unwrap_or(0);
        let to = (at as isize + by).rem_euclid(Column::ALL.len() as isize);
        self.sort = Column::ALL[to as usize];
    }

    fn strong(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    fn drawn(&self) -> Style {
        if self.look.colour { Style::new().cyan() } else { Style::new() }
    }
}

const HELP: [&str; 13] = [
    "RESIDENT is LIVE + PARTIAL + CACHES + WAITING + METADATA + NOT OURS, if AGE is small:",
    "LIVE      blocks that the program holds (with their rounding; pools and arenas, too)",
    "PARTIAL   free or unused slots in slabs that hold live blocks",
    "CACHES    free blocks in threads' and CPUs' caches, and on their way home",
    "WAITING   free pages that go back to the kernel after the purge delay",
    "METADATA  the heap's own tables",
    "NOT OURS  code, stacks, files, other allocators",
    "AGE       of the process's own figures: one that allocates nothing says nothing",
    "",
    "up, down  mark a process      Enter  show it alone     Esc  show all",
    "left, right  sort by the column beside     r  reverse",
    "s  in a process: sample its allocations, and show where they come from; again: end",
    "q  quit                       any key: back",
];

fn draw(frame: &mut Frame<'_>, state: &State) {
    let [body, foot] =
        Layout::vertical([Constraint::Min(0), Constraint::Length(1)]).areas(frame.area());
    if state.shows_help {
        let lines = HELP.map(Line::from);
        frame.render_widget(ratatui::widgets::Paragraph::new(lines.to_vec()), body);
        return;
    }
    let keys = match state.process {
        Some(pid) => {
            one::draw(frame, body, state, pid);
            "Esc all   s sites   ? help   q quit"
        }
        None => {
            list::draw(frame, body, state);
            "Enter open   left/right sort   r reverse   ? help   q quit"
        }
    };
    frame.render_widget(Line::from(keys).style(Style::new().add_modifier(Modifier::DIM)), foot);
}
