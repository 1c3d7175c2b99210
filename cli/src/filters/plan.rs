//! `bloomline plan`
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use bloomline::Sizing;
use bloomline::sizing::{self, standard::StandardSizing};
use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use serde_json::{Value, json};

use crate::filters::chart::{self, Axis, BLUE, Chart, Line, ORANGE, svg};
use crate::numbers::{self, counted, grouped, percent, short, size};
use crate::output::Printer;

/// Compute the size of a filter, its rate, or how many keys it takes
#[derive(Args)]
#[command(after_long_help = "\
Give two of --keys, --fpr (or --bits-per-key) and --bytes to compute the
third. A standard filter, whose probes go anywhere, is shown for
comparison: for the same --fpr, or else of the same size. A size for
--keys is the size that `build --keys` makes.

The JSON object has keys, blocks, bytes, bits_per_key, k,
false_positive_rate and standard, an object of bits, bytes,
bits_per_key, k and false_positive_rate. With `--plot -`, only the chart
is printed.

Examples:
  bloomline plan --keys 1e9 --fpr 0.01     how many bytes?
  bloomline plan --keys 1e9 --bytes 2GiB   what false-positive rate?
  bloomline plan --bytes 2GiB --fpr 0.1%   how many keys?
  bloomline plan --keys 1e6 --bits-per-key 12 --plot fpr.svg")]
pub struct Arguments {
    /// Distinct keys, e.g. 1000000 or 1e6
    #[arg(long, value_name = "N", value_parser = numbers::count_from_1, allow_negative_numbers = true)]
    keys: Option<usize>,
    /// Target false-positive rate, e.g. 1%
    #[arg(long, value_name = "FPR", value_parser = numbers::share, allow_negative_numbers = true)]
    fpr: Option<f64>,
    /// Bits per key
    #[arg(long, value_name = "BITS", conflicts_with = "fpr", allow_negative_numbers = true)]
    bits_per_key: Option<f64>,
    /// Size of the filter, e.g. 64MiB or 1.2GB
    #[arg(long, value_name = "BYTES", value_parser = numbers::bytes, allow_negative_numbers = true)]
    bytes: Option<usize>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// Plot the false-positive rate by number of keys
    #[arg(long, value_name = "FILE.svg", value_parser = PathBufValueParser::new().try_map(svg))]
    plot: Option<PathBuf>,
}

