//! Test input: an archive of log files, each compressed, of 10 to 100,000 distinct words.
//!
//! ```text
//! cargo run --release --example archive -- logs 10000
//! ```
//!
//! 10,000 files have 5 GB before compression. One address, 203.0.113.77, is in exactly 5 of them.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use bloomline::mix;
use flate2::Compression;
use flate2::write::GzEncoder;

const LEVELS: [&str; 8] = ["INFO", "INFO", "INFO", "INFO", "DEBUG", "DEBUG", "WARN", "ERROR"];
const SERVICES: [&str; 8] = ["nginx", "orders", "billing", "auth", "search", "mailer", "cache", "gateway"];
const STATUSES: [u32; 8] = [200, 200, 200, 200, 304, 404, 201, 500];

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().expect("where to write");
    let n_files: u64 = arguments.next().and_then(|count| count.parse().ok()).expect("how many files");
    fs::create_dir_all(&directory)?;
    let next = AtomicU64::new(0);
    let work = || {
        loop {
            let i = next.fetch_add(1, Relaxed);
            if i >= n_files {
                return Ok(());
            }
            let file = File::create(Path::new(&directory).join(format!("{i:05}.log.gz")))?;
            let mut gzip = GzEncoder::new(file, Compression::default());
            gzip.write_all(log(i, i % (n_files / 5) == n_files / 10).as_bytes())?;
            gzip.finish()?;
        }
    };
    let n_threads = thread::available_parallelism()?.get();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })
}

/// Log-normal, 2,000 in the mean.
fn n_words(file: u64) -> u64 {
    let uniform = |n| mix(file << 8 | n) as f64 / 2_f64.powi(64);
    let normal = (0..12).map(uniform).sum::<f64>() - 6.0;
    (650.0 * (1.5 * normal).exp()).clamp(10.0, 100_000.0) as u64
}

fn log(file: u64, has_planted: bool) -> String {
    const BYTES_PER_WORD: u64 = 250;
    let (n_words, mut text, mut random) = (n_words(file), String::new(), mix(!file));
    let n_bytes = n_words * BYTES_PER_WORD;
    // Of each kind: addresses, users, requests, hosts.
    let mut seen = [0; 4];
    let mut is_to_plant = has_planted;
    while (text.len() as u64) < n_bytes {
        random = mix(random);
        let wanted = n_words * text.len() as u64 / n_bytes;
        let [address, user, request, host] = [0, 1, 2, 3].map(|kind| {
            let n = &mut seen[kind];
            if *n == 0 || 4 * *n + (kind as u64) < wanted {
                *n += 1;
                return *n - 1;
            }
            // Recent ones more often.
            let back = (mix(random ^ kind as u64) >> 44) * (mix(random ^ !(kind as u64)) >> 44);
            *n - 1 - ((back as u128 * u128::from(*n)) >> 40) as u64
        });
        // Files share addresses, users and hosts, but no requests.
        let shared = mix(file) % 1_000_000;
        let [address, user, host] = [address, user, host].map(|n| shared + n);
        let address = format!("10.{}.{}.{}", address >> 16, address >> 8 & 255, address & 255);
        let address = if std::mem::take(&mut is_to_plant) { "203.0.113.77".into() } else { address };
        let (high, low) = (mix(file << 32 | request), mix(!(file << 32 | request)));
        let request = format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xfff,
            low >> 50 | 0x8000,
            low & 0xffff_ffff_ffff
        );
        let host = format!("web-{host:05x}.eu.example.com");
        if n_words < 200 {
            text += &format!("{host} {address} u{user} {request}\n");
            continue;
        }
        let pick = |shift: u32| (random >> shift & 7) as usize;
        let second = 86_400 * text.len() as u64 / n_bytes;
        text += &format!(
            "2026-03-{:02} {:02}:{:02}:{:02} {} {host} {}: {address} user=u{user} \"GET /api/v1/{}/{request} HTTP/1.1\" {} \
             {} rt=0.0{} upstream={} retry={} cache=miss\n",
            file % 28 + 1,
            second / 3600,
            second / 60 % 60,
            second % 60,
            LEVELS[pick(0)],
            SERVICES[pick(3)],
            SERVICES[pick(6)],
            STATUSES[pick(9)],
            512 << pick(12),
            11 * (pick(15) + 1),
            SERVICES[pick(18)],
            pick(21) / 4,
        );
    }
    text
}
