//! `bloomline plan`
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use bloomline::Sizing;
use bloomline::sizing::{self, ModularSizing, standard::StandardSizing};
use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use serde_json::{Value, json};

use crate::filters::chart::{self, Axis, BLUE, Chart, Line, ORANGE, PURPLE, svg};
use crate::filters::modules::{Modules, Request};
use crate::numbers::{self, counted, grouped, percent, short, size};
use crate::output::Printer;

/// Compute the size of a filter, its rate, or how many keys it takes
#[derive(Args)]
#[command(after_long_help = "\
Give two of --keys, --fpr (or --bits-per-key) and --bytes to compute the
third. A standard filter, whose probes go anywhere, is shown for
comparison: for the same --fpr, or else of the same size. Where `build`
makes several modules, a filter of one is compared with them in the same
way. A lookup of an absent key reads about one cache line in each; that
of a present key reads one for each module, so choose one module if most
keys are present. A size for --keys is the size that `build --keys`
makes with the same --modules. The lowest --fpr is 1.263e-8, which one
module reaches.

The JSON object has keys, blocks, bytes, bits_per_key, k,
false_positive_rate, modular (null if one module is enough), an object
of modules, blocks (of each), bytes, bits_per_key, k (of each),
false_positive_rate and lines_if_absent, and standard, an object of
bits, bytes, bits_per_key, k and false_positive_rate. With `--plot -`,
only the chart is printed.

Examples:
  bloomline plan --keys 1e9 --fpr 0.01     how many bytes?
  bloomline plan --keys 1e9 --bytes 2GiB   what false-positive rate?
  bloomline plan --bytes 2GiB --fpr 1%     how many keys?
  bloomline plan --keys 1e9 --fpr 1e-6 --modules 2
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
    #[command(flatten)]
    modules: Modules,
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
/// Lower false-positive rates would be below the rounding error of the model.
const LEAST: f64 = 1e-9;

pub fn run(arguments: &Arguments) -> Result<()> {
    let is_chart_printed = chart::is_printed(arguments.plot.as_ref(), arguments.json)?;
    let (keys, sizing) = plan(arguments)?;
    supported(sizing.n_blocks())?;
    let modular = modular(arguments, keys, sizing)?;
    let standard = match arguments.fpr {
        Some(fpr) => StandardSizing::for_fpr(keys, fpr)?,
        None => {
            let k = sizing::standard::best_k(clamped_bits(sizing.n_blocks(), keys))?;
            StandardSizing::new(sizing.n_blocks() as u64 * BLOCK_BITS, k)?
        }
    };
    let plan = Plan { keys, sizing, modular, standard };
    if !is_chart_printed {
        Printer::new().print(if arguments.json { format!("{:#}\n", plan.json()) } else { plan.table() })?;
    }
    arguments.plot.as_ref().map_or(Ok(()), |path| plan.plot(path))
}

/// A filter of each design for as many keys.
struct Plan {
    keys: usize,
    sizing: Sizing,
    modular: Option<ModularSizing>,
    standard: StandardSizing,
}

