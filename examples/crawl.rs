//! Crawls a generated site: what a URL frontier visits, what it misses, and what an exact set of all URLs costs.
//!
//! ```text
//! cargo run --release --features crawl --example crawl
//! ```
//!
//! A million pages with five million links, most of them to pages that many others link to as well. They are crawled
//! twice: with a `Frontier`, and with a `HashSet<String>` and a queue. Exit code 1 if the frontier visits a page twice or
//! skips more pages than the requested false-positive rate allows, 2 if the arguments or the file are wrong.

#[path = "../tests/common/allocations.rs"]
mod allocations;

use std::collections::{HashSet, VecDeque};
use std::fs;
use std::io::{BufWriter, ErrorKind, IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use allocations::kept;
use anyhow::{Context, Result, bail};
use bloomline::mix;
use bloomline::variants::Frontier;
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use tempfile::NamedTempFile;

const LINKS_A_PAGE: u64 = 5;
const LINKS_A_SAVE: u64 = 1_000_000;

/// Crawl a generated site with a frontier, and with a HashSet for comparison
#[derive(Parser)]
#[command(after_help = "Examples, after `cargo run --release --features crawl --example crawl --`:
  --fpr 0.01                              a smaller filter, which skips more pages
  --growing                               a filter that starts with room for 1 % of the pages
  --save crawl.frontier --stop 300000     the first 300,000 pages; run it again to resume")]
struct Arguments {
    /// Links of the site, five for each page
    #[arg(long, value_name = "N", default_value = "5000000")]
    #[arg(value_parser = clap::value_parser!(u64).range(10_000..=1_000_000_000))]
    links: u64,
    /// Target false-positive rate: the most pages that may be skipped
    #[arg(long, value_name = "RATE", default_value = "0.001")]
    fpr: f64,
    /// Start with a filter for 1 % of the pages, and let it grow
    #[arg(long)]
    growing: bool,
    /// Resume from FILE if it exists; save to it every million links and at the end
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Stop after PAGES pages
    #[arg(long, value_name = "PAGES", requires = "save")]
    stop: Option<u64>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether the frontier kept its guarantees.
fn run(arguments: &Arguments) -> Result<bool> {
    let site = Site { pages: arguments.links / LINKS_A_PAGE };
    let empty = || {
        let pages = site.pages as usize;
        let frontier = match arguments.growing {
            true => Frontier::growing(pages / 100, arguments.fpr),
            false => Frontier::with_fpr(pages, arguments.fpr),
        };
        frontier.context("cannot make the frontier: change --fpr, or use fewer --links")
    };
    let report = match &arguments.save {
        Some(path) => crawl_in_parts(&site, path, arguments.stop, empty)?,
        None => compare(&site, arguments.fpr, empty()?),
    };
    std::io::stdout().write_all(report.text.as_bytes()).context("cannot write the report")?;
    Ok(report.is_good)
}

struct Report {
    text: String,
    is_good: bool,
}

/// Pages that link to each other; everything about a page follows from its number.
struct Site {
    pages: u64,
}

const WORDS: [&str; 16] = [
    "garden", "history", "market", "weather", "science", "kitchen", "travel", "football", "cinema",
    "letters", "gallery", "archive", "finance", "culture", "opinion", "music",
];

impl Site {
    /// It ends in the page's number.
    fn url(page: u64) -> String {
        let words = |number: u64| [0, 4, 8].map(|shift| WORDS[(mix(number) >> shift) as usize % WORDS.len()]);
        let ([a, b, section], [c, d, e]) = (words(page / 1_000), words(!page));
        // Allocates exactly what it needs, in favour of the set.
        ["https://www.", a, "-", b, ".example/", section, "/", c, "-", d, "-", e, "-", &page.to_string()]
            .concat()
    }

    fn page(&self, url: &str) -> Option<u64> {
        url.rsplit('-').next()?.parse().ok().filter(|page| *page < self.pages)
    }

    /// Two pages of its own, so that every page can be reached from page 0, and on average four that others link to as
    /// well: the lower the number, the more popular.
    fn links(&self, page: u64) -> impl Iterator<Item = u64> {
        let own = [2 * page + 1, 2 * page + 2].into_iter().filter(|link| *link < self.pages);
        let popular = (0..mix(!page) % 9).map(move |link| {
            let share = mix(16 * page + link) as f64 / 2.0_f64.powi(64);
            ((self.pages as f64 * share.powi(3)) as u64).min(self.pages - 1)
        });
        own.chain(popular)
    }
}

/// What a crawler takes pages from, and puts links into.
trait Queue {
    /// Returns whether the URL is to be visited.
    fn insert(&mut self, url: String) -> bool;
    fn pop(&mut self) -> Option<String>;
}

impl Queue for Frontier<String> {
    fn insert(&mut self, url: String) -> bool {
        Frontier::insert(self, url)
    }

    fn pop(&mut self) -> Option<String> {
        Frontier::pop(self)
    }
}

#[derive(Default)]
struct Exact {
    seen: HashSet<String>,
    queue: VecDeque<String>,
}

impl Queue for Exact {
    fn insert(&mut self, url: String) -> bool {
        let is_new = !self.seen.contains(&url);
        if is_new {
            self.queue.push_back(url.clone());
            self.seen.insert(url);
        }
        is_new
    }

    fn pop(&mut self) -> Option<String> {
        self.queue.pop_front()
    }
}

/// What became of each page.
#[derive(Clone, Copy, Default)]
struct Fate {
    linked: bool,
    visited: bool,
}

struct Crawl {
    fates: Vec<Fate>,
    links: u64,
    visited: u64,
    visited_twice: u64,
    time: Duration,
}

impl Crawl {
    fn new(site: &Site) -> Self {
        let fates = vec![Fate::default(); site.pages as usize];
        Self { fates, links: 0, visited: 0, visited_twice: 0, time: Duration::ZERO }
    }

    /// Visits pages until none are left, or about `most_links` links were inserted.
    fn go_on(&mut self, site: &Site, frontier: &mut impl Queue, most_links: u64, most_pages: u64) {
        let start = Instant::now();
        let most_links = self.links.saturating_add(most_links);
        while self.links < most_links && self.visited < most_pages {
            let Some(url) = frontier.pop() else { break };
            let page = site.page(&url).expect("a URL of this site");
            let fate = &mut self.fates[page as usize];
            self.visited_twice += u64::from(fate.visited);
            *fate = Fate { linked: true, visited: true };
            self.visited += 1;
            for link in site.links(page) {
                self.fates[link as usize].linked = true;
                frontier.insert(Site::url(link));
                self.links += 1;
            }
        }
        self.time += start.elapsed();
    }

    fn to_its_end(site: &Site, name: &str, frontier: &mut impl Queue) -> Self {
        let progress = progress(name, site.pages);
        let mut crawl = Self::new(site);
        frontier.insert(Site::url(0));
        loop {
            let before = crawl.visited;
            crawl.go_on(site, frontier, 20_000, u64::MAX);
            progress.set_position(crawl.visited);
            if crawl.visited == before {
                progress.finish_and_clear();
                return crawl;
            }
        }
    }

    fn linked(&self) -> usize {
        self.fates.iter().filter(|fate| fate.linked).count()
    }

    fn skipped(&self) -> usize {
        self.fates.iter().filter(|fate| fate.linked && !fate.visited).count()
    }
}

fn compare(site: &Site, fpr: f64, mut frontier: Frontier<String>) -> Report {
    let ours = Crawl::to_its_end(site, "crawling, Frontier", &mut frontier);
    // The queue is empty, so a copy of it takes no memory.
    let mut copy = None;
    let our_bytes = kept(|| copy = Some(frontier.clone()));
    let (mut theirs, mut seen) = (None, HashSet::new());
    let their_bytes = kept(|| {
        let mut exact = Exact::default();
        theirs = Some(Crawl::to_its_end(site, "crawling, HashSet", &mut exact));
        seen = exact.seen;
    });
    // `Crawl`'s own memory is not the set's.
    let theirs = theirs.expect("made just now");
    let their_bytes = their_bytes - theirs.fates.len() * size_of::<Fate>();

    let start = Instant::now();
    let url_bytes: usize =
        (0..site.pages).flat_map(|page| site.links(page)).map(|link| Site::url(link).len()).sum();
    let without = start.elapsed();

    let row = |cells: [&str; 7]| {
        let [name, linked, visited, twice, skipped, bytes, time] = cells;
        format!("{name:10}{linked:>12}{visited:>12}{twice:>9}{skipped:>18}{bytes:>15}{time:>11}\n")
    };
    let mut text = format!(
        "{} pages with {} links, {} bytes on average\n\n",
        grouped(site.pages as usize),
        grouped(theirs.links as usize),
        url_bytes / theirs.links as usize
    );
    text += &row(["", "distinct", "pages", "visited", "skipped", "bytes to", "ns per"]);
    text += &row(["", "URLs", "visited", "twice", "", "remember", "link"]);
    for (name, crawl, bytes) in [("Frontier", &ours, our_bytes), ("HashSet", &theirs, their_bytes)] {
        let skipped = 100.0 * crawl.skipped() as f64 / crawl.linked() as f64;
        text += &row([
            name,
            &grouped(crawl.linked()),
            &grouped(crawl.visited as usize),
            &grouped(crawl.visited_twice as usize),
            &format!("{} ({skipped:.3} %)", grouped(crawl.skipped())),
            &grouped(bytes),
            &format!("{:.0}", crawl.time.as_nanos() as f64 / crawl.links as f64),
        ]);
    }
    // A small count varies by its square root.
    let expected = fpr * ours.linked() as f64;
    let most_skipped = expected + 4.0 * expected.sqrt();
    text += &format!(
        "\nTarget: skip at most {:.3} %. The frontier remembers the URLs in 1/{:.0} of the memory. Generating a link takes\n\
         {:.0} ns of the time. The queues are not counted.\n",
        100.0 * fpr,
        their_bytes as f64 / our_bytes as f64,
        without.as_nanos() as f64 / theirs.links as f64,
    );
    Report {
        text,
        is_good: ours.visited_twice == 0 && theirs.skipped() == 0 && ours.skipped() as f64 <= most_skipped,
    }
}

/// A crawl that survives its process.
fn crawl_in_parts(
    site: &Site,
    path: &Path,
    stop: Option<u64>,
    empty: impl FnOnce() -> Result<Frontier<String>>,
) -> Result<Report> {
    let name = path.display();
    let mut frontier = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let mut frontier = empty()?;
            frontier.insert(Site::url(0));
            frontier
        }
        Err(error) => Err(error).with_context(|| format!("{name}: cannot be read"))?,
        Ok(saved) => Frontier::from_standalone(&saved)
            .with_context(|| format!("{name}: cannot resume: name another file"))?,
    };
    if frontier.iter().any(|url| site.page(url).is_none()) {
        bail!("{name}: belongs to another crawl: pass the same --links, or name another file");
    }
    let visited_before = frontier.accepted() - frontier.len() as u64;
    let progress = progress("crawling", site.pages);
    let mut crawl = Crawl::new(site);
    let most_pages = stop.unwrap_or(u64::MAX);
    while !frontier.is_empty() && crawl.visited < most_pages {
        crawl.go_on(site, &mut frontier, LINKS_A_SAVE, most_pages);
        save(&frontier, path)
            .with_context(|| format!("{name}: cannot save: free some space, or name another file"))?;
        progress.set_position(visited_before + crawl.visited);
    }
    progress.finish_and_clear();
    let visited = visited_before + crawl.visited;
    let text = format!(
        "{} pages visited, {} of them before; {} in the queue\n",
        grouped(visited as usize),
        grouped(visited_before as usize),
        grouped(frontier.len())
    );
    Ok(Report { text, is_good: crawl.visited_twice == 0 && visited <= site.pages })
}

/// Replaces the file by a new one, so that a crash at any moment leaves a whole file: the old or the new.
fn save(frontier: &Frontier<String>, path: &Path) -> Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = NamedTempFile::new_in(directory)?;
    frontier.write_standalone(BufWriter::new(&file))?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// 1234567 as 1,234,567.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// A progress bar on standard error, if that is a terminal.
fn progress(message: &str, length: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg:25} {wide_bar} {percent:>3} %").expect("a valid template");
    ProgressBar::new(length).with_style(style).with_message(message.to_owned())
}
