//! Crawls a generated site, to show what a URL frontier visits and misses, and what an exact set of all URLs costs.
//!
//! ```text
//! cargo run --release --example crawl
//! ```
//!
//! The site has a million pages with five million links, most of them to pages that many pages link to. It is crawled
//! with a `Frontier`, which is saved and opened again halfway, and then with a `HashSet<String>` and a queue. The
//! example panics if the frontier visits a page twice, or skips more pages than its false-positive rate allows.

#[path = "../tests/common/allocations.rs"]
mod allocations;

use std::collections::{HashSet, VecDeque};
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;
use std::time::Instant;
use std::{env, process};

use allocations::kept;
use bloomline::mix;
use bloomline::variants::Frontier;

const PAGES: u64 = 1_000_000;
/// The share of pages that the frontier may skip.
const FPR: f64 = 0.001;
const WORDS: [&str; 16] = [
    "garden", "history", "market", "weather", "science", "kitchen", "travel", "football", "cinema",
    "letters", "gallery", "archive", "finance", "culture", "opinion", "music",
];

/// The URL of a page, which ends in the page's number.
fn url(page: u64) -> String {
    let words = |number: u64| [0, 4, 8].map(|shift| WORDS[(mix(number) >> shift) as usize % WORDS.len()]);
    let ([a, b, section], [c, d, e]) = (words(page / 1_000), words(!page));
    // `concat` allocates exactly what it needs, so that the set does not look worse than it is.
    ["https://www.", a, "-", b, ".example/", section, "/", c, "-", d, "-", e, "-", &page.to_string()].concat()
}

/// Two pages of its own, so that every page can be reached from page 0, and on average four popular pages, which have
/// low numbers.
fn links(page: u64) -> impl Iterator<Item = u64> {
    let own = [2 * page + 1, 2 * page + 2].into_iter().filter(|link| *link < PAGES);
    let popular = (0..mix(!page) % 9).map(move |link| {
        let share = mix(16 * page + link) as f64 / 2.0_f64.powi(64);
        ((PAGES as f64 * share.powi(3)) as u64).min(PAGES - 1)
    });
    own.chain(popular)
}

/// What became of each page.
struct Crawl {
    linked: Vec<bool>,
    visited: Vec<bool>,
    links: u64,
}

impl Crawl {
    fn new() -> Self {
        let mut linked = vec![false; PAGES as usize];
        linked[0] = true;
        Self { linked, visited: vec![false; PAGES as usize], links: 0 }
    }

    /// Inserts the links of the page with this URL.
    fn visit(&mut self, page_url: &str, mut insert: impl FnMut(String)) {
        let number = page_url.rsplit('-').next().and_then(|number| number.parse().ok());
        let page: u64 = number.expect("a URL of this site");
        assert!(!self.visited[page as usize], "a page is visited twice");
        self.visited[page as usize] = true;
        for link in links(page) {
            self.linked[link as usize] = true;
            insert(url(link));
            self.links += 1;
        }
    }

    fn print(&self, name: &str, bytes: usize, start: Instant) -> f64 {
        let count = |pages: &[bool]| pages.iter().filter(|page| **page).count();
        let (linked, visited) = (count(&self.linked), count(&self.visited));
        let skipped = (linked - visited) as f64;
        let ns = start.elapsed().as_nanos() as f64 / self.links as f64;
        println!(
            "{name:10}{linked:>15}{visited:>15}{:>11.3}%{bytes:>20}{ns:>13.0}",
            100.0 * skipped / linked as f64
        );
        skipped
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("             distinct URLs  pages visited     skipped   bytes to remember  ns per link");
    let path = env::temp_dir().join(format!("bloomline-{}.frontier", process::id()));
    let (mut crawl, start) = (Crawl::new(), Instant::now());
    let mut frontier = Frontier::with_fpr(PAGES, FPR)?;
    frontier.insert(url(0));
    for most_pages in [PAGES / 2, PAGES] {
        for _ in 0..most_pages {
            let Some(page_url) = frontier.pop() else { break };
            crawl.visit(&page_url, |link| _ = frontier.insert(link));
        }
        save(&frontier, &path)?;
        frontier = Frontier::from_standalone(&fs::read(&path)?)?;
    }
    fs::remove_file(&path)?;
    // The queue is empty, so a copy needs only the memory of the filter.
    let mut copy = None;
    let bytes = kept(|| copy = Some(frontier.clone()));
    let skipped = crawl.print("Frontier", bytes, start);
    // A small count varies by its square root.
    let expected = FPR * PAGES as f64;
    assert!(skipped <= expected + 4.0 * expected.sqrt(), "more pages are skipped than the rate allows");

    let (mut crawl, start) = (Crawl::new(), Instant::now());
    let mut seen = HashSet::new();
    let bytes = kept(|| {
        let mut queue = VecDeque::from([url(0)]);
        seen.insert(url(0));
        while let Some(page_url) = queue.pop_front() {
            crawl.visit(&page_url, |link| {
                if !seen.contains(&link) {
                    queue.push_back(link.clone());
                    seen.insert(link);
                }
            });
        }
    });
    crawl.print("HashSet", bytes, start);
    println!(
        "\n{} links, whose generation is part of the time; at most {}% may be skipped",
        crawl.links,
        100.0 * FPR
    );
    Ok(())
}

/// Replaces the file by a new file, so that a crash at any moment leaves one of them whole.
fn save(frontier: &Frontier<String>, path: &Path) -> io::Result<()> {
    let new = path.with_extension("new");
    let file = File::create(&new)?;
    frontier.write_standalone(BufWriter::new(&file))?;
    file.sync_all()?;
    fs::rename(new, path)
}
