//! `bloomline info`
#![forbid(unsafe_code)]

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Error, Result, anyhow, bail, ensure};
use bloomline::bank::BankView;
use bloomline::sstable::{FilterBlockError, FilterBlockReader, PartitionIndex};
use bloomline::variants::{Frontier, ScalableBloomFilter};
use bloomline::{BloomFilter, BloomView, KeyEstimate, StandaloneFooter};
use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use serde_json::{Map, Value};

use crate::filter_file::{Content, FilterFile};
use crate::filters::chart::{Axis, Chart, Line, ORANGE, svg};
use crate::input::is_same_file;
use crate::numbers::{self, counted, grouped, percent, size};
use crate::output::Printer;
use crate::state::{Filter, State};

/// Describe a filter file and verify its checksum
#[derive(Args)]
#[command(after_help = "\
Recognises what bloomline and its library write to files: blocked, standard,
counting and scalable filters, filter banks, states of dedup, frontiers and
partition indexes. What was cut out of a table needs --compact or
--filter-block. The whole file is read to verify its checksum. Exit status: 2 if
it is damaged.

The JSON object has, as far as they apply:
  all             file, bytes, kind, is_intact
  filters         blocks, k, seed, hash, version, fill_ratio, known_keys (null
                  if unknown), estimated_keys (null if too many), standard_error,
                  false_positive_rate (of the bits that are set now)
  standard        bits instead of blocks
  counting        saturated_counters
  scalable        filters, initial_capacity, inserted_keys,
                  requested_false_positive_rate
  filter bank     slots, known_keys (one number for each slot), blocks (of each)
  state           lines, capacity, is_growing, requested_false_positive_rate
  frontier        queued_items, accepted_items, capacity (null if it grows)
  filter block    filters, empty_ranges, range_bytes, unusable_filters,
                  highest_false_positive_rate
  partition index partitions

Examples:
  bloomline info keys.bloom
  bloomline info --json keys.bloom | jq .false_positive_rate
  bloomline info --plot blocks.svg keys.bloom       plot how full the blocks are")]
pub struct Arguments {
    /// File to describe; standard input if -
    #[arg(value_name = "FILTER")]
    filter: PathBuf,
    /// The file is a filter in compact bytes, as tables hold them
    #[arg(long)]
    compact: bool,
    /// The file is the filter block of a table in LevelDB's format
    #[arg(long, conflicts_with_all = ["compact", "plot"])]
    filter_block: bool,
    /// The file is a partition index: report what is wrong with it
    #[arg(long, conflicts_with_all = ["compact", "filter_block", "plot"])]
    partition_index: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// Plot how many blocks have how many bits set, and what the model predicts
    #[arg(long, value_name = "FILE.svg", value_parser = PathBufValueParser::new().try_map(svg))]
    plot: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.plot.as_ref().is_some_and(|plot| is_same_file(plot, &arguments.filter)) {
        bail!(
            "{}: is the filter, and the plot would replace it (choose another file)",
            arguments.filter.display()
        );
    }
    let file = FilterFile::open(&arguments.filter)?;
    let about = About::new(&file, arguments)?;
    let blocks = about.lanes.as_ref().and_then(|lanes| match lanes.bytes.as_chunks() {
        (blocks, []) => Some((blocks, lanes)),
        _ => None,
    });
    ensure!(
        arguments.plot.is_none() || blocks.is_some(),
        "{}: does not consist of the blocks of one filter, which a plot shows (omit --plot)",
        file.name
    );
    Printer::new().print(about.text(arguments.json))?;
    if let (Some(path), Some((blocks, lanes)), None) = (&arguments.plot, blocks, &about.damage) {
        plot(blocks, lanes.k, lanes.estimated, path)?;
    }
    about.damage.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// What is known of a file, for people and as JSON.
#[derive(Default)]
struct About<'a> {
    rows: Vec<(&'static str, String)>,
    json: Map<String, Value>,
    /// What is wrong with a file that can be described all the same.
    damage: Option<Error>,
    /// A blocked filter's, to be plotted.
    lanes: Option<Lanes<'a>>,
}

struct Lanes<'a> {
    bytes: &'a [u8],
    k: u32,
    estimated: Option<u64>,
}

