//! `bloomline plan`
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};
use bloomline::Sizing;
use bloomline::sizing::{self, standard::StandardSizing};
use bloomline_chart::{Axis, BLUE, Chart, Line, ORANGE};
use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use serde_json::{Value, json};

use crate::filters::build::Request;
use crate::filters::chart::{self, svg};
use crate::filters::sample::Sample;
use crate::input::{Input, SeenRule};
use crate::numbers::{self, counted, grouped, percent, short, size};
use crate::output::Printer;

/// Compute the size of a filter, its rate, or its number of keys
#[derive(Args)]
#[command(after_long_help = "\
Give two of --keys, --fpr (or --bits-per-key) and --bytes to compute the
third, or one of --keys and --bytes for an FPR of 1%. A standard filter,
whose probes go anywhere, is shown for comparison: for the same FPR, or
else of the same size.

The column \"bloomline\" is for `build` and `dedup`. A size for --keys is
the size that `build --keys` makes with the same --modules. The size of
`dedup --keys`, whose FPR is 1e-6 unless you give --fpr, is up to 1%
less, because it is not rounded up to fold. Without --keys, the filter of
dedup grows. At 1e-6, it is then 1.2 times as large when it is full, and
up to 2.8 times just after it has grown, but 3.5 times the first time. At
1%, these figures are 1.7, 3.6 and 4.5 times.

With several modules, a lookup of an absent key still reads about one
cache line, but a lookup of a present key one line of each module.
`bloomline help build` says when to choose fewer or more.

With FILEs, prints what they tell as a sample: the distinct keys of 1 GB of
lines, the size of their filter at several rates, and how many new lines or
paragraphs are then dropped in the mean. Larger corpora repeat more, and so
have fewer keys per GB. A filter for --keys is full when it has so many: then
`dedup --keys` stops, and without --keys it grows. The JSON object of a sample
has bytes, texts, keys, distinct_keys, keys_per_gb, and rates, an array of
objects of false_positive_rate, bytes_per_gb and dropped_if_new.

Else, the JSON object has keys, modules, blocks (of all modules), bytes,
bits_per_key, k (in each module), false_positive_rate, lines_if_absent,
and standard, an object of bits, bytes, bits_per_key, k and
false_positive_rate. With `--plot -`, only the chart is printed.

Examples:
  bloomline plan --keys 1e9                how many bytes, for 1%?
  bloomline plan --keys 1e9 --fpr 1e-6     and for dedup --keys 1e9?
  bloomline plan --keys 1e9 --bytes 2GiB   what false-positive rate?
  bloomline plan --bytes 2GiB --fpr 1%     how many keys?
  bloomline plan --keys 1e9 --fpr 1e-6 --modules 1
  bloomline plan --keys 1e6 --bits-per-key 12 --plot fpr.svg
  bloomline plan --json text --ngrams 13 sample.jsonl.gz
  bloomline plan --tokens 1e12 --fpr 0.1%  for n-grams")]
pub struct Arguments {
    /// Distinct keys, e.g. 1000000 or 1e6
    #[arg(long, value_name = "N", value_parser = numbers::count_from_1, allow_negative_numbers = true)]
    keys: Option<usize>,
    /// Tokens of the corpus, an upper bound of its n-grams
    #[arg(long, value_name = "N", conflicts_with = "keys", value_parser = numbers::count_from_1, allow_negative_numbers = true)]
    tokens: Option<usize>,
    #[command(flatten)]
    request: Request,
    /// Size of the filter, e.g. 64MiB or 1.2GB
    #[arg(long, value_name = "BYTES", value_parser = numbers::bytes, allow_negative_numbers = true)]
    bytes: Option<usize>,
    /// Print as JSON
    #[arg(long)]
    as_json: bool,
    /// Plot the false-positive rate by number of keys
    #[arg(long, value_name = "FILE.svg", value_parser = PathBufValueParser::new().try_map(svg))]
    plot: Option<PathBuf>,
    #[command(flatten)]
    seen: SeenRule,
    #[command(flatten)]
    input: Input,
}

