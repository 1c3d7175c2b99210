//! `bloomline info`
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Error, Result, ensure};
use bloomline::bank::{BankView, IndexView};
use bloomline::variants::{Frontier, ScalableBloomFilter};
use bloomline::{BloomFilter, BloomView, KeyEstimate, StandaloneFooter};
use bloomline_chart::{Axis, Chart, Line, ORANGE};
use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use serde_json::{Map, Value, json};

use crate::files::{is_folder, names, states};
use crate::filter_file::{Content, FilterFile};
use crate::filters::chart::{self, svg};
use crate::input::{Input, KeyRule};
use crate::numbers::{self, counted, grouped, percent, size};
use crate::output::{Printer, is_same_file, note};
use crate::state::{Filter, State};

/// Describe filter files and verify their checksums
#[derive(Args)]
#[command(after_long_help = "\
Recognises the files that bloomline and its library write. Each file is
read whole to verify its checksum. A file that is missing or damaged is
reported on standard error, and the others are described; the exit
status is then 2. With `--plot -`, only the chart is printed.

With --files, also lists the files of an index, with their sizes, times of the
last change, numbers of distinct keys, and states: as indexed, changed, gone, or
not read, so that they possibly have every key.

With --as-json, each file has an object. Its fields depend on the kind:
  all              file, bytes, kind, is_intact
  all but index    seed, k (not frontier), false_positive_rate (of the
                   bits set now; not bank)
  blocked, standard, counting, and a state that does not grow:
                   fill_ratio, known_keys (null if not counted),
                   estimated_keys (null if too full), standard_error,
                   version (of the format), hash
  blocked          modules, blocks (of all modules)
  standard         bits
  counting         blocks, saturated_counters
  scalable         modules, blocks, filters, inserted_keys,
                   initial_capacity, requested_false_positive_rate
  bank             blocks (of each slot), slots, known_keys (of each)
  index            files, banks, key_options, known_keys (of each file, in
                   sum), folders (of which all files are in it),
                   requested_false_positive_rate; with --files, listed, an
                   array of objects of file, size, modified (in nanoseconds
                   since 1970), keys and state
  state            modules, blocks, keys, capacity, is_growing,
                   key_options (null if not recorded),
                   requested_false_positive_rate; if it grows, filters
                   and inserted_keys
  frontier         queued_items, accepted_items, capacity (null if it
                   grows)

Examples:
  bloomline info keys.bloom
  bloomline info --as-json *.bloom | jq .false_positive_rate
  bloomline info --plot blocks.svg keys.bloom")]