impl<'a> About<'a> {
    fn new(file: &'a FilterFile, arguments: &Arguments) -> Result<Self> {
        let mut about = Self::default();
        about.set("file", &*file.name);
        about.set("bytes", file.bytes().len());
        let named = |error: &dyn Display, option| anyhow!("{}: {error} (omit {option})", file.name);
        if arguments.compact {
            let view = BloomView::from_compact(file.bytes());
            about.compact(file.bytes(), &view.map_err(|error| named(&error, "--compact"))?);
        } else if arguments.filter_block {
            about.filter_block(file)?;
        } else if arguments.partition_index {
            let index = PartitionIndex::new(file.bytes());
            about.partition_index(file.bytes(), index.map_err(|error| named(&error, "--partition-index"))?);
        } else {
            about.content(file)?;
        }
        about.set("is_intact", about.damage.is_none());
        Ok(about)
    }

    fn content(&mut self, file: &'a FilterFile) -> Result<()> {
        let bytes = file.bytes();
        match file.content().map_err(|error| with_option(file, error))? {
            Content::Blocked(view) => {
                self.kind("blocked", "blocked filter", bytes);
                self.damage = view.verify().err().map(|error| file.error(error));
                self.blocked(bytes, &view)?;
                self.fpr(view.estimated_fpr());
            }
            Content::Standard(filter) => {
                self.kind("standard", "standard filter", bytes);
                self.set("bits", filter.bit_len());
                self.shape(counted(filter.bit_len(), "bit"), filter.k());
                self.footer(bytes)?;
                self.fill(filter.fill_ratio());
                self.keys(filter.known_keys(), filter.estimated_keys());
                self.fpr(filter.estimated_fpr());
            }
            Content::Counting(filter) => {
                self.kind("counting", "counting filter, from which keys can be removed", bytes);
                let n_blocks = filter.n_blocks() as u64;
                self.set("blocks", n_blocks);
                self.shape(
                    format!("{} of 64 bytes and 256 of counters", counted(n_blocks, "block")),
                    filter.k(),
                );
                self.footer(bytes)?;
                let (saturated, counters) = (filter.saturated_counters(), grouped(512 * n_blocks));
                self.row("saturated", format!("{} of {counters} counters", grouped(saturated)));
                self.set("saturated_counters", saturated);
                let bits = filter.as_filter();
                self.fill(bits.fill_ratio());
                self.keys(bits.known_keys(), bits.estimated_keys());
                self.fpr(bits.estimated_fpr());
            }
            Content::Scalable(filter) => {
                self.kind("scalable", "scalable filter, which grows", bytes);
                self.row("capacity", format!("{} at first", counted(filter.initial_capacity(), "key")));
                self.set("initial_capacity", filter.initial_capacity());
                self.scalable(&filter);
                self.requested_fpr(filter.fpr());
                self.fpr(filter.estimated_fpr());
            }
            Content::State(state) => self.state(bytes, &state)?,
            Content::Frontier(frontier) => self.frontier(bytes, &frontier),
            Content::Bank(bank) => {
                self.kind("bank", "filter bank: one lookup for many filters", bytes);
                self.damage = bank.verify().err().map(|error| file.error(error));
                self.bank(&bank);
            }
            Content::PartitionIndex(index) => self.partition_index(bytes, index),
        }
        Ok(())
    }

