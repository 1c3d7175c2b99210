//! `bloomline build`
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};
use bloomline::sstable::FilterPolicy;
use bloomline::{BloomFilter, Sizing, sizing};
use clap::Args;
use serde_json::{Value, json};

use crate::filter_file::FilterFile;
use crate::filters::distinct;
use crate::guard::Output;
use crate::input::Input;
use crate::keys::Keys;
use crate::numbers::{self, counted, percent, size};
use crate::output::{Printer, check_json, note};

/// Build a filter of the keys in lines
#[derive(Args)]
#[command(after_long_help = "\
Without --keys, the filter is sized for the distinct keys of its input.
Files are read twice, first to count these keys, exactly up to 262,144
and above to 0.2%. A pipe is read once, in 8 bytes of memory per line.

With --keys or --like, input is read once, and memory is the filter and
a few megabytes. The size for --keys is rounded up, by 1% or one block
of each module at most, to one that `bloomline fold` can divide. With
--like, the filter has the modules, blocks, k and seed of FILTER, so
that both can be merged and compared.

For an --fpr below 0.05%, or 17.46 --bits-per-key or more, the filter has
two modules, which must both have a key, because it then needs at least
7% fewer bits. A lookup of an absent key still reads little more than one
cache line, but a lookup of a present key reads one line of each module,
so --modules 1 is faster if most keys that you look up are present. With
--modules 4, a further module is made wherever it saves 1%. `bloomline
plan` shows the size and the cache lines of each choice. Few keys get one
module, and rates below 1.8e-8 three or four.

If the keys are too many, so that the false-positive rate is surely more
than 1.1 times the requested one, nothing is written, and the exit
status is 2, unless you give --allow-overfull. With --like, the highest
rate that the k of FILTER is made for counts as requested, or the rate
of FILTER if that is higher.

The file appears whole or not at all. The JSON object has file, bytes,
modules, blocks (of all modules), k, seed, lines (those read), known_keys
(the distinct ones, or null if they were not counted), estimated_keys,
standard_error, fill_ratio, false_positive_rate and
requested_false_positive_rate.

Examples:
  bloomline build -o keys.bloom keys.txt.gz
  bloomline build -o keys.bloom --fpr 0.1% monday.txt tuesday.txt
  bloomline build -o tuesday.bloom --like monday.bloom tuesday.txt
  bloomline build -o users.bloom --csv --column user events.csv
  zcat log.gz | bloomline build -o lines.bloom --keys 100M
  find . -print0 | bloomline build -0 -o names.bloom
  bloomline build --length 16 -o uuids.bloom uuids.bin
  bloomline build --json question --ngrams 13 -o test.bloom test.jsonl")]
pub struct Arguments {
    #[command(flatten)]
    output: Output,
    /// Size the filter for N distinct keys, e.g. 250M
    #[arg(long, value_name = "N", value_parser = numbers::count_from_1, allow_negative_numbers = true)]
    keys: Option<usize>,
    #[command(flatten)]
    request: Request,
    /// Make a filter that can be merged with FILTER
    #[arg(long, value_name = "FILTER", conflicts_with_all = ["keys", "fpr", "bits_per_key", "modules"])]
    like: Option<PathBuf>,
    /// Write the filter even if it has too many keys
    #[arg(long, hide_short_help = true)]
    allow_overfull: bool,
    /// Print the summary as JSON
    #[arg(long)]
    as_json: bool,
    #[command(flatten)]
    input: Input,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    // Wrong numbers and names are reported before the first key is read.
    let request = arguments.request;
    request.sizing(0)?;
    // The requested rate. Where bits per key are requested, or the filter has few blocks, the rate of its keys counts
    // instead.
    let requested = request.rate().unwrap_or(0.0);
    let input = &arguments.input.resolve()?;
    let empty = |keys, sizing: Sizing| {
        BloomFilter::with_sizing(sizing)
            .and_then(|filter| filter.with_seed(input.rule.seed()))
            .map(|filter| (filter, requested.max(sizing.expected_fpr(keys as u64))))
    };
    if let Some(like) = &arguments.like {
        input.check_filter(like)?;
    }
    let sized = match (&arguments.like, arguments.keys) {
        (Some(path), _) => Some(empty_like(path, input)?),
        (None, Some(keys)) => Some(empty(keys, request.sizing(keys)?.rounded_to_fold())?),
        (None, None) => None,
    };
    check_json(arguments.as_json, &arguments.output.path)?;
    let name = arguments.output.path.display();
    ensure!(
        !input.has(&arguments.output.path),
        "{name}: is an input, and the filter would replace it (choose another output)"
    );
    // A filter without the keys of one file would call them absent.
    input.check()?;
    let output = arguments.output.create(&arguments.like)?;
    let built = if let Some(sized) = sized {
        insert_all(arguments, input, sized)?
    } else if input.is_of_files() {
        let (distinct, n_lines) = distinct::count(input, arguments.output.quiet)?;
        let keys = distinct.at_most();
        let built = insert_all(arguments, input, empty(keys, request.sizing(keys)?)?)?;
        // The files may have grown since they were counted.
        let known_keys = distinct.known().filter(|_| built.n_lines == n_lines);
        Built { known_keys, ..built }
    } else {
        collect(arguments, input)?
    };
    let overfull = built.overfull();
    if let Some(overfull) = overfull.as_ref().filter(|_| !arguments.allow_overfull) {
        bail!("{overfull}; nothing was written ({}, or give --allow-overfull)", built.remedy());
    }
    output.write(|file| built.filter.write_standalone(file))?;
    if arguments.as_json {
        Printer::new().print_json(&built.json())?;
    } else if !arguments.output.quiet {
        built.say();
    }
    if let Some(overfull) = overfull.filter(|_| !arguments.output.quiet) {
        note(format_args!("{overfull} ({})", built.remedy()));
    }
    Ok(())
}

