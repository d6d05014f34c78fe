// Rust's threads, channels, hash maps and strings, on std's System allocator.
include!("../corpus.rs");
use std::collections::HashMap;
use std::sync::{Arc, Mutex, mpsc};

fn main() {
    let table = Arc::new(Mutex::new(HashMap::<String, Vec<u64>>::new()));
    let (send, receive) = mpsc::channel::<Box<[u8]>>();
    let threads: Vec<_> = (0..8u64)
        .map(|t| {
            let (table, send) = (Arc::clone(&table), send.clone());
            std::thread::spawn(move || {
                for i in 0..500u64 {
                    table.lock().unwrap().entry(format!("key {}", i % 37)).or_default().push(t * i);
                    send.send(vec![t as u8; (i * 13 % 2000) as usize].into()).unwrap();
                }
            })
        })
        .collect();
    drop(send);
    let bytes: usize = receive.iter().map(|block| block.len()).sum();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let caught = std::panic::catch_unwind(|| std::panic::resume_unwind(Box::new(vec![1u8; 1000])));
    println!("{bytes} {} {}", table.lock().unwrap().len(), caught.is_err());
}