    fn state(&mut self, bytes: &'a [u8], state: &State) -> Result<()> {
        let is_growing = matches!(state.filter, Filter::Growing(_));
        let growth = if is_growing { "which grows" } else { "of fixed size" };
        self.kind("state", &format!("state of dedup, {growth}"), bytes);
        self.set("is_growing", is_growing);
        self.row("keys", format!("at most {}", grouped(state.keys)));
        self.set("keys", state.keys);
        let capacity = counted(state.capacity, "key");
        self.row("capacity", if is_growing { format!("{capacity} at first") } else { capacity });
        self.set("capacity", state.capacity);
        match &state.filter {
            Filter::Fixed(filter) => {
                self.blocked(&bytes[..bytes.len() - StandaloneFooter::LEN], &filter.as_view())?;
            }
            Filter::Growing(filter) => self.scalable(filter),
        }
        self.requested_fpr(state.fpr);
        self.fpr(state.filter.estimated_fpr());
        Ok(())
    }

    /// A blocked filter and its standalone bytes.
    fn blocked(&mut self, bytes: &'a [u8], view: &BloomView) -> Result<()> {
        self.blocks(view);
        self.footer(bytes)?;
        self.bits(&bytes[..bytes.len() - StandaloneFooter::LEN], view);
        Ok(())
    }

    fn scalable(&mut self, filter: &ScalableBloomFilter) {
        let filters = filter.filters();
        let (n_filters, n_blocks) = (filters.len() as u64, filter.byte_len() as u64 / 64);
        let [filters, blocks] = [counted(n_filters, "filter"), counted(n_blocks, "block")];
        self.set("filters", n_filters);
        self.set("blocks", n_blocks);
        self.shape(
            format!("{filters}, {blocks} of 64 bytes"),
            filter.filters().first().map_or(0, BloomFilter::k),
        );
        self.seed(filter.seed());
        self.checksum();
        self.row("inserted keys", grouped(filter.inserted_keys()));
        self.set("inserted_keys", filter.inserted_keys());
    }

    fn frontier(&mut self, bytes: &[u8], frontier: &Frontier<Vec<u8>>) {
        self.kind("frontier", "frontier: a queue, and a filter of all items ever accepted", bytes);
        let (queued, accepted) = (frontier.len() as u64, frontier.accepted());
        self.row("queued items", format!("{}, exact", grouped(queued)));
        self.set("queued_items", queued);
        self.row("accepted items", format!("{}, exact", grouped(accepted)));
        self.set("accepted_items", accepted);
        let capacity = match frontier.capacity() {
            None => "grows".into(),
            Some(capacity) if frontier.is_over_capacity() => {
                format!(
                    "{}, exceeded: new items are dropped more often than requested",
                    counted(capacity, "item")
                )
            }
            Some(capacity) => counted(capacity, "item"),
        };
        self.row("capacity", capacity);
        self.set("capacity", frontier.capacity());
        self.seed(frontier.seed());
        self.checksum();
        self.fpr(frontier.estimated_fpr());
    }

    fn bank(&mut self, bank: &BankView<&[u8]>) {
        let (slots, n_blocks) = (bank.slots(), bank.n_blocks() as u64);
        self.row("slots", grouped(slots as u64));
        self.set("slots", slots);
        self.set("blocks", n_blocks);
        self.shape(format!("{} of 64 bytes per slot", counted(n_blocks, "block")), bank.k());
        self.seed(bank.seed());
        self.checksum();
        let keys: Vec<_> = (0..slots).map(|slot| bank.known_keys(slot)).collect();
        let known = || keys.iter().flatten().copied();
        let mut texts = Vec::new();
        if let (Some(least), Some(most)) = (known().min(), known().max()) {
            let most = if least == most { String::new() } else { format!(" to {}", grouped(most)) };
            texts.push(format!("{}{most} per slot, exact", grouped(least)));
        }
        if known().count() < slots {
            texts.push(format!("unknown for {}", counted((slots - known().count()) as u64, "slot")));
        }
        if slots > 0 {
            self.row("distinct keys", texts.join("; "));
        }
        self.set("known_keys", keys);
    }

