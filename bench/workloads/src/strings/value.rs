//! The values of a script's variables.

use crate::checksum::fold;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A hash map without a random seed: the same shape in every run.
pub(super) type Table = HashMap<String, Value, BuildHasherDefault<Fnv>>;

pub(super) enum Value {
    Number(i64),
    Text(String),
    List(Vec<Value>),
    Table(Table),
}

impl Value {
    /// Appends the value as JSON, tables in the order of their names.
    pub(super) fn write(&self, to: &mut String) {
        match self {
            Self::Number(number) => to.push_str(&number.to_string()),
            Self::Text(text) => write_text(text, to),
            Self::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    to.push(if at == 0 { '[' } else { ',' });
                    item.write(to);
                }
                to.push(']');
            }
            Self::Table(fields) => {
                let mut sorted: Vec<_> = fields.iter().collect();
                sorted.sort_unstable_by_key(|&(name, _)| name);
                for (at, (name, value)) in sorted.into_iter().enumerate() {
                    to.push(if at == 0 { '{' } else { ',' });
                    write_text(name, to);
                    to.push(':');
                    value.write(to);
                }
                to.push('}');
            }
        }
    }

    /// A table's order is undefined, so the numbers of its fields are added.
    pub(super) fn count(&self) -> u64 {
        match self {
            Self::Number(number) => *number as u64,
            Self::Text(text) => hash(text),
            Self::List(items) => items.iter().map(Self::count).fold(0, fold),
            Self::Table(fields) => fields
                .iter()
                .fold(0, |sum, (name, value)| sum.wrapping_add(fold(hash(name), value.count()))),
        }
    }
}

fn write_text(text: &str, to: &mut String) {
    to.push('"');
    to.push_str(text);
    to.push('"');
}

fn hash(text: &str) -> u64 {
    let mut hasher = Fnv::default();
    hasher.write(text.as_bytes());
    hasher.finish()
}

pub(super) struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(hash("foobar"), 0x8594_4171_f739_67e8);
    }
}
