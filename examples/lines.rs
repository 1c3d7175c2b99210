//! Test input: lines of about 60 bytes, three in ten a duplicate of an earlier one.
//!
//! ```text
//! cargo run --release --example lines -- 10000000 >lines.txt
//! cargo run --release --example lines -- 1000000 keys >keys.txt
//! ```
//!
//! With `keys`, all lines are distinct, and every second one is among the lines printed without `keys`, if those are enough.

use std::io::{self, BufWriter, Write};

use bloomline::mix;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let count: u64 = arguments.next().and_then(|count| count.parse().ok()).expect("how many lines");
    let are_keys = arguments.next().is_some();
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let mut different = 0;
    for i in 0..count {
        let number = if are_keys {
            i + if i % 2 == 0 { 0 } else { 1 << 40 }
        } else if i > 0 && mix(i) % 10 < 3 {
            mix(mix(i)) % different
        } else {
            different += 1;
            different - 1
        };
        let (host, article) = (mix(number) as u32, mix(!number));
        writeln!(out, "https://{host:08x}.example.org/article/{article:016x}?page={}", number % 90 + 10)?;
    }
    out.flush()
}