    fn compact(&mut self, bytes: &'a [u8], view: &BloomView) {
        self.kind("compact", "blocked filter in compact bytes", bytes);
        let lanes = &bytes[..bytes.len() - 1];
        self.blocks(view);
        self.row("seed", "not stored; 0 in tables".into());
        self.row("checksum", "none of its own".into());
        self.bits(lanes, view);
        self.fpr(view.estimated_fpr());
    }

    fn filter_block(&mut self, file: &FilterFile) -> Result<()> {
        let bytes = file.bytes();
        let block = FilterBlockReader::new(bytes)
            .map_err(|error| anyhow!("{}: {error} (or omit --filter-block)", file.name))?;
        let range_log2 = bytes.last().copied().unwrap_or(0);
        let mut room = bytes.len();
        let (mut n_filters, mut n_empty, mut usable) = (0_u64, 0_u64, Vec::new());
        for range in 0..block.n_filters() as u64 {
            // A range that begins beyond 2^64 bytes has no offset to be asked for.
            let found = range.checked_mul(1 << range_log2).map(|offset| block.filter_of(offset));
            if matches!(found, Some(Err(FilterBlockError::NoKeys { .. }))) {
                n_empty += 1;
                continue;
            }
            n_filters += 1;
            usable.extend(found.and_then(Result::ok).and_then(|filter| {
                // Forged offsets can name the same bytes again and again.
                room = room.checked_sub(filter.len())?;
                BloomView::from_compact(filter).ok()
            }));
        }
        let n_unusable = n_filters - usable.len() as u64;
        self.kind("filter block", "filter block of a table", bytes);
        let ranges =
            format!("{} of {} of the table", counted(n_empty, "range"), counted(1 << range_log2, "byte"));
        self.row("filters", format!("{}, and none for {ranges}", grouped(n_filters)));
        self.set("filters", n_filters);
        self.set("empty_ranges", n_empty);
        self.set("range_bytes", 1_u64 << range_log2);
        self.set("unusable_filters", n_unusable);
        if n_unusable > 0 {
            self.row("unusable", counted(n_unusable, "filter"));
            self.damage = Some(anyhow!(
                "{}: {} of {} cannot be read (rewrite the table, unless another policy made them)",
                file.name,
                counted(n_unusable, "filter"),
                grouped(n_filters)
            ));
        }
        self.row("checksum", "none of its own".into());
        let keys: Option<u64> = usable.iter().map(|view| view.estimated_keys().keys()).sum();
        let text =
            keys.map_or_else(|| "too many to estimate".into(), |keys| format!("about {}", grouped(keys)));
        self.row("distinct keys", text);
        self.set("estimated_keys", keys);
        let rates = || usable.iter().map(BloomView::estimated_fpr);
        let (mean, highest) =
            (rates().sum::<f64>() / usable.len().max(1) as f64, rates().fold(0.0, f64::max));
        self.row("FPR", format!("{} in the mean, {} at most", percent(mean), percent(highest)));
        self.set("false_positive_rate", mean);
        self.set("highest_false_positive_rate", highest);
        Ok(())
    }

    fn partition_index(&mut self, bytes: &[u8], index: PartitionIndex<&[u8]>) {
        self.kind("partition index", "partition index of a table", bytes);
        self.row("partitions", grouped(index.len() as u64));
        self.set("partitions", index.len());
        self.checksum();
    }

    fn kind(&mut self, name: &str, text: &str, bytes: &[u8]) {
        self.set("kind", name);
        self.row("kind", text.into());
        let bytes = bytes.len() as u64;
        let short = if bytes < 1000 { String::new() } else { format!(", {}", size(bytes)) };
        self.row("size", counted(bytes, "byte") + &short);
    }

    fn blocks(&mut self, view: &BloomView) {
        let n_blocks = view.n_blocks() as u64;
        self.set("blocks", n_blocks);
        let lanes = view.byte_len() as u64 / 8;
        if lanes == 8 * n_blocks {
            self.shape(format!("{} of 64 bytes", counted(n_blocks, "block")), view.k());
        } else {
            self.shape(format!("{} of 8 bytes, a short filter", counted(lanes, "lane")), view.k());
        }
    }

