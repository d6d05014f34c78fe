//! Reads a JSON document from a file, parses it into a tree, walks it, removes parts and writes it
//! again. Every string, array and map node is a block of its own, allocated in document order and
//! freed in tree order. Prints counts and a checksum of the written text.

use std::process::ExitCode;

use serde_json::Value;

#[derive(Default)]
struct Counts {
    nodes: u64,
    deepest: u64,
    text_bytes: u64,
    sum: f64,
}

fn walk(value: &Value, depth: u64, counts: &mut Counts) {
    counts.nodes += 1;
    counts.deepest = counts.deepest.max(depth);
    match value {
        Value::String(text) => counts.text_bytes += text.len() as u64,
        Value::Number(number) => counts.sum += number.as_f64().unwrap_or(0.0),
        Value::Array(items) => items.iter().for_each(|item| walk(item, depth + 1, counts)),
        Value::Object(map) => map.values().for_each(|item| walk(item, depth + 1, counts)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Drops some fields, and renames the others: freed blocks lie among live ones.
fn thin(value: Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(thin).collect()),
        Value::Object(map) => Value::Object(
            map.into_iter()
                .filter(|(key, item)| !item.is_null() && key != "note")
                .map(|(key, item)| (format!("x-{key}"), thin(item)))
                .collect(),
        ),
        other => other,
    }
}

/// Returns the FNV-1a hash, 64 bits.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn run(path: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    let tree: Value = serde_json::from_str(&text).map_err(|e| format!("{path}: {e}"))?;
    drop(text);
    let mut counts = Counts::default();
    walk(&tree, 0, &mut counts);
    let copy = tree.clone();
    let thinned = thin(tree);
    let written = serde_json::to_string(&thinned).map_err(|e| e.to_string())?;
    let Counts { nodes, deepest, text_bytes, sum } = counts;
    println!("{nodes} nodes, {deepest} deep, {text_bytes} bytes of text, sum {sum}");
    println!(
        "{} bytes written, {:016x}, same {}",
        written.len(),
        checksum(written.as_bytes()),
        copy == thinned
    );
    Ok(())
}

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: json-tree FILE");
        return ExitCode::from(2);
    };
    match run(&path) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("json-tree: {message}");
            ExitCode::FAILURE
        }
    }
}
