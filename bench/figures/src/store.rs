//! The data file of all figures, and the pages that are rendered from it.
//!
//! ```text
//! docs/figures.json
//!   sections: NAME -> { command, machine, commit, date, body: [paragraph or table] }
//!   readme:   [ { what, page, section, ours: [row, column],
//!                 peers: [[row, column, name?]], peer? } ]
//! ```
//!
//! A page names a section by `<!-- figures:NAME -->`. The text up to `<!-- /figures:NAME -->` is
//! rendered, and a test refuses every other text. Each row of `readme` names cells of a section: a
//! row by its first cell, a column by its number. `peer` is the text if no peer has a number.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::process::Command;

use ::figures::machine::machine;
use serde_json::{Value, json};

const DATA: &str = "docs/figures.json";
/// The widest line of a page, tables aside.
const WIDTH: usize = 100;
/// Stands for the commit of figures without one. `figures check` refuses such figures.
const UNSTATED: &str = "unstated";
const DAY: u64 = 86400;

/// The origin of a measurement: its command, machine, commit and day.
#[derive(clap::Args)]
pub(crate) struct Origin {
    /// The command that measured
    #[arg(long)]
    command: String,
    /// The machine that ran it; by default this one
    #[arg(long)]
    machine: Option<String>,
    /// The commit that was measured; by default the one that is checked out
    #[arg(long)]
    commit: Option<String>,
    /// The day; by default today
    #[arg(long)]
    date: Option<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the output of a command without its last line end; `None` if the command fails.
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).current_dir(root()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}

impl Origin {
    fn of_section(self, body: Vec<Value>) -> Result<Value, String> {
        let commit = match self.commit {
            Some(commit) => commit,
            None => commit()?,
        };
        let date = self.date.or_else(|| said("date", &["-u", "+%F"])).ok_or("there is no date")?;
        let tools = [("getconf", "GNU_LIBC_VERSION"), ("cc", "--version"), ("rustc", "--version")];
        let tools = tools.map(|(tool, what)| said(tool, &[what]).unwrap_or_default());
        let tools = tools.map(|said| said.lines().next().unwrap_or_default().to_owned());
        let machine =
            self.machine.unwrap_or_else(|| format!("{}; {}", machine(), tools.join(", ")));
        Ok(json!({ "command": self.command, "machine": machine, "commit": commit, "date": date,
                   "body": body }))
    }
}

fn commit() -> Result<String, String> {
    let head = said("git", &["rev-parse", "--short=8", "HEAD"]).ok_or("git names no commit")?;
    let pages = ["status", "--porcelain", "-uno", "--", ".", ":!docs", ":!*.md"];
    let changes = said("git", &pages).ok_or("git names no changes")?;
    Ok(if changes.is_empty() { head } else { head + "-dirty" })
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

fn data() -> Result<Value, String> {
    let text = read_to_string(root().join(DATA)).map_err(|e| format!("cannot read {DATA}: {e}"))?;
    serde_json::from_str(&text).map_err(|e| format!("{DATA}: {e}"))
}

/// Replaces a section by a command's output, and renders the pages.
pub(crate) fn store(section: &str, origin: Origin, markdown: &str) -> Result<bool, String> {
    let mut body = parts(markdown);
    body.retain(|part| *part != format!("{}.", machine()));
    if !body.iter().any(Value::is_object) {
        return Err(format!("what is to be stored as {section} has no table"));
    }
    let mut data = data()?;
    data["sections"][section] = origin.of_section(body)?;
    write(&root().join(DATA), &(shown(&data, 0) + "\n"))?;
    render()
}

fn shown(value: &Value, depth: usize) -> String {
    let (open, close, lines): (_, _, Vec<String>) = match value {
        Value::Array(list) if list.iter().any(|one| one.is_array() || one.is_object()) => {
            ('[', ']', list.iter().map(|one| shown(one, depth + 1)).collect())
        }
        Value::Object(map) => {
            let line = |(name, one): (&String, &Value)| {
                format!("{}: {}", json!(name), shown(one, depth + 1))
            };
            ('{', '}', map.iter().map(line).collect())
        }
        flat => return flat.to_string(),
    };
    let indent = " ".repeat(depth + 1);
    format!("{open}\n{indent}{}\n{}{close}", lines.join(&format!(",\n{indent}")), " ".repeat(depth))
}

fn parts(markdown: &str) -> Vec<Value> {
    let mut parts: Vec<Value> = Vec::new();
    let mut between = true;
    for line in markdown.lines().map(str::trim_end) {
        let cells = || -> Vec<&str> {
            line.trim_matches('|').split(" | ").flat_map(|c| c.split('|')).map(str::trim).collect()
        };
        match parts.last_mut() {
            _ if line.is_empty() => between = true,
            _ if line.starts_with('|') && between => {
                parts.push(json!({ "columns": cells(), "rows": [] }));
                between = false;
            }
            Some(Value::Object(table)) if line.starts_with('|') => {
                if line.contains("--") && !line.contains(|c: char| c.is_alphanumeric()) {
                    let right = cells().iter().map(|cell| cell.ends_with(':')).collect::<Vec<_>>();
                    table.insert("right".to_owned(), json!(right));
                } else if let Some(rows) = table["rows"].as_array_mut() {
                    rows.push(json!(cells()));
                }
            }
            Some(Value::String(text)) if !between && !line.starts_with("- ") => {
                text.push_str(&format!(" {}", line.trim_start()));
            }
            _ if line.starts_with('#') => {
                parts.push(json!(format!("### {}", line.trim_start_matches(['#', ' ']))));
                between = true;
            }
            _ => {
                parts.push(json!(line));
                between = false;
            }
        }
    }
    parts
}

fn word<'a>(of: &'a Value, name: &str) -> &'a str {
    of[name].as_str().unwrap_or("?")
}