const BLOCK_BITS: u64 = 512;
/// Lower false-positive rates of a module would be below the rounding error of the model.
const LEAST: f64 = 1e-9;
/// At lower ones it is more likely that two keys have one 64-bit hash.
const LEAST_SHOWN: f64 = 1e-20;

pub fn run(arguments: &Arguments) -> Result<()> {
    let is_chart_printed = chart::is_printed(arguments.plot.as_ref(), arguments.as_json)?;
    if arguments.input.files0_from.is_some() || !arguments.input.files.is_empty() {
        let Arguments { keys, tokens, bytes, plot, request, .. } = arguments;
        let is_alone = keys.or(*tokens).or(*bytes).is_none() && plot.is_none() && !request.is_given();
        ensure!(
            is_alone,
            "a sample is shown at several rates (omit the FILEs, or all other numbers and --plot)"
        );
        let input = Input { seen: arguments.seen, ..arguments.input.resolve()? };
        let sample = Sample::read(&input)?;
        let text = if arguments.as_json { format!("{:#}\n", sample.json()?) } else { sample.table()? };
        return Printer::new().print(text);
    }
    let (keys, sizing) = plan(arguments)?;
    supported(sizing.n_blocks())?;
    // The rate of --keys and --bytes is what they come to.
    let has_keys = arguments.keys.or(arguments.tokens).is_some();
    let is_computed = !arguments.request.is_given() && has_keys && arguments.bytes.is_some();
    let standard = match arguments.request.rate().filter(|_| !is_computed) {
        Some(fpr) => StandardSizing::for_fpr(keys as u64, fpr)?,
        None => {
            let bits_per_key = clamped_bits(sizing.n_blocks(), keys);
            let k = StandardSizing::for_bits_per_key(keys as u64, bits_per_key)?.k();
            StandardSizing::new(sizing.n_blocks() as u64 * BLOCK_BITS, k)?
        }
    };
    let plan = Plan { keys, sizing, standard };
    if !is_chart_printed {
        Printer::new().print(if arguments.as_json {
            format!("{:#}\n", plan.json())
        } else {
            plan.table()
        })?;
    }
    arguments.plot.as_ref().map_or(Ok(()), |path| plan.plot(path))
}

/// A filter of each design for as many keys.
struct Plan {
    keys: usize,
    sizing: Sizing,
    standard: StandardSizing,
}

/// The number of keys, and the filter for them.
fn plan(arguments: &Arguments) -> Result<(usize, Sizing)> {
    let request = arguments.request;
    Ok(match (arguments.keys.or(arguments.tokens), arguments.bytes) {
        // The size that `build --keys` makes.
        (Some(keys), None) => (keys, request.sizing(keys)?.rounded_to_fold()),
        (Some(keys), Some(bytes)) if !request.is_given() => (keys, of_size(request, keys, blocks(bytes)?)?),
        (None, Some(bytes)) => most_keys(request, blocks(bytes)?)?,
        _ => bail!("give --keys or --bytes, or both without --fpr and --bits-per-key (see --help)"),
    })
}

/// The best filter of at most `n_blocks` blocks.
fn of_size(request: Request, keys: usize, n_blocks: usize) -> Result<Sizing> {
    let bits = |n_blocks| clamped_bits(n_blocks, keys);
    // Not rounded up to one block more.
    let request = request.with_bits_per_key(bits(n_blocks) * (1.0 - 1e-12));
    let n_modules = request.sizing(keys)?.n_modules();
    let of_each = n_blocks / n_modules;
    Ok(Sizing::new(of_each * n_modules, sizing::best_k(bits(of_each))?)?.with_modules(n_modules)?)
}