    fn shape(&mut self, size: String, k: u32) {
        self.row("shape", format!("{size}, k = {k}"));
        self.set("k", k);
    }

    /// What the footer of one filter says, and whether the filter is intact.
    fn footer(&mut self, bytes: &[u8]) -> Result<()> {
        let footer = StandaloneFooter::read(bytes)?;
        self.seed(footer.seed);
        self.row("hash", format!("{}, wyhash final version 3", footer.hash_id));
        self.set("hash", footer.hash_id);
        self.row("format", format!("version {}", footer.version));
        self.set("version", footer.version);
        self.checksum();
        Ok(())
    }

    fn seed(&mut self, seed: u64) {
        self.row("seed", seed.to_string());
        self.set("seed", seed);
    }

    fn checksum(&mut self) {
        let verdict = if self.damage.is_none() { "valid" } else { "INVALID: the file is damaged" };
        self.row("checksum", verdict.into());
    }

    /// What the bits of a blocked filter show.
    fn bits(&mut self, lanes: &'a [u8], view: &BloomView) {
        let estimated = view.estimated_keys();
        self.fill(view.fill_ratio());
        self.keys(view.known_keys(), estimated);
        self.lanes = Some(Lanes { bytes: lanes, k: view.k(), estimated: estimated.keys() });
    }

    fn fill(&mut self, ratio: f64) {
        self.row("fill ratio", percent(ratio));
        self.set("fill_ratio", ratio);
    }

    fn keys(&mut self, known: Option<u64>, estimated: KeyEstimate) {
        let exact = |keys| format!("{}, exact", grouped(keys));
        self.row("distinct keys", known.map_or_else(|| numbers::estimate(estimated), exact));
        self.set("known_keys", known);
        self.set("estimated_keys", estimated.keys());
        self.set("standard_error", estimated.standard_error());
    }

    fn requested_fpr(&mut self, fpr: f64) {
        self.row("requested FPR", percent(fpr));
        self.set("requested_false_positive_rate", fpr);
    }

    fn fpr(&mut self, fpr: f64) {
        self.row("FPR", percent(fpr));
        self.set("false_positive_rate", fpr);
    }

    fn row(&mut self, name: &'static str, text: String) {
        self.rows.push((name, text));
    }

    fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.json.insert(name.into(), value.into());
    }

    fn text(&self, json: bool) -> String {
        if json {
            return format!("{:#}\n", Value::from(self.json.clone()));
        }
        self.rows.iter().map(|(name, text)| format!("{name:17}{text}\n")).collect()
    }
}

/// The error for bytes without bloomline's ending, with the option for what they may be.
fn with_option(file: &FilterFile, error: Error) -> Error {
    let bytes = file.bytes();
    let option = if BloomView::from_compact(bytes).is_ok() {
        "--compact"
    } else if FilterBlockReader::new(bytes).is_ok() {
        "--filter-block"
    } else {
        return error;
    };
    anyhow!("{}: not a file of bloomline, but possibly a part of a table (try {option})", file.name)
}

const BLOCK_BITS: usize = 512;