fn words(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn wrapped(text: &str) -> String {
    let indent = if text.starts_with("- ") { "  " } else { "" };
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        if !lines[last].trim().is_empty() && lines[last].chars().count() + word.len() >= WIDTH {
            lines.push(format!("{indent}{word}"));
        } else {
            let space = if lines[last].is_empty() { "" } else { " " };
            lines[last] += &format!("{space}{word}");
        }
    }
    lines.join("\n") + "\n"
}

fn table(part: &Value) -> String {
    let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | ")).replace("|  ", "| ");
    let rows = part["rows"].as_array().into_iter().flatten().map(|row| line(words(row)));
    let right = part["right"].as_array().into_iter().flatten();
    let rule = right.map(|right| if right == true { "--:|" } else { "---|" });
    let rule = rule.collect::<String>();
    format!("{}|{rule}\n{}", line(words(&part["columns"])), rows.collect::<String>())
}

fn section(of: &Value) -> String {
    let [command, machine, commit, date] =
        ["command", "machine", "commit", "date"].map(|name| word(of, name));
    let commit = if commit == UNSTATED { "of an unstated commit" } else { commit };
    let mut text = wrapped(&format!("`{command}`, heapwright {commit}, {date}; {machine}."));
    let mut before = "";
    for part in of["body"].as_array().into_iter().flatten() {
        let paragraph = part.as_str().unwrap_or("");
        if !(before.starts_with("- ") && paragraph.starts_with("- ")) {
            text.push('\n');
        }
        text.push_str(&part.as_str().map_or_else(|| table(part), wrapped));
        before = paragraph;
    }
    text
}

fn cell<'a>(section: &'a Value, at: &'a Value) -> Option<(String, &'a str, &'a str)> {
    let (name, column) = (at[0].as_str()?, usize::try_from(at[1].as_u64()?).ok()?);
    section["body"].as_array()?.iter().find_map(|part| {
        let rows = part["rows"].as_array()?.iter().map(words);
        let row = rows.into_iter().find(|row| row.first() == Some(&name))?;
        let mut shown = row.get(column)?.replace("**", "");
        while let Some((before, after)) = shown.split_once(" (") {
            shown = format!("{before}{}", after.split_once(')')?.1);
        }
        Some((shown, name, *words(&part["columns"]).get(column)?))
    })
}

