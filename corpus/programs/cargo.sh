# ways: preload long
# main: $(rustup which cargo 2>/dev/null || command -v cargo)
# blank: s/finished in [0-9.]+s/finished/; s/[0-9]+ms|[0-9.]+s\b//g
unset CARGO_TARGET_DIR RUSTFLAGS
# rustc carries a jemalloc of its own.
cargo new --quiet --vcs none --lib small 2>&1 && cd small && cat >src/lib.rs <<'RS'
//! A small crate with generics and a test.
use std::collections::{BTreeMap, HashMap};
macro_rules! table { ($($name:ident),*) => { $( #[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)] pub struct $name { pub a: u64, pub b: String, pub c: Vec<u8> } )* } }
table!(A, B, C, D, E, F, G, H, I, J, K, L);
pub fn count(text: &str) -> BTreeMap<String, usize> {
    let mut all: HashMap<String, usize> = HashMap::new();
    for word in text.split_whitespace() { *all.entry(word.to_owned()).or_default() += 1; }
    all.into_iter().collect()
}
#[cfg(test)] mod tests { #[test] fn counts() { let t: String = (0..10000).map(|i| format!("w{} ", i % 97)).collect(); assert_eq!(super::count(&t).len(), 97); }
    #[test] fn threads() { let v: Vec<_> = (0..8).map(|n| std::thread::spawn(move || (0..2000).map(|i| vec![i as u8; i % 300 + n]).map(|v| v.len()).sum::<usize>())).collect(); assert!(v.into_iter().all(|h| h.join().unwrap() > 0)); } }
RS
printf 'fn main() { let t: String = (0..100000).map(|i| format!("{} ", i %% 1009)).collect(); println!("{:?}", small::count(&t).iter().take(3).collect::<Vec<_>>()); std::process::exit(4) }\n' >src/main.rs
cargo build --offline --quiet && cargo test --offline --quiet 2>&1 | grep 'test result' && cargo run --offline --quiet --release; echo "exit $?"
echo 'pub fn bad() -> u32 { "text" }' >>src/lib.rs; cargo check --offline --quiet
