//! A script's typical work: text in, tables of strings, text out.
//!
//! The usual work of single-threaded programs in scripting languages: it splits a line of text,
//! makes a record of it (a table of strings, numbers and lists), stores the record under a name,
//! changes some records, and writes others as text. Blocks are of all small sizes. They live for a
//! moment (pieces, keys), for a while (a log of written texts) or long (the store), and lie mixed.
//!
//! Life cycle: a store of 24,000 records with a dozen blocks each; a run does about 8,000
//! replacements and 8,000 changes, at random.

mod value;

use crate::checksum::fold;
use crate::random::Random;
use crate::{Workload, scaled, sized};
use std::collections::VecDeque;
use value::{Table, Value};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "strings",
    stands_for: "Scripts and web back ends that split, join, parse and write text and keep \
                 records in hash maps of strings: mixed small sizes with mixed lifetimes over a \
                 large store.",
    threads: 1,
    live_bytes: 50_480_000,
    operations: 4_860_000,
    run,
};

const WORDS: [&str; 24] = [
    "slab",
    "window",
    "chunk",
    "registry",
    "cache",
    "arena",
    "pool",
    "map",
    "free",
    "list",
    "mark",
    "sweep",
    "owner",
    "remote",
    "queue",
    "purge",
    "commit",
    "guard",
    "heap",
    "page",
    "class",
    "thread",
    "fork",
    "a somewhat longer piece of text than the others",
];

/// The number of written texts that are kept.
const LOG: usize = 256;

fn run(scale: u32) -> u64 {
    let mut random = Random::new(0x57);
    let mut store = Table::default();
    let mut log = VecDeque::new();
    let records = sized(scale, 24_000, 100);
    let mut sum = 0;
    for serial in 0..records {
        let record = parse_line(&line(&mut random, serial));
        store.insert(format!("record-{serial:06}"), record);
    }
    for round in 0..scaled(scale, 24_000, 200) {
        let name = format!("record-{:06}", random.below(records));
        match random.below(3) {
            0 => {
                let fresh = parse_line(&line(&mut random, round));
                if let Some(old) = store.insert(name, fresh) {
                    sum = fold(sum, old.count());
                }
            }
            1 => {
                if let Some(Value::Table(fields)) = store.get_mut(&name) {
                    edit(fields, &mut random);
                }
            }
            _ => {
                let mut text = String::new();
                if let Some(record) = store.get(&name) {
                    record.write(&mut text);
                }
                sum = text.bytes().step_by(7).fold(sum, |sum, byte| fold(sum, byte.into()));
                log.push_back(text);
                if log.len() > LOG {
                    log.pop_front();
                }
            }
        }
    }
    let texts = log.iter().map(|text| text.len() as u64).sum();
    fold(fold(sum, texts), Value::Table(store).count())
}

/// Makes a line such as `id=17;name=free list;list0=a,b,c;list1=...;note0=...`.
fn line(random: &mut Random, id: usize) -> String {
    let mut line = format!("id={id};name=");
    line.push_str(&sentence(random, 2).join(" "));
    for list in 0..random.between(2, 4) {
        let length = random.between(3, 8);
        line.push_str(&format!(";list{list}={}", sentence(random, length).join(",")));
    }
    for note in 0..random.between(1, 3) {
        let length = random.between(4, 30);
        line.push_str(&format!(";note{note}={}", sentence(random, length).join(" ")));
    }
    line
}

fn sentence(random: &mut Random, words: usize) -> Vec<&'static str> {
    (0..words).map(|_| WORDS[random.below(WORDS.len())]).collect()
}

fn parse_line(line: &str) -> Value {
    let mut fields = Table::default();
    for field in line.split(';') {
        let Some((name, text)) = field.split_once('=') else { continue };
        let value = match text.parse() {
            Ok(number) => Value::Number(number),
            Err(_) if text.contains(',') => {
                Value::List(text.split(',').map(|item| Value::Text(item.to_owned())).collect())
            }
            Err(_) => Value::Text(text.to_owned()),
        };
        fields.insert(name.to_owned(), value);
    }
    Value::Table(fields)
}

fn edit(fields: &mut Table, random: &mut Random) {
    // Edits in the order of the names, because a table has no defined order.
    let mut names: Vec<String> = fields.keys().cloned().collect();
    names.sort_unstable();
    for name in names {
        match fields.get_mut(&name) {
            Some(Value::Number(number)) => *number += 1,
            Some(Value::Text(text)) => {
                let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
                words.reverse();
                *text = words.join(" ");
            }
            Some(Value::List(items)) if items.len() < 12 => {
                items.push(Value::Text(WORDS[random.below(WORDS.len())].to_uppercase()));
            }
            Some(Value::List(items)) => items.truncate(2),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_becomes_a_record_and_text_again() {
        let record = parse_line("name=free list;id=17;tags=a,b");
        let mut text = String::new();
        record.write(&mut text);
        assert_eq!(text, r#"{"id":17,"name":"free list","tags":["a","b"]}"#);
    }

    #[test]
    fn an_edit_changes_every_kind_of_value() {
        let Value::Table(mut fields) = parse_line("name=free list;id=17;tags=a,b") else {
            panic!("not a table")
        };
        edit(&mut fields, &mut Random::new(1));
        let mut text = String::new();
        Value::Table(fields).write(&mut text);
        assert!(text.starts_with(r#"{"id":18,"name":"list free","tags":["a","b",""#), "{text}");
    }
}
