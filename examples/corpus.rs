//! Test input: documents as JSON Lines, compressed, with the repeats and the oddities that crawled text has.
//!
//! ```text
//! cargo run --release --example corpus -- shards 50 200000
//! ```
//!
//! 200,000 documents have 244 MB before compression. A fifth repeat the text of earlier ones, in other escapes, and 3%
//! have it with two words changed. Three in ten paragraphs of the rest are earlier paragraphs.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use bloomline::mix;
use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().expect("where to write");
    let mut count = |what| -> u64 { arguments.next().and_then(|count| count.parse().ok()).expect(what) };
    let (n_files, n_documents) = (count("how many files"), count("how many documents"));
    fs::create_dir_all(&directory)?;
    let (words, next) = (vocabulary(), AtomicU64::new(0));
    let first = |file| n_documents * file / n_files;
    let write = |file| -> io::Result<()> {
        let path = Path::new(&directory).join(format!("{file:05}.jsonl.gz"));
        let mut gzip = GzEncoder::new(File::create(path)?, Compression::default());
        (first(file)..first(file + 1)).try_for_each(|i| writeln!(gzip, "{}", json(i, &text(i, &words))))?;
        gzip.finish().map(drop)
    };
    let files = || std::iter::repeat_with(|| next.fetch_add(1, Relaxed)).take_while(|&file| file < n_files);
    thread::scope(|scope| {
        let n_threads = thread::available_parallelism()?.get();
        let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(|| files().try_for_each(write))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })
}

/// Made up, the most frequent first.
fn vocabulary() -> Vec<String> {
    let syllable = |random: u64| {
        let vowel = match random % 64 {
            0 => 'é',
            _ => char::from(b"aeiou"[(random >> 8) as usize % 5]),
        };
        format!("{}{vowel}", char::from(b"bcdfghklmnprstvw"[(random >> 16) as usize % 16]))
    };
    let n_syllables = |rank: u64| 1 + u64::from(rank > 20) + u64::from(rank > 500) + mix(!rank) % 2;
    let word = |rank| (0..n_syllables(rank)).map(|i| syllable(mix(rank << 8 | i))).collect();
    (1..=50_000).map(word).collect()
}

/// By Zipf's law.
fn pick(words: &[String], random: u64) -> &str {
    let uniform = (random >> 11) as f64 / 2_f64.powi(53);
    &words[(words.len() as f64).powf(uniform) as usize - 1]
}

fn paragraph(seed: u64, words: &[String]) -> String {
    let mut random = mix(!seed);
    let n_words = match random % 20_000 {
        0 => 16_000 + (random >> 32) % 100_000,
        _ => 1 + (random >> 32) % 20 * (1 + (random >> 40) % 8),
    };
    let mut text = String::new();
    for i in 0..n_words {
        random = mix(random);
        let word = pick(words, random);
        let kind = random % 512;
        text += match (kind, i) {
            (2, _) => "\t",
            (_, 0) => "",
            _ => " ",
        };
        _ = match kind {
            0 => write!(text, "\"{word}\""),
            1 => write!(text, "C:\\{word}\\{word}.txt"),
            3 => write!(text, "😀 {word} 👩‍💻"),
            4 => write!(text, "日本語 – {word}"),
            5..24 => write!(text, "{word}."),
            24..48 => write!(text, "{word},"),
            _ => write!(text, "{word}"),
        };
    }
    text
}

fn n_paragraphs(document: u64) -> u64 {
    let random = mix(document ^ 1 << 40);
    match random % 200 {
        0 => 0,
        _ => 1 + (random >> 32) % 5 + (random >> 40) % 3 * ((random >> 48) % 2),
    }
}

/// Itself, or the earlier document whose text it has.
fn original(document: u64) -> u64 {
    let random = mix(document ^ 2 << 40);
    if document == 0 || random % 100 >= 20 { document } else { original((random >> 8) % document) }
}

/// The seed of a paragraph, which is that of an earlier one in 30%.
fn paragraph_seed(document: u64, i: u64) -> u64 {
    let random = mix(document << 8 | i);
    let earlier =
        if document == 0 || random % 100 >= 30 { document } else { original((random >> 8) % document) };
    match n_paragraphs(earlier) {
        n if n > 0 && earlier < document => paragraph_seed(earlier, (random >> 8) % n),
        _ => document << 8 | i,
    }
}

fn text(document: u64, words: &[String]) -> String {
    let document = original(document);
    let random = mix(document ^ 3 << 40);
    if document > 0 && random % 100 < 4 {
        let copied = text((random >> 8) % document, words);
        let mut pieces: Vec<_> = copied.split(' ').collect();
        for random in [mix(random), mix(!random)] {
            let i = random as usize % pieces.len();
            pieces[i] = pick(words, random);
        }
        return pieces.join(" ");
    }
    let line_end = ["\n", "\n", "\n\n", "\r\n"][(random >> 8) as usize % 4];
    let paragraphs = (0..n_paragraphs(document)).map(|i| paragraph(paragraph_seed(document, i), words));
    paragraphs.collect::<Vec<_>>().join(line_end)
}

/// Four ways to write the same fields. The text is not the only field of its name.
fn json(document: u64, text: &str) -> String {
    let random = mix(document ^ 4 << 40);
    let url = format!("https://example.com/{:016x}", mix(random));
    let mut fields = [
        ("id", format!("\"doc-{document:08}\"")),
        ("text", quoted(text, random.is_multiple_of(4))),
        ("source", "\"web\"".into()),
        ("metadata", format!(r#"{{"url":"{url}","text":"\"text\": {{","length":{}}}"#, text.len())),
    ];
    fields.rotate_left((random >> 16) as usize % 4);
    let (colon, comma) = [(":", ","), (": ", ", "), (" : ", ","), (":", ",\t")][(random >> 8) as usize % 4];
    format!("{{{}}}", fields.map(|(name, value)| format!("\"{name}\"{colon}{value}")).join(comma))
}

/// As JSON, with escapes for all that is not ASCII, or for no more than must have them.
fn quoted(text: &str, is_ascii: bool) -> String {
    let mut quoted = String::with_capacity(text.len() + 100) + "\"";
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            '\n' => quoted += "\\n",
            '\r' => quoted += "\\r",
            '\t' => quoted += "\\t",
            _ if is_ascii && !char.is_ascii() => {
                char.encode_utf16(&mut [0; 2]).iter().for_each(|unit| _ = write!(quoted, "\\u{unit:04x}"));
            }
            _ => quoted.push(char),
        }
    }
    quoted + "\""
}