/// The most keys for which `build` makes a filter of at most `n_blocks` blocks, and this filter.
fn most_keys(request: Request, n_blocks: usize) -> Result<(usize, Sizing)> {
    // Rounding can give few keys up to three modules more than many, each of which saves 1%.
    let saved = if n_blocks < 10_000 { 0.97 } else { 1.0 };
    let bits_per_key = saved * request.policy()?.bits_per_key();
    let keys_in = |n_blocks: usize| ((n_blocks as f64 * BLOCK_BITS as f64 / bits_per_key) as usize).max(1);
    let mut keys = keys_in(n_blocks);
    if request.sizing(keys).is_err() {
        // A rate as low as this is in reach for fewer keys, of which fewer have equal hashes.
        let mut enough = 1;
        while keys - enough > 1 + enough / 1_000_000 {
            let middle = enough + (keys - enough) / 2;
            *(if request.sizing(middle).is_ok() { &mut enough } else { &mut keys }) = middle;
        }
        keys = enough;
    }
    let n_modules = request.sizing(keys)?.n_modules();
    keys = keys.min(keys_in(n_blocks / n_modules * n_modules));
    loop {
        let sizing = request.sizing(keys)?;
        let found = sizing.n_blocks();
        if found <= n_blocks {
            return Ok((keys, sizing));
        }
        if keys == 1 {
            bail!("{} bytes are too few for this rate (give --bytes {})", 64 * n_blocks, 64 * found);
        }
        // Few keys get fewer modules, which need more bits, so not in one step.
        let excess = keys as f64 * ((found - n_blocks) as f64 / found as f64);
        keys -= 1 + (excess as usize).min(keys / 1_000);
    }
}

/// The cache lines that a lookup of an absent key reads in the mean. It reads on for each module that has the key by
/// mistake.
fn lines_if_absent(keys: usize, sizing: Sizing) -> f64 {
    let rate = sizing.expected_fpr(keys as u64).powf(1.0 / sizing.n_modules() as f64);
    (0..sizing.n_modules() as i32).map(|before| rate.powi(before)).sum()
}

fn blocks(bytes: usize) -> Result<usize> {
    match bytes / 64 {
        0 => bail!("{bytes} bytes are less than one block (give --bytes 64 or more)"),
        n_blocks => supported(n_blocks),
    }
}

fn supported(n_blocks: usize) -> Result<usize> {
    if n_blocks as u64 > u64::MAX / BLOCK_BITS {
        bail!("a filter of more than 2^64 bits is not supported (give fewer keys or bytes)");
    }
    Ok(n_blocks)
}

/// Bits per key, up to the maximum, from which on k does not grow.
fn clamped_bits(n_blocks: usize, keys: usize) -> f64 {
    (n_blocks as f64 * BLOCK_BITS as f64 / keys as f64).min(sizing::MAX_BITS_PER_KEY)
}

impl Plan {
    fn json(&self) -> Value {
        let Self { keys, sizing, standard } = *self;
        let (bytes, standard_bytes) = (sizing.byte_len() as u64, standard.bit_len().div_ceil(8));
        let bits_per_key = |bytes: u64| bytes as f64 * 8.0 / keys as f64;
        json!({
            "keys": keys,
            "modules": sizing.n_modules(),
            "blocks": sizing.n_blocks(),
            "bytes": bytes,
            "bits_per_key": bits_per_key(bytes),
            "k": sizing.k(),
            "false_positive_rate": sizing.expected_fpr(keys as u64),
            "lines_if_absent": lines_if_absent(keys, sizing),
            "standard": {
                "bits": standard.bit_len(),
                "bytes": standard_bytes,
                "bits_per_key": bits_per_key(standard_bytes),
                "k": standard.k(),
                "false_positive_rate": standard.expected_fpr(keys as u64),
            },
        })
    }