/// What a filter is sized for.
#[derive(Args, Clone, Copy)]
pub struct Request {
    /// Target false-positive rate [default: 1%]
    #[arg(long, value_name = "FPR", value_parser = numbers::share, allow_negative_numbers = true)]
    fpr: Option<f64>,
    /// Bits per key, instead of --fpr
    #[arg(long, value_name = "BITS", conflicts_with = "fpr", allow_negative_numbers = true)]
    bits_per_key: Option<f64>,
    /// Use at most N modules [default: 2 below an FPR of 0.05%, else 1]
    ///
    /// Give 1 if most keys that you look up are present, and 4 if the last percent
    /// of the bits matters more than time.
    #[arg(id = "modules", long = "modules", value_name = "N", value_parser = numbers::count, allow_negative_numbers = true)]
    most_modules: Option<usize>,
}

impl Request {
    pub fn of_rate(fpr: f64) -> Self {
        Self { fpr: Some(fpr), bits_per_key: None, most_modules: None }
    }

    /// The same with these bits per key.
    pub fn with_bits_per_key(self, bits: f64) -> Self {
        Self { fpr: None, bits_per_key: Some(bits), ..self }
    }

    /// Whether a rate or bits per key are given.
    pub fn is_given(self) -> bool {
        self.fpr.or(self.bits_per_key).is_some()
    }

    /// The rate, or `None` if bits per key are requested.
    pub fn rate(self) -> Option<f64> {
        if self.bits_per_key.is_some() { None } else { self.fpr.or(Some(0.01)) }
    }

    pub fn sizing(self, keys: usize) -> Result<Sizing, bloomline::Error> {
        let (keys, bits) = (keys as u64, self.bits_per_key.unwrap_or_default());
        match (self.rate(), self.most_modules) {
            (Some(fpr), None) => Sizing::for_fpr(keys, fpr),
            (Some(fpr), Some(most)) => Sizing::for_fpr_within(keys, fpr, most),
            (None, None) => Sizing::for_bits_per_key(keys, bits),
            (None, Some(most)) => Sizing::for_bits_per_key_within(keys, bits, most),
        }
    }

    /// The policy whose filters have these sizes.
    pub fn policy(self) -> Result<FilterPolicy, bloomline::Error> {
        let policy = match self.rate() {
            Some(fpr) => FilterPolicy::with_fpr(fpr)?,
            None => FilterPolicy::with_bits_per_key(self.bits_per_key.unwrap_or_default())?,
        };
        match self.most_modules {
            None => Ok(policy),
            Some(most) => policy.with_most_modules(most),
        }
    }
}

/// An empty filter of the same shape, and the rate up to which it may be filled. This is the rate of the file's filter,
/// or the highest rate that its k is made for if that is higher.
fn empty_like(path: &Path, input: &Input) -> Result<(BloomFilter, f64)> {
    let file = FilterFile::open(path)?;
    let like = file.view()?;
    input.rule.check_seed(&file.name, like.seed())?;
    let highest = highest_rate(like.k())?.powi(like.n_modules() as i32);
    let empty = BloomFilter::with_sizing(like.sizing())?.with_seed(like.seed())?;
    Ok((empty, highest.max(like.estimated_fpr())))
}