fn plot(blocks: &[[u8; 64]], k: u32, estimated: Option<u64>, path: &Path) -> Result<()> {
    let mut counts = vec![0_u64; BLOCK_BITS + 1];
    for block in blocks {
        counts[block.iter().map(|byte| byte.count_ones() as usize).sum::<usize>()] += 1;
    }
    let n_blocks = blocks.len() as f64;
    let model = estimated.map(|keys| (keys as f64 / n_blocks, fill_model(keys as f64 / n_blocks, k)));
    let expected = model.as_ref().map_or(&[][..], |(_, model)| model);
    let is_used = |&x: &usize| counts[x] > 0 || expected.get(x).is_some_and(|share| share * n_blocks > 0.5);
    let used = || (0..=BLOCK_BITS).filter(is_used);
    let (first, last) = (used().next().unwrap_or(0), used().next_back().unwrap_or(BLOCK_BITS));
    let most = counts.iter().map(|&count| count as f64).chain(expected.iter().map(|share| share * n_blocks));
    let most = most.fold(1.0, f64::max);
    let name =
        model.as_ref().map(|(keys, _)| format!("model: {keys:.1} keys per block in the mean, Poisson"));
    Chart {
        title: &format!(
            "How full the {} {}, k = {k}",
            counted(blocks.len() as u64, "block"),
            if blocks.len() == 1 { "is" } else { "are" }
        ),
        x: Axis {
            title: "bits set, of the 512 in a block",
            range: (first as f64 - 3.0).max(-0.5)..(last as f64 + 4.0).max(11.0),
            n_labels: 11,
            label: &|x| x.to_string(),
        },
        y: Axis {
            title: "blocks",
            range: 0.0..1.25 * most,
            n_labels: (most as usize + 1).min(8),
            label: &|y| grouped(y as u64),
        },
        bars: used()
            .filter(|&x| counts[x] > 0)
            .map(|x| (x as f64 - 0.5, x as f64 + 0.5, counts[x] as f64))
            .collect(),
        bars_name: "blocks of the filter",
        lines: Vec::from_iter(name.as_ref().map(|name| Line {
            name,
            color: ORANGE,
            points: used().map(|x| (x as f64, expected[x] * n_blocks)).collect(),
        })),
        mark: None,
    }
    .write(path)
}

/// The fraction of blocks with each number of bits set. The keys of a block are Poisson distributed; the probes of a
/// key are in different lanes, so each finds its bit set or clear independently of the others.
fn fill_model(keys_per_block: f64, k: u32) -> Vec<f64> {
    let mut fill = vec![0.0; BLOCK_BITS + 1];
    fill[0] = 1.0;
    let mut model = vec![0.0; BLOCK_BITS + 1];
    let most_keys = (keys_per_block + 10.0 * keys_per_block.sqrt() + 10.0) as u32;
    let mut ln_weight = -keys_per_block;
    for keys in 0..=most_keys {
        if keys > 0 {
            ln_weight += (keys_per_block / f64::from(keys)).ln();
            fill = with_one_more_key(&fill, k);
        }
        let weight = ln_weight.exp();
        model.iter_mut().zip(&fill).for_each(|(model, fill)| *model += weight * fill);
    }
    model
}

fn with_one_more_key(fill: &[f64], k: u32) -> Vec<f64> {
    let mut more = vec![0.0; fill.len()];
    for (x, &share) in fill.iter().enumerate().filter(|(_, share)| **share > 0.0) {
        let clear = 1.0 - x as f64 / BLOCK_BITS as f64;
        // Binomial: n of k probes find a clear bit, from n = k down.
        let mut ways = 1.0;
        for n in (0..=k).rev() {
            let probability = ways * clear.powi(n as i32) * (1.0 - clear).powi((k - n) as i32);
            if let Some(more) = more.get_mut(x + n as usize) {
                *more += share * probability;
            }
            ways *= f64::from(n) / f64::from(k - n + 1);
        }
    }
    more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_of_fill_is_that_of_a_filter() {
        let mut filter = bloomline::BloomFilter::with_blocks(20_000, 6).unwrap();
        let hashes: Vec<u64> = (0..20_000 * 50).map(bloomline::mix).collect();
        filter.insert_batch(&hashes);
        let model = fill_model(50.0, 6);
        assert!((model.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        let mean: f64 = (0..).zip(&model).map(|(x, share)| f64::from(x) * share).sum();
        assert!((mean / 512.0 - filter.fill_ratio()).abs() < 0.001, "{mean}, {}", filter.fill_ratio());
    }
}