fn readme(data: &Value) -> Result<String, String> {
    let mut text = "| figure | heapwright | best peer | command, page | date, commit |\n\
                    |---|--:|--:|---|---|\n"
        .to_owned();
    for row in data["readme"].as_array().into_iter().flatten() {
        let of = &data["sections"][word(row, "section")];
        let what = word(row, "what");
        let missing = || format!("{DATA} has no cell for README's figure '{what}'");
        let (ours, our_row, _) = cell(of, &row["ours"]).ok_or_else(missing)?;
        let mut peers = Vec::new();
        for at in row["peers"].as_array().into_iter().flatten() {
            let Some((shown, name, column)) = cell(of, at) else { continue };
            let name = if name == our_row { column } else { name };
            let number = shown.split(' ').next().and_then(|number| number.parse::<f64>().ok());
            if let Some(number) = number {
                let name = at[2].as_str().unwrap_or(name);
                peers.push((number, format!("{shown}, {name}")));
            }
        }
        let best = peers.into_iter().min_by(|one, other| one.0.total_cmp(&other.0));
        let best = best.map_or_else(|| word(row, "peer").to_owned(), |(_, shown)| shown);
        let [command, commit, date] = ["command", "commit", "date"].map(|name| word(of, name));
        let page = word(row, "page");
        text += &format!("| {what} | {ours} | {best} | `{command}`, {page} | {date}, {commit} |\n");
    }
    Ok(text)
}

/// Returns the pages with places for figures: path, current text, rendered text.
fn pages(data: &Value) -> Result<Vec<(PathBuf, String, String)>, String> {
    let listed =
        said("git", &["ls-files", "README.md", "docs/*.md"]).ok_or("git lists no pages")?;
    let mut places: Vec<String> = Vec::new();
    let mut pages = Vec::new();
    for shown in listed.lines() {
        let path = root().join(shown);
        let page = read_to_string(&path).map_err(|e| format!("cannot read {shown}: {e}"))?;
        let (mut new, mut rest) = (String::new(), page.as_str());
        while let Some((before, after)) = rest.split_once("<!-- figures:") {
            let (name, after) = after.split_once(" -->\n").ok_or(format!("{shown}: no name"))?;
            let end = format!("<!-- /figures:{name} -->");
            let (_, after) = after.split_once(&end).ok_or(format!("{shown}: no {end}"))?;
            let text = match (name, &data["sections"][name]) {
                ("readme", _) => readme(data)?,
                (_, Value::Null) => return Err(format!("{shown}: {DATA} has no section {name}")),
                (_, of) => section(of),
            };
            new.push_str(&format!("{before}<!-- figures:{name} -->\n\n{text}\n{end}"));
            places.push(name.to_owned());
            rest = after;
        }
        new.push_str(rest);
        pages.push((shown.into(), page, new));
    }
    for (name, _) in data["sections"].as_object().into_iter().flatten() {
        if places.iter().filter(|place| *place == name).count() != 1 {
            return Err(format!("the section {name} of {DATA} must have one place in the pages"));
        }
    }
    Ok(pages)
}

pub(crate) fn render() -> Result<bool, String> {
    for (path, old, new) in pages(&data()?)? {
        if old != new {
            write(&root().join(&path), &new)?;
            eprintln!("rendered: {}", path.display());
        }
    }
    Ok(true)
}

/// Refuses figures that are too old, or whose commit is no ancestor of the checked-out one.
pub(crate) fn check(days: u64) -> Result<bool, String> {
    let data = data()?;
    let seconds = |date: &str| said("date", &["-u", "-d", date, "+%s"])?.parse::<u64>().ok();
    let now = seconds("now").ok_or("there is no date")?;
    let sections = data["sections"].as_object().into_iter().flatten();
    let mut holds = true;
    for (name, of) in sections {
        let [command, commit, date] = ["command", "commit", "date"].map(|field| word(of, field));
        let ancestor = said("git", &["merge-base", "--is-ancestor", commit, "HEAD"]).is_some();
        let old = seconds(date).is_none_or(|then| now.saturating_sub(then) > days * DAY);
        for (wrong, why) in [(old, "is too old"), (!ancestor, "is no ancestor of HEAD")] {
            if wrong {
                println!("{name}: {command}, {date}, {commit} {why}");
                holds = false;
            }
        }
    }
    Ok(holds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_hold_what_the_data_file_says() {
        for (path, old, new) in pages(&data().unwrap()).unwrap() {
            assert!(old == new, "{}: run `figures render`", path.display());
        }
    }

    #[test]
    fn what_is_stored_is_rendered() {
        let text = "Of one\nparagraph.\n\n| a | b |\n| --- | ---: |\n| x |  |\n- one\n- two\n";
        let of = json!({ "command": "c", "machine": "m", "commit": "1", "date": "d",
                         "body": parts(text) });
        assert_eq!(
            section(&of),
            "`c`, heapwright 1, d; m.\n\nOf one paragraph.\n\n| a | b |\n|---|--:|\n| x | |\n\n\
             - one\n- two\n"
        );
    }
}