/// The rate at the fewest bits per key for which this k is the best.
fn highest_rate(k: u32) -> Result<f64> {
    let (mut too_few, mut enough) = (1.0 / 64.0, sizing::MAX_BITS_PER_KEY);
    while enough - too_few > 1e-9 * enough {
        let middle = (too_few + enough) / 2.0;
        *(if sizing::best_k(middle)? < k { &mut too_few } else { &mut enough }) = middle;
    }
    Ok(sizing::fpr(enough, k)?)
}

/// `rate` is the rate that the filter is sized for.
fn insert_all<'a>(
    arguments: &'a Arguments,
    input: &Input,
    (mut filter, rate): (BloomFilter, f64),
) -> Result<Built<'a>> {
    let (keys, mut n_keys) = (Keys::new(input, "building", arguments.output.quiet), 0);
    let n_lines = keys.hash_all(filter.seed(), |hashes| {
        n_keys += hashes.len() as u64;
        filter.insert_batch(hashes);
    })?;
    Ok(Built { arguments, filter, n_lines, n_keys, known_keys: None, rate })
}

/// Builds from a pipe, whose keys can be read only once, so that their number is known at the end.
fn collect<'a>(arguments: &'a Arguments, input: &Input) -> Result<Built<'a>> {
    let mut builder = arguments.request.policy()?.builder().with_seed(input.rule.seed())?;
    let keys = Keys::new(input, "reading", arguments.output.quiet);
    let n_lines = keys.hash_all(input.rule.seed(), |hashes| builder.insert_batch(hashes))?;
    let n_keys = builder.len() as u64;
    let filter = builder.finish()?;
    let known_keys = filter.known_keys();
    Ok(Built { arguments, filter, n_lines, n_keys, known_keys, rate: 1.0 })
}

struct Built<'a> {
    arguments: &'a Arguments,
    filter: BloomFilter,
    n_lines: u64,
    /// The keys read, repeated ones too.
    n_keys: u64,
    /// The number of distinct keys if they were counted.
    known_keys: Option<u64>,
    /// The false-positive rate that the filter was sized for.
    rate: f64,
}

impl Built<'_> {
    /// What to report if the filter surely has too many keys.
    fn overfull(&self) -> Option<String> {
        let filter = &self.filter;
        // The model's rate counts, because a small filter's own rate is above it by chance half the time.
        let least = filter.estimated_keys().map_or(u64::MAX, numbers::at_least).min(self.n_keys);
        let is_overfull = filter.sizing().expected_fpr(least) > 1.1 * self.rate;
        is_overfull.then(|| {
            let (fpr, rate) = (percent(filter.estimated_fpr()), percent(self.rate));
            let rate = match self.requested() {
                Some(requested) if requested == self.rate => format!("requested {rate}"),
                _ => format!("{rate} that it was sized for"),
            };
            let (name, lines) = (self.arguments.output.path.display(), counted(self.n_lines, "line"));
            format!("{name}: {lines} read, an FPR of {fpr}, not the {rate}")
        })
    }

    fn remedy(&self) -> &'static str {
        match self.arguments {
            Arguments { like: Some(_), .. } => "give --like a larger filter",
            Arguments { keys: Some(_), .. } => "raise --keys",
            _ => "the files have grown: build again",
        }
    }

    fn say(&self) {
        let filter = &self.filter;
        let modules = match filter.n_modules() {
            1 => String::new(),
            n_modules => format!(" in {n_modules} modules"),
        };
        let keys = match (self.known_keys, filter.estimated_keys()) {
            (Some(keys), _) => counted(keys, "distinct key"),
            (None, None) => "too many distinct keys to estimate".into(),
            (None, estimate) => numbers::estimate(estimate) + " distinct keys",
        };
        note(format_args!(
            "{}: {}, {keys}; {}{modules}, FPR {}",
            self.arguments.output.path.display(),
            counted(self.n_lines, "line"),
            size(filter.byte_len() as u64),
            percent(filter.estimated_fpr())
        ));
    }

    fn json(&self) -> Value {
        let filter = &self.filter;
        let estimated = filter.estimated_keys();
        json!({
            "file": self.arguments.output.path.display().to_string(),
            "bytes": filter.standalone_len(),
            "modules": filter.n_modules(),
            "blocks": filter.n_blocks(),
            "k": filter.k(),
            "seed": filter.seed(),
            "lines": self.n_lines,
            "known_keys": self.known_keys,
            "estimated_keys": estimated.map(|estimate| estimate.keys),
            "standard_error": estimated.map(|estimate| estimate.standard_error),
            "fill_ratio": filter.fill_ratio(),
            "false_positive_rate": filter.estimated_fpr(),
            "requested_false_positive_rate": self.requested(),
        })
    }

    fn requested(&self) -> Option<f64> {
        self.arguments.request.rate().filter(|_| self.arguments.like.is_none())
    }
}