pub struct Arguments {
    /// Files to describe; standard input if -
    #[arg(value_name = "FILTER", required = true)]
    filters: Vec<PathBuf>,
    /// Print as JSON, one object per file
    #[arg(long)]
    as_json: bool,
    /// List the files of an index
    #[arg(long)]
    files: bool,
    /// Plot how full the blocks are, and the model
    #[arg(long, value_name = "FILE.svg", value_parser = PathBufValueParser::new().try_map(svg))]
    plot: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { filters, plot, .. } = arguments;
    if let Some(plot) = plot {
        ensure!(filters.len() == 1, "--plot: shows one filter, not {} (name one)", filters.len());
        ensure!(
            !is_same_file(plot, &filters[0]),
            "{}: is the filter, and the plot would replace it (choose another file)",
            filters[0].display()
        );
    }
    chart::is_printed(plot.as_ref(), arguments.as_json)?;
    let (mut printer, mut failed, mut is_first) = (Printer::new(), None, true);
    for path in filters {
        let error = match FilterFile::open(path) {
            Ok(file) => describe(&file, arguments, &mut is_first, &mut printer)?,
            Err(error) => Some(error),
        };
        // `main` reports the last one.
        if let Some(earlier) = error.and_then(|error| failed.replace(error)) {
            note(format_args!("{earlier:#}"));
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Returns what is wrong with the file, and fails if nothing can be printed or plotted.
fn describe(
    file: &FilterFile,
    arguments: &Arguments,
    is_first: &mut bool,
    printer: &mut Printer,
) -> Result<Option<Error>> {
    let about = match About::new(file, arguments.files) {
        Ok(about) => about,
        Err(error) => return Ok(Some(error)),
    };
    let plot = arguments.plot.as_ref().filter(|_| about.damage.is_none());
    let blocks = about.lanes.and_then(|lanes| match lanes.as_chunks() {
        (blocks, []) => Some(blocks),
        _ => None,
    });
    ensure!(
        plot.is_none() || blocks.is_some(),
        "{}: does not consist of the blocks of one filter, which a plot shows (omit --plot)",
        file.name
    );
    if arguments.filters.len() > 1 && !arguments.as_json {
        let separator = if *is_first { "" } else { "\n" };
        printer.print(format!("{separator}{}:\n", file.name))?;
    }
    *is_first = false;
    if !chart::is_printed(arguments.plot.as_ref(), arguments.as_json)? {
        printer.print(about.text(arguments.as_json))?;
    }
    if let Some((path, blocks)) = plot.zip(blocks) {
        plot_fill(blocks, about.k, about.keys_per_block, path)?;
    }
    Ok(about.damage)
}

/// What is known of a file, for people and as JSON.
#[derive(Default)]
struct About<'a> {
    rows: Vec<(&'static str, String)>,
    /// Whether the files of an index are wanted, and a line for each.
    lists_files: bool,
    list: String,
    json: Map<String, Value>,
    /// What is wrong with a file, although it can be described.
    damage: Option<Error>,
    k: u32,
    fpr: Option<f64>,
    /// The mean, estimated, of a blocked filter.
    keys_per_block: Option<f64>,
    /// The bytes of a blocked filter, to be plotted.
    lanes: Option<&'a [u8]>,
}

impl<'a> About<'a> {
    fn new(file: &'a FilterFile, lists_files: bool) -> Result<Self> {
        let (content, bytes) = (file.content()?, file.bytes());
        let mut about = Self { lists_files, ..Self::default() };
        about.set("file", &*file.name);
        about.set("bytes", bytes.len());
        about.damage = file.verify(&content).err();
        let (kind, text) = content.kind();
        let more = match &content {
            Content::Blocked(_) | Content::Standard(_) => "",
            Content::Counting(_) => ", from which keys can be removed",
            Content::Scalable(_) | Content::State(State { filter: Filter::Growing(_), .. }) => {
                ", which grows"
            }
            Content::State(_) => ", of fixed size",
            Content::Frontier(_) => ": a queue, and a filter of all items ever accepted",
            Content::Bank(_) => ": one lookup for many filters",
            Content::Index(_) => ": one lookup for many files",
        };
        about.fact("kind", format!("{text}{more}"), "kind", kind);
        let short =
            if bytes.len() < 1000 { String::new() } else { format!(", {}", size(bytes.len() as u64)) };
        about.row("size", counted(bytes.len() as u64, "byte") + &short);
        match &content {
            Content::Blocked(view) => about.blocked(bytes, view)?,
            Content::Standard(filter) => {
                about.set("bits", filter.bit_len());
                about.shape(counted(filter.bit_len(), "bit"), filter.k());
                about.footer(bytes)?;
                about.bits(filter.fill_ratio(), filter.estimated_fpr());
                about.keys(filter.known_keys(), filter.estimated_keys());
            }
            Content::Counting(filter) => {
                let bits = filter.as_filter();
                let n_blocks = bits.n_blocks() as u64;
                about.set("blocks", n_blocks);
                let blocks = counted(n_blocks, "block");
                about.shape(format!("{blocks} of 64 bytes and 256 of counters"), bits.k());
                about.footer(bytes)?;
                let saturated = filter.saturated_counters();
                let text = format!("{} of {} counters", grouped(saturated), grouped(512 * n_blocks));
                about.fact("saturated", text, "saturated_counters", saturated);
                about.bits(bits.fill_ratio(), bits.estimated_fpr());
                about.keys(bits.known_keys(), bits.estimated_keys());
            }
            Content::Scalable(filter) => {
                let capacity = filter.initial_capacity();
                let text = format!("{} at first", counted(capacity, "key"));
                about.fact("capacity", text, "initial_capacity", capacity);
                about.scalable(filter);
                about.requested_fpr(filter.fpr());
            }
            Content::State(state) => about.state(bytes, state)?,
            Content::Frontier(frontier) => about.frontier(frontier),
            Content::Bank(bank) => about.bank(bank),
            Content::Index(index) => about.index(index),
        }
        if let Some(fpr) = about.fpr {
            about.fact("FPR", percent(fpr), "false_positive_rate", fpr);
        }
        about.set("is_intact", about.damage.is_none());
        Ok(about)
    }

    fn state(&mut self, bytes: &'a [u8], state: &State) -> Result<()> {
        let is_growing = matches!(state.filter, Filter::Growing(_));
        self.set("is_growing", is_growing);
        self.fact("keys", format!("at most {}", grouped(state.keys)), "keys", state.keys);
        let at_first = if is_growing { " at first" } else { "" };
        let capacity = counted(state.capacity, "key") + at_first;
        self.fact("capacity", capacity, "capacity", state.capacity);
        match &state.filter {
            Filter::Fixed(filter) => {
                self.blocked(&bytes[..bytes.len() - state.footer_len()], &filter.as_view())?;
            }
            Filter::Growing(filter) => self.scalable(filter),
        }
        let options = state.rule.as_ref().map(KeyRule::options);
        let text = options.clone().unwrap_or_else(|| "not recorded".into());
        self.fact("key options", text, "key_options", options);
        self.requested_fpr(state.fpr);
        Ok(())
    }

    /// A blocked filter and its standalone bytes.
    fn blocked(&mut self, bytes: &'a [u8], view: &BloomView) -> Result<()> {
        let (n_blocks, lanes) = (view.n_blocks() as u64, view.byte_len() as u64 / 8);
        let n_modules = view.n_modules() as u64;
        self.set("modules", n_modules);
        self.set("blocks", n_blocks);
        let mut size = if lanes == 8 * n_blocks {
            format!("{} of 64 bytes", counted(n_blocks, "block"))
        } else {
            format!("{} of 8 bytes, a short filter", counted(lanes, "lane"))
        };
        if n_modules > 1 {
            size += &format!(" in {n_modules} modules");
        }
        self.shape(size, view.k());
        let n_lanes = self.footer(bytes)?;
        self.bits(view.fill_ratio(), view.estimated_fpr());
        let estimated = view.estimated_keys();
        self.keys(view.known_keys(), estimated);
        // By the bits, because a union with a smaller filter puts a key in several blocks.
        let per_bit = -(1.0 - view.fill_ratio()).ln();
        self.keys_per_block = estimated.map(|_| BLOCK_BITS as f64 * per_bit / f64::from(view.k()));
        // Before the checksums of modules, if there are any.
        self.lanes = Some(&bytes[..8 * n_lanes as usize]);
        Ok(())
    }

    fn scalable(&mut self, filter: &ScalableBloomFilter) {
        let (n_filters, n_blocks) = (filter.filters().len() as u64, filter.byte_len() as u64 / 64);
        self.set("filters", n_filters);
        self.set("blocks", n_blocks);
        let n_modules = filter.filters().first().map_or(1, BloomFilter::n_modules) as u64;
        self.set("modules", n_modules);
        let mut filters = counted(n_filters, "filter");
        if n_modules > 1 {
            filters += &format!(" of {n_modules} modules");
        }
        let size = format!("{filters}, {} of 64 bytes", counted(n_blocks, "block"));
        self.shape(size, filter.filters().first().map_or(0, BloomFilter::k));
        self.seed(filter.seed());
        let keys = filter.inserted_keys();
        self.fact("inserted keys", grouped(keys), "inserted_keys", keys);
        self.fpr = Some(filter.estimated_fpr());
    }

    fn frontier(&mut self, frontier: &Frontier<Vec<u8>>) {
        let (queued, accepted) = (frontier.len() as u64, frontier.accepted());
        self.fact("queued items", format!("{}, exact", grouped(queued)), "queued_items", queued);
        self.fact("accepted items", format!("{}, exact", grouped(accepted)), "accepted_items", accepted);
        let mut capacity = frontier.capacity().map_or("grows".into(), |items| counted(items, "item"));
        if frontier.is_over_capacity() {
            capacity += ", exceeded: new items are dropped more often than requested";
        }
        self.fact("capacity", capacity, "capacity", frontier.capacity());
        self.seed(frontier.seed());
        self.fpr = Some(frontier.estimated_fpr());
    }

    fn bank(&mut self, bank: &BankView<'_>) {
        let (slots, n_blocks) = (bank.slots(), bank.sizing().n_blocks() as u64);
        self.fact("slots", grouped(slots as u64), "slots", slots);
        self.set("blocks", n_blocks);
        self.shape(format!("{} of 64 bytes per slot", counted(n_blocks, "block")), bank.sizing().k());
        self.seed(bank.seed());
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

    fn index(&mut self, index: &IndexView<'_>) {
        let footer = index.footer();
        let (folders, listed): (Vec<_>, Vec<_>) = names(index).partition(|(_, name)| is_folder(name));
        let folders: Vec<_> = folders.into_iter().map(|(_, name)| String::from_utf8_lossy(name)).collect();
        let (files, banks) = (listed.len(), footer.ranges(0).count());
        self.fact(
            "files",
            format!("{} in {}", grouped(files as u64), counted(banks as u64, "bank")),
            "files",
            files,
        );
        self.set("banks", banks);
        if !folders.is_empty() {
            self.row("folders", folders.join(" "));
        }
        self.set("folders", folders);
        self.fact("key options", footer.rule().into(), "key_options", footer.rule());
        let keys: Option<u64> =
            listed.iter().try_fold(0_u64, |sum, &(file, _)| sum.checked_add(index.known_keys(file)?));
        let text =
            keys.map_or("not known of all files".into(), |keys| format!("{} in all files", grouped(keys)));
        let row = match Input::of_recorded(footer.rule()).map(|input| input.unit()) {
            Some("word") => "distinct words",
            Some("field") => "distinct fields",
            Some(_) => "distinct lines",
            None => "distinct keys",
        };
        self.fact(row, text, "known_keys", keys);
        if self.lists_files {
            self.list(index, &listed);
        }
        self.checksum();
        self.requested_fpr(footer.fpr());
    }

    fn list(&mut self, index: &IndexView<'_>, files: &[(usize, &[u8])]) {
        let (states, mut listed) = (states(index), Vec::new());
        self.list = format!("\n{:>15} {:20} {:>11} {:10} {}\n", "size", "modified", "keys", "state", "file");
        for &(file, name) in files {
            let version = index.version(file).unwrap_or_default();
            let name = String::from_utf8_lossy(name);
            let (keys, state) = (index.known_keys(file), states[file].name());
            let modified = version.modified;
            listed.push(json!({
                "file": name, "size": version.size, "modified": modified, "keys": keys, "state": state,
            }));
            let [size, keys] = [Some(version.size), keys].map(|n| n.map_or("?".into(), grouped));
            self.list += &format!(
                "{size:>15} {:20} {keys:>11} {state:10} {}\n",
                modified.and_then(date).unwrap_or("?".into()),
                name.escape_debug()
            );
        }
        self.set("listed", listed);
    }

    fn shape(&mut self, size: String, k: u32) {
        self.k = k;
        self.fact("shape", format!("{size}, k = {k}"), "k", k);
    }

    /// Returns the filter's size, in the unit of its kind.
    fn footer(&mut self, bytes: &[u8]) -> Result<u64> {
        let StandaloneFooter { seed, hash_id, version, size, .. } = StandaloneFooter::read(bytes)?;
        self.fact("hash", format!("{hash_id}, wyhash final version 3"), "hash", hash_id);
        self.fact("format", format!("version {version}"), "version", version);
        self.seed(seed);
        Ok(size)
    }

    fn seed(&mut self, seed: u64) {
        self.fact("seed", seed.to_string(), "seed", seed);
        self.checksum();
    }

    fn checksum(&mut self) {
        let verdict = if self.damage.is_none() { "valid" } else { "INVALID: the file is damaged" };
        self.row("checksum", verdict.into());
    }

    fn bits(&mut self, fill_ratio: f64, fpr: f64) {
        self.fact("fill ratio", percent(fill_ratio), "fill_ratio", fill_ratio);
        self.fpr = Some(fpr);
    }

    fn keys(&mut self, known: Option<u64>, estimated: Option<KeyEstimate>) {
        let exact = |keys| format!("{}, exact", grouped(keys));
        let text = known.map_or_else(|| numbers::estimate(estimated), exact);
        self.fact("distinct keys", text, "known_keys", known);
        self.set("estimated_keys", estimated.map(|estimate| estimate.keys));
        self.set("standard_error", estimated.map(|estimate| estimate.standard_error));
    }

    fn requested_fpr(&mut self, fpr: f64) {
        self.fact("requested FPR", percent(fpr), "requested_false_positive_rate", fpr);
    }

    /// A row of the text, and the same as a field of the JSON object.
    fn fact(&mut self, row: &'static str, text: String, field: &str, value: impl Into<Value>) {
        self.row(row, text);
        self.set(field, value);
    }

    fn row(&mut self, name: &'static str, text: String) {
        self.rows.push((name, text));
    }

    fn set(&mut self, field: &str, value: impl Into<Value>) {
        self.json.insert(field.into(), value.into());
    }

    fn text(&self, json: bool) -> String {
        if json {
            return format!("{:#}\n", Value::from(self.json.clone()));
        }
        let rows: String = self.rows.iter().map(|(name, text)| format!("{name:17}{text}\n")).collect();
        rows + &self.list
    }
}

/// A time in nanoseconds since 1970, of which text has dates to the year 9999.
fn date(nanoseconds: i64) -> Option<String> {
    let time = UNIX_EPOCH + Duration::from_nanos(nanoseconds.try_into().ok()?);
    Some(humantime::format_rfc3339_seconds(time).to_string())
}

const BLOCK_BITS: usize = 512;

fn plot_fill(blocks: &[[u8; 64]], k: u32, keys_per_block: Option<f64>, path: &Path) -> Result<()> {
    let mut counts = vec![0_u64; BLOCK_BITS + 1];
    for block in blocks {
        counts[block.iter().map(|byte| byte.count_ones() as usize).sum::<usize>()] += 1;
    }
    let n_blocks = blocks.len() as f64;
    let model = keys_per_block.map(|keys| fill_model(keys, k));
    let expected = model.as_deref().unwrap_or_default();
    let is_used = |&x: &usize| counts[x] > 0 || expected.get(x).is_some_and(|share| share * n_blocks > 0.5);
    let used = || (0..=BLOCK_BITS).filter(is_used);
    let (first, last) = (used().next().unwrap_or(0), used().next_back().unwrap_or(BLOCK_BITS));
    let most = counts.iter().map(|&count| count as f64).chain(expected.iter().map(|share| share * n_blocks));
    let most = most.fold(1.0, f64::max);
    let note = keys_per_block.map(|keys| format!("\nmodel: {keys:.1} keys per block in the mean, Poisson"));
    let bar = |x: usize| (x as f64 - 0.5, x as f64 + 0.5, counts[x] as f64);
    let line = |_| Line {
        name: "model",
        color: ORANGE,
        points: used().map(|x| (x as f64, expected[x] * n_blocks)).collect(),
        width: 3,
        dot: 0,
    };
    let (n_blocks_text, verb) =
        (counted(blocks.len() as u64, "block"), if blocks.len() == 1 { "is" } else { "are" });
    let range = (first as f64 - 3.0).max(-0.5)..(last as f64 + 4.0).max(11.0);
    let chart = Chart {
        title: &format!("How full the {n_blocks_text} {verb}, k = {k}{}", note.unwrap_or_default()),
        x: Axis { title: "bits set, of the 512 in a block", range, n_ticks: 8, label: |x| x.to_string() },
        y: Axis {
            title: "blocks",
            range: 0.0..1.1 * most,
            n_ticks: (most as usize + 1).min(8),
            label: |y| grouped(y as u64),
        },
        bars: used().filter(|&x| counts[x] > 0).map(bar).collect(),
        lines: model.iter().map(line).collect(),
        mark: None,
    };
    chart::write(&chart, path)
}

/// The fraction of blocks with each number of bits set. The keys of a block are Poisson distributed. The probes of a
/// key are in different lanes, so they find their bits set or clear independently.
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
        // The number of probes that find a clear bit is binomial. This goes from n = k down.
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
