//! A server with a heap profile behind an address:
//!
//! ```text
//! cargo run --release --features debug --example profile_endpoint -- 127.0.0.1:8080
//! curl -s 127.0.0.1:8080/page/7 >/dev/null            pages are kept, so memory grows
//! curl -s 127.0.0.1:8080/heap >heap.record && heapwright report heap.record
//! ```
//!
//! The endpoint is [`heap_profile`]: the record goes to the socket as it is written, without a
//! buffer. A real server shows it to its operators only.
#![allow(clippy::disallowed_types, clippy::disallowed_macros, reason = "an ordinary program")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Mutex;
use std::thread;

#[global_allocator]
static HEAP: heapwright::Heapwright = heapwright::Heapwright;

static PAGES: Mutex<Option<HashMap<String, String>>> = Mutex::new(None);

fn heap_profile(mut client: TcpStream) -> std::io::Result<()> {
    client.write_all(b"HTTP/1.0 200 OK\r\nContent-Type: application/octet-stream\r\n\r\n")?;
    if heapwright::profile::write(client.as_raw_fd()) {
        return Ok(());
    }
    Err(std::io::Error::other("the client did not take all of the profile"))
}

fn page(mut client: TcpStream, path: &str) -> std::io::Result<()> {
    let mut pages = PAGES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let pages = pages.get_or_insert_default();
    let text = pages.entry(path.to_owned()).or_insert_with(|| format!("{path}\n").repeat(2000));
    write!(client, "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len())
}

fn serve(client: TcpStream) -> std::io::Result<()> {
    let mut request = String::new();
    let mut lines = BufReader::new(client.try_clone()?);
    lines.read_line(&mut request)?;
    // If a connection is closed with unread bytes, the kernel resets it.
    while lines.by_ref().lines().next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
    {
    }
    match request.split(' ').nth(1) {
        Some("/heap") => heap_profile(client),
        Some(path) => page(client, path),
        None => Ok(()),
    }
}

fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    heapwright::profile::begin(64 << 10);
    let listener = TcpListener::bind(address)?;
    println!("{}", listener.local_addr()?);
    for client in listener.incoming() {
        let client = client?;
        thread::spawn(move || {
            if let Err(error) = serve(client) {
                eprintln!("{error}");
            }
        });
    }
    Ok(())
}
