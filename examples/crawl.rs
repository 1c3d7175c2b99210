//! Crawls a generated site, to show what a URL frontier visits and misses.
//!
//! ```text
//! cargo run --release --example crawl
//! ```
//!
//! The site has a million pages with five million links, most of them to pages that many pages link to. The frontier is
//! saved and opened again halfway. The example panics if the frontier visits a page twice, or skips more pages than its
//! false-positive rate allows.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;
use std::time::Instant;
use std::{env, process};

use bloomline::mix;
use bloomline::variants::Frontier;

const PAGES: u64 = 1_000_000;
/// The share of pages that the frontier may skip.
const FPR: f64 = 0.001;

/// The URL of a page, which ends in the page's number.
fn url(page: u64) -> String {
    format!("https://www.{:x}.example/{:x}-{page}", mix(page / 1_000), mix(!page))
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

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::temp_dir().join(format!("bloomline-{}.frontier", process::id()));
    let (mut linked, mut visited) = (vec![false; PAGES as usize], vec![false; PAGES as usize]);
    linked[0] = true;
    let (mut n_links, start) = (0_u64, Instant::now());
    let mut frontier = Frontier::with_fpr(PAGES, FPR)?;
    frontier.insert(url(0));
    for most_pages in [PAGES / 2, PAGES] {
        for _ in 0..most_pages {
            let Some(page_url) = frontier.pop() else { break };
            let page: u64 = page_url.rsplit('-').next().ok_or("not a URL of this site")?.parse()?;
            assert!(!visited[page as usize], "a page is visited twice");
            visited[page as usize] = true;
            for link in links(page) {
                linked[link as usize] = true;
                frontier.insert(url(link));
                n_links += 1;
            }
        }
        save(&frontier, &path)?;
        frontier = Frontier::from_standalone(&fs::read(&path)?)?;
    }
    fs::remove_file(&path)?;

    let count = |pages: &[bool]| pages.iter().filter(|page| **page).count();
    let (linked, visited) = (count(&linked), count(&visited));
    let skipped = (linked - visited) as f64;
    println!("{visited} of {linked} linked pages visited, {:.3}% skipped", 100.0 * skipped / linked as f64);
    println!("{n_links} links, {:.0} ns each", start.elapsed().as_nanos() as f64 / n_links as f64);
    // A small count varies by its square root.
    let expected = FPR * PAGES as f64;
    assert!(skipped <= expected + 4.0 * expected.sqrt(), "more pages are skipped than the rate allows");
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