    fn table(&self) -> String {
        let Self { keys, sizing, standard } = *self;
        let mut table = String::new();
        // Large numbers need wider columns.
        let width = grouped((sizing.byte_len() as u64).max(keys as u64)).len().max(16) + 2;
        let mut row = |name: &str, ours: String, theirs: String| {
            table += &format!("{name:24}{ours:>width$}{theirs:>width$}\n");
        };
        let bytes = [sizing.byte_len() as u64, standard.bit_len().div_ceil(8)];
        let n_modules = sizing.n_modules();
        row("", "bloomline".into(), "standard filter".into());
        row("keys", grouped(keys as u64), grouped(keys as u64));
        row("size", size(bytes[0]), size(bytes[1]));
        row("bytes", grouped(bytes[0]), grouped(bytes[1]));
        let bits = |bytes: u64| format!("{:.2}", bytes as f64 * 8.0 / keys as f64);
        row("bits per key", bits(bytes[0]), bits(bytes[1]));
        let (mut k, mut lines) = (sizing.k().to_string(), "1".to_owned());
        if n_modules > 1 {
            row("modules", n_modules.to_string(), "-".into());
            k = format!("{n_modules} × {k}");
            lines = format!("{:.2}", lines_if_absent(keys, sizing));
        }
        row("k, probes per key", k, standard.k().to_string());
        row("blocks of 64 bytes", grouped(sizing.n_blocks() as u64), "-".into());
        let most = format!("up to {}", standard.k());
        row("cache lines, absent key", lines, most.clone());
        row("cache lines, present key", n_modules.to_string(), most);
        row("", String::new(), String::new());
        row("FPR with", String::new(), String::new());
        let least = self.least();
        for keys in [keys / 2, keys, keys.saturating_mul(2)].into_iter().filter(|&keys| keys > 0) {
            let rate = |rate| if rate < least { format!("under {least:.0e}") } else { percent(rate) };
            let (name, keys) = (format!("{:>23}", counted(keys as u64, "key")), keys as u64);
            row(&name, rate(sizing.expected_fpr(keys)), rate(standard.expected_fpr(keys)));
        }
        table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// Lower rates are not shown.
    fn least(&self) -> f64 {
        LEAST.powi(self.sizing.n_modules() as i32).max(LEAST_SHOWN)
    }

    /// The false-positive rate while the filter fills, up to twice its keys.
    fn plot(&self, path: &Path) -> Result<()> {
        let Self { keys, sizing, standard } = *self;
        let points = |fpr: &dyn Fn(u64) -> f64| {
            let point = |i: usize| {
                let keys = (keys as f64 * i as f64 / 50.0).max(1.0);
                (keys, fpr(keys as u64).log10())
            };
            (1..=100).map(point).collect::<Vec<_>>()
        };
        let ours = points(&|keys| sizing.expected_fpr(keys));
        let theirs = points(&|keys| standard.expected_fpr(keys));
        let least = self.least();
        if ours.last().is_none_or(|point| point.1 < least.log10()) {
            bail!("{}: nothing to plot, as the FPR stays under {least:.0e} (omit --plot)", path.display());
        }
        // The rate of an almost empty filter is below the plot.
        let lowest = (ours[24].1.min(theirs[24].1) - 1.0).floor().max(least.log10());
        let line = |name, color, points: Vec<_>| {
            let points = points.into_iter().filter(|point: &(_, f64)| point.1 >= lowest).collect();
            Line { name, color, points, width: 3, dot: 0 }
        };
        let modules = match sizing.n_modules() {
            1 => String::new(),
            n_modules => format!("{n_modules} modules, "),
        };
        let (bytes, k) = (size(sizing.byte_len() as u64), sizing.k());
        let chart = Chart {
            title: &format!("{bytes}, {modules}k = {k}, planned for {}", counted(keys as u64, "key")),
            x: Axis { title: "distinct keys", range: 0.0..2.0 * keys as f64, n_ticks: 5, label: short },
            y: Axis {
                title: "false-positive rate",
                range: lowest..0.0,
                n_ticks: (1.0 - lowest).min(11.0) as usize,
                label: |y| percent(10_f64.powf(y)),
            },
            bars: Vec::new(),
            lines: vec![line("bloomline", ORANGE, ours), line("standard filter", BLUE, theirs)],
            mark: Some((keys as f64, "planned")),
        };
        chart::write(&chart, path)
    }
}
