//! `bloomline fold`
#![forbid(unsafe_code)]

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use bloomline::Sizing;
use clap::Args;
use serde_json::json;

use crate::filter_file::FilterFile;
use crate::guard::Output;
use crate::numbers::{self, percent, size};
use crate::output::{Printer, check_json, note};
use crate::progress::Progress;

/// Shrink a filter without its keys
#[derive(Args)]
#[command(after_long_help = "\
The result is, bit for bit, the filter of the same keys with 1/N of the
blocks. A size from `build --keys` can be folded by 2 and by more. A size
from counted keys is exact, and may be a prime number of blocks. Without
--factor and --fpr, the error lists the factors that there are.

The JSON object has file, factor, modules, blocks (of all modules),
bytes (of the file), k and false_positive_rate.

Examples:
  bloomline fold -o small.bloom --factor 4 large.bloom
  bloomline fold -o keys.bloom --fpr 1% keys.bloom")]
pub struct Arguments {
    #[command(flatten)]
    output: Output,
    /// Fold to 1/N of the size
    #[arg(long, value_name = "N", value_parser = numbers::count, allow_negative_numbers = true)]
    factor: Option<usize>,
    /// Fold as far as the rate stays within FPR, e.g. 1%
    #[arg(long, value_name = "FPR", value_parser = numbers::share, allow_negative_numbers = true, conflicts_with = "factor")]
    fpr: Option<f64>,
    /// Print the result as JSON
    #[arg(long)]
    as_json: bool,
    /// Filter to shrink; standard input if -
    #[arg(value_name = "FILTER")]
    filter: PathBuf,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    check_json(arguments.as_json, &arguments.output.path)?;
    let output = arguments.output.create([&arguments.filter])?;
    let file = FilterFile::open(&arguments.filter)?;
    let n_bytes = file.bytes().len() as u64;
    let quiet = arguments.output.quiet;
    let progress = Progress::new("folding", Some(2 * n_bytes), quiet);
    let mut filter = file.filter()?;
    progress.add(n_bytes);
    let before = filter.sizing();
    let factors = factors(before.n_blocks() / before.n_modules());
    let shown = &file.name;
    match (arguments.factor, arguments.fpr) {
        (Some(factor), _) if factor != 1 && !factors.contains(&factor) => {
            let (blocks, sizes) = (numbers::blocks(before), sizes(before, &factors, factor));
            bail!("{shown}: {blocks} cannot be folded by {factor} ({sizes})");
        }
        (Some(factor), _) => filter.fold(factor).with_context(|| shown.clone())?,
        (None, Some(fpr)) => filter.shrink_to_fpr(fpr).with_context(|| shown.clone())?,
        (None, None) => bail!("{shown}: say how far to fold ({})", sizes(before, &factors, 1)),
    }
    progress.add(n_bytes);
    let fpr = filter.estimated_fpr();
    if let Some(requested) = arguments.fpr.filter(|&requested| fpr > requested) {
        bail!(
            "{shown}: FPR is already {}, above {} (build a larger filter)",
            percent(fpr),
            percent(requested)
        );
    }
    output.write(|file| filter.write_standalone(file))?;
    let (name, factor) = (arguments.output.path.display(), before.n_blocks() / filter.n_blocks());
    if arguments.as_json {
        Printer::new().print_json(&json!({
            "file": name.to_string(),
            "factor": factor,
            "modules": filter.n_modules(),
            "blocks": filter.n_blocks(),
            "bytes": filter.standalone_len(),
            "k": filter.k(),
            "false_positive_rate": fpr,
        }))?;
    } else if quiet {
        return Ok(());
    } else if let Some(least) = factors.first().filter(|_| factor == 1 && arguments.fpr.is_some()) {
        let next = filter.as_view().to_folded(*least)?.estimated_fpr();
        note(format_args!(
            "{name}: not folded: by {least}, the least factor of its blocks, FPR would be {}",
            percent(next)
        ));
    } else {
        let bytes = size(filter.byte_len() as u64);
        note(format_args!("{name}: folded by {factor}, {bytes}, FPR {}", percent(fpr)));
    }
    Ok(())
}

/// The factors from 2 on that a number of blocks can be folded by, in order.
fn factors(n_blocks: usize) -> Vec<usize> {
    let small: Vec<_> =
        (1..).take_while(|n| n <= &(n_blocks / n)).filter(|&n| n_blocks.is_multiple_of(n)).collect();
    let large = small.iter().rev().map(|n| n_blocks / n).filter(|n| !small.contains(n));
    small.iter().copied().chain(large).skip(1).collect()
}

/// The factors near the requested one, and the sizes that they make, for an error.
fn sizes(sizing: Sizing, factors: &[usize], factor: usize) -> String {
    const SHOWN: usize = 12;
    let near = factors.partition_point(|&other| other < factor);
    let first = near.saturating_sub(SHOWN / 2).min(factors.len().saturating_sub(SHOWN));
    let shown = factors.iter().skip(first).take(SHOWN);
    let texts: Vec<_> =
        shown.map(|factor| format!("{factor} for {}", size((sizing.byte_len() / factor) as u64))).collect();
    let mut text = match texts.len() {
        0 => "keep it as it is".into(),
        _ => format!("give --fpr, or --factor {}", texts.join(", ")),
    };
    if let Some(most) = factors.last().filter(|_| factors.len() > SHOWN) {
        text += &format!("; {} factors in all, to {most}", factors.len());
    }
    if factors.first().is_some_and(|&least| least > 10) {
        text += "; a size from `build --keys` has more factors";
    }
    text
}