const BLOCK_BITS: u64 = 512;
/// Lower false-positive rates are below the rounding error of the model.
const LEAST: f64 = 1e-9;

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let is_chart_printed = chart::is_printed(arguments.plot.as_ref(), arguments.json)?;
    let (keys, sizing) = plan(arguments)?;
    supported(sizing.n_blocks())?;
    let standard = match arguments.fpr {
        Some(fpr) => StandardSizing::for_fpr(keys, fpr)?,
        None => {
            let k = sizing::standard::best_k(clamped_bits(sizing.n_blocks(), keys))?;
            StandardSizing::new(sizing.n_blocks() as u64 * BLOCK_BITS, k)?
        }
    };
    let text = if arguments.json {
        format!("{:#}\n", json(keys, sizing, standard))
    } else {
        table(keys, sizing, standard)
    };
    if !is_chart_printed {
        Printer::new().print(text)?;
    }
    if let Some(path) = &arguments.plot {
        plot(keys, sizing, standard, path)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The number of keys, and the filter for them.
fn plan(arguments: &Arguments) -> Result<(usize, Sizing)> {
    let bits_per_key = arguments.fpr.map(sizing::bits_per_key).transpose()?.or(arguments.bits_per_key);
    Ok(match (arguments.keys, bits_per_key, arguments.bytes) {
        // The size that `build --keys` makes.
        (Some(keys), Some(bits), None) => (keys, Sizing::for_bits_per_key(keys, bits)?.foldable()),
        (Some(keys), None, Some(bytes)) => {
            let n_blocks = blocks(bytes)?;
            (keys, Sizing::new(n_blocks, sizing::best_k(clamped_bits(n_blocks, keys))?)?)
        }
        (None, Some(bits), Some(bytes)) => {
            let n_blocks = blocks(bytes)?;
            (
                ((n_blocks as f64 * BLOCK_BITS as f64 / bits) as usize).max(1),
                Sizing::new(n_blocks, sizing::best_k(bits)?)?,
            )
        }
        _ => bail!("give two of --keys, --fpr (or --bits-per-key) and --bytes (see --help)"),
    })
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

/// Bits per key, or the maximum, at which k already is the largest.
fn clamped_bits(n_blocks: usize, keys: usize) -> f64 {
    (n_blocks as f64 * BLOCK_BITS as f64 / keys as f64).min(sizing::MAX_BITS_PER_KEY)
}

fn json(keys: usize, sizing: Sizing, standard: StandardSizing) -> Value {
    let (bytes, standard_bytes) = (sizing.byte_len() as u64, standard.bit_len().div_ceil(8));
    let bits_per_key = |bytes: u64| bytes as f64 * 8.0 / keys as f64;
    json!({
        "keys": keys,
        "blocks": sizing.n_blocks(),
        "bytes": bytes,
        "bits_per_key": bits_per_key(bytes),
        "k": sizing.k(),
        "false_positive_rate": sizing.fpr(keys as u64),
        "standard": {
            "bits": standard.bit_len(),
            "bytes": standard_bytes,
            "bits_per_key": bits_per_key(standard_bytes),
            "k": standard.k(),
            "false_positive_rate": standard.fpr(keys as u64),
        },
    })
}

fn table(keys: usize, sizing: Sizing, standard: StandardSizing) -> String {
    let mut table = String::new();
    // Large numbers need wider columns.
    let width = grouped((sizing.byte_len() as u64).max(keys as u64)).len().max(16) + 2;
    let mut row = |name: &str, ours: String, theirs: String| {
        table += &format!("{name:24}{ours:>width$}{theirs:>width$}\n");
    };
    let bytes = [sizing.byte_len() as u64, standard.bit_len().div_ceil(8)];
    row("", "bloomline".into(), "standard filter".into());
    row("keys", grouped(keys as u64), grouped(keys as u64));
    row("size", size(bytes[0]), size(bytes[1]));
    row("bytes", grouped(bytes[0]), grouped(bytes[1]));
    let bits = |bytes: u64| format!("{:.2}", bytes as f64 * 8.0 / keys as f64);
    row("bits per key", bits(bytes[0]), bits(bytes[1]));
    row("k, probes per key", sizing.k().to_string(), standard.k().to_string());
    row("blocks of 64 bytes", grouped(sizing.n_blocks() as u64), "-".into());
    row("cache lines per lookup", "1".into(), format!("up to {}", standard.k()));
    row("", String::new(), String::new());
    row("FPR with", String::new(), String::new());
    for keys in [keys / 2, keys, keys.saturating_mul(2)].into_iter().filter(|&keys| keys > 0) {
        let rates = [sizing.fpr(keys as u64), standard.fpr(keys as u64)];
        let rates = rates.map(|rate| if rate < LEAST { format!("under {LEAST:.0e}") } else { percent(rate) });
        let [ours, theirs] = rates;
        row(&format!("{:>23}", counted(keys as u64, "key")), ours, theirs);
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The false-positive rate while the filter fills, up to twice its keys.
fn plot(keys: usize, sizing: Sizing, standard: StandardSizing, path: &Path) -> Result<()> {
    let points = |fpr: &dyn Fn(u64) -> f64| {
        let point = |i: usize| {
            let keys = (keys as f64 * i as f64 / 50.0).max(1.0);
            (keys, fpr(keys as u64).log10())
        };
        (1..=100).map(point).collect::<Vec<_>>()
    };
    let ours = points(&|keys| sizing.fpr(keys));
    let theirs = points(&|keys| standard.fpr(keys));
    if ours.last().is_none_or(|point| point.1 < LEAST.log10()) {
        bail!("{}: nothing to plot, as the FPR stays under {LEAST:.0e} (omit --plot)", path.display());
    }
    // The rate of an almost empty filter is below the plot.
    let lowest = (ours[24].1.min(theirs[24].1) - 1.0).floor().max(LEAST.log10());
    let visible = |points: Vec<(f64, f64)>| points.into_iter().filter(|point| point.1 >= lowest).collect();
    Chart {
        title: &format!(
            "{}, k = {}: false-positive rate as keys are added",
            size(sizing.byte_len() as u64),
            sizing.k()
        ),
        x: Axis { title: "distinct keys", range: 0.0..2.0 * keys as f64, n_labels: 11, label: &short },
        y: Axis {
            title: "false-positive rate",
            range: lowest..0.0,
            n_labels: (1.0 - lowest) as usize,
            label: &|y| percent(10_f64.powf(y)),
        },
        bars: Vec::new(),
        bars_name: "",
        lines: vec![
            Line { name: "bloomline", color: ORANGE, points: visible(ours) },
            Line { name: "standard filter", color: BLUE, points: visible(theirs) },
        ],
        mark: Some((keys as f64, "planned")),
    }
    .write(path)
}