/// The number of keys, and the filter for them.
fn plan(arguments: &Arguments) -> Result<(usize, Sizing)> {
    if arguments.fpr.is_some_and(|fpr| fpr > 0.0 && fpr < sizing::MIN_FPR) {
        let lowest = sizing::MIN_FPR;
        bail!("--fpr: one module, which is compared, reaches {lowest:e} at the lowest (give at least that)");
    }
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

/// The filter of several modules for as many keys, if there is one.
fn modular(arguments: &Arguments, keys: usize, sizing: Sizing) -> Result<Option<ModularSizing>> {
    let bits = arguments.bits_per_key.unwrap_or(clamped_bits(sizing.n_blocks(), keys));
    let request = arguments.fpr.map_or(Request::BitsPerKey(bits), Request::Fpr);
    let modular = arguments.modules.sizing(keys, request)?;
    let n_modules = modular.n_modules();
    let modular = match (arguments.bytes, arguments.fpr) {
        (None, _) => modular.foldable(),
        (Some(_), Some(_)) => modular,
        // No larger than the bytes that were given.
        (Some(_), None) => ModularSizing::new(n_modules, sizing.n_blocks() / n_modules, modular.k())?,
    };
    Ok(Some(modular).filter(|_| n_modules > 1))
}

/// The cache lines that a lookup of an absent key reads in the mean. It reads on for each module that has the key by
/// mistake.
fn lines_if_absent(keys: usize, modular: ModularSizing) -> f64 {
    let rate = modular.fpr(keys as u64).powf(1.0 / modular.n_modules() as f64);
    (0..modular.n_modules() as i32).map(|before| rate.powi(before)).sum()
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
        let Self { keys, sizing, modular, standard } = *self;
        let (bytes, standard_bytes) = (sizing.byte_len() as u64, standard.bit_len().div_ceil(8));
        let bits_per_key = |bytes: u64| bytes as f64 * 8.0 / keys as f64;
        json!({
            "keys": keys,
            "blocks": sizing.n_blocks(),
            "bytes": bytes,
            "bits_per_key": bits_per_key(bytes),
            "k": sizing.k(),
            "false_positive_rate": sizing.fpr(keys as u64),
            "modular": modular.map(|modular| json!({
                "modules": modular.n_modules(),
                "blocks": modular.n_blocks(),
                "bytes": modular.byte_len(),
                "bits_per_key": bits_per_key(modular.byte_len() as u64),
                "k": modular.k(),
                "false_positive_rate": modular.fpr(keys as u64),
                "lines_if_absent": lines_if_absent(keys, modular),
            })),
            "standard": {
                "bits": standard.bit_len(),
                "bytes": standard_bytes,
                "bits_per_key": bits_per_key(standard_bytes),
                "k": standard.k(),
                "false_positive_rate": standard.fpr(keys as u64),
            },
        })
    }

    fn table(&self) -> String {
        let Self { keys, sizing, modular, standard } = *self;
        let mut table = String::new();
        // Large numbers need wider columns.
        let width = grouped((sizing.byte_len() as u64).max(keys as u64)).len().max(16) + 2;
        let mut row =
            |name: &str, ours: String, modules: &dyn Fn(ModularSizing) -> String, theirs: String| {
                let modules =
                    modular.map_or(String::new(), |modular| format!("{:>width$}", modules(modular)));
                table += &format!("{name:24}{ours:>width$}{modules}{theirs:>width$}\n");
            };
        let bytes = [sizing.byte_len() as u64, standard.bit_len().div_ceil(8)];
        let ours = if modular.is_some() { "1 module" } else { "bloomline" };
        row("", ours.into(), &|it| format!("{} modules", it.n_modules()), "standard filter".into());
        row("keys", grouped(keys as u64), &|_| grouped(keys as u64), grouped(keys as u64));
        row("size", size(bytes[0]), &|it| size(it.byte_len() as u64), size(bytes[1]));
        row("bytes", grouped(bytes[0]), &|it| grouped(it.byte_len() as u64), grouped(bytes[1]));
        let bits = |bytes: u64| format!("{:.2}", bytes as f64 * 8.0 / keys as f64);
        row("bits per key", bits(bytes[0]), &|it| bits(it.byte_len() as u64), bits(bytes[1]));
        let each = |it: ModularSizing, number: u64| format!("{} × {}", it.n_modules(), grouped(number));
        let k = sizing.k().to_string();
        row("k, probes per key", k, &|it| each(it, it.k().into()), standard.k().to_string());
        let blocks = grouped(sizing.n_blocks() as u64);
        row("blocks of 64 bytes", blocks, &|it| each(it, it.n_blocks() as u64), "-".into());
        let most = format!("up to {}", standard.k());
        let lines = |it| format!("{:.2}", lines_if_absent(keys, it));
        row("cache lines, absent key", "1".into(), &lines, most.clone());
        row("cache lines, present key", "1".into(), &|it| it.n_modules().to_string(), most);
        row("", String::new(), &|_| String::new(), String::new());
        row("FPR with", String::new(), &|_| String::new(), String::new());
        for keys in [keys / 2, keys, keys.saturating_mul(2)].into_iter().filter(|&keys| keys > 0) {
            let rate = |rate| if rate < LEAST { format!("under {LEAST:.0e}") } else { percent(rate) };
            let (name, keys) = (format!("{:>23}", counted(keys as u64, "key")), keys as u64);
            row(&name, rate(sizing.fpr(keys)), &|it| rate(it.fpr(keys)), rate(standard.fpr(keys)));
        }
        table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// The false-positive rate while the filter fills, up to twice its keys.
    fn plot(&self, path: &Path) -> Result<()> {
        let Self { keys, sizing, modular, standard } = *self;
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
        let visible =
            |points: Vec<(f64, f64)>| points.into_iter().filter(|point| point.1 >= lowest).collect();
        let shape = format!("{}, k = {}: ", size(sizing.byte_len() as u64), sizing.k());
        let (shape, name) =
            if modular.is_some() { ("", "bloomline, 1 module") } else { (&*shape, "bloomline") };
        let line = |name: String, color, points| Line { name, color, points: visible(points) };
        let lines = [
            Some(line(name.into(), ORANGE, ours)),
            modular.map(|it| {
                line(format!("bloomline, {} modules", it.n_modules()), PURPLE, points(&|keys| it.fpr(keys)))
            }),
            Some(line("standard filter".into(), BLUE, theirs)),
        ];
        Chart {
            title: &format!("{shape}false-positive rate as keys are added"),
            x: Axis { title: "distinct keys", range: 0.0..2.0 * keys as f64, n_labels: 11, label: &short },
            y: Axis {
                title: "false-positive rate",
                range: lowest..0.0,
                n_labels: (1.0 - lowest) as usize,
                label: &|y| percent(10_f64.powf(y)),
            },
            bars: None,
            lines: lines.into_iter().flatten().collect(),
            mark: Some((keys as f64, "planned")),
        }
        .write(path)
    }
}
