//! `bloomline info`
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use bloomline::StandaloneFooter;
use clap::Args;
use serde_json::json;

use crate::chart::{Axis, Chart, Line, ORANGE};
use crate::filter_file::FilterFile;
use crate::input::is_same_file;
use crate::numbers::{self, grouped, percent, size};
use crate::output::Printer;

/// Describe a filter file and verify its checksum
#[derive(Args)]
#[command(after_help = "\
Reads the whole file to verify its checksum. Exit status: 2 if it is damaged.

Examples:
  bloomline info keys.bloom
  bloomline info --json keys.bloom | jq .false_positive_rate
  bloomline info --plot blocks.svg keys.bloom       plot how full the blocks are")]
pub struct Arguments {
    /// Filter to describe
    #[arg(value_name = "FILTER")]
    filter: PathBuf,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// Plot how many blocks have how many bits set, and what the model predicts
    #[arg(long, value_name = "FILE.svg")]
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
    let view = file.view()?;
    let verdict = view.verify();
    let filter = view.to_filter();
    let footer = StandaloneFooter::read(file.bytes())?;
    let (version, hash_id) = (footer.version, footer.hash_id);
    let estimated = filter.estimated_keys();
    let (fill, fpr) = (filter.fill_ratio(), filter.estimated_fpr());
    let text = if arguments.json {
        let text = json!({
            "file": arguments.filter.display().to_string(),
            "bytes": file.bytes().len(),
            "blocks": view.n_blocks(),
            "k": view.k(),
            "seed": view.seed(),
            "hash": hash_id,
            "version": version,
            "is_intact": verdict.is_ok(),
            "fill_ratio": fill,
            "known_keys": view.known_keys(),
            "estimated_keys": estimated.keys(),
            "standard_error": estimated.standard_error(),
            "false_positive_rate": fpr,
        });
        format!("{text:#}\n")
    } else {
        let known = |keys| format!("{}, exact", grouped(keys));
        let keys = view.known_keys().map_or_else(|| numbers::estimate(estimated), known);
        let bytes = file.bytes().len() as u64;
        let rows = [
            ("size", format!("{} bytes, {}", grouped(bytes), size(bytes))),
            ("shape", format!("{} blocks of 64 bytes, k = {}", grouped(view.n_blocks() as u64), view.k())),
            ("seed", view.seed().to_string()),
            ("hash", format!("{hash_id}, wyhash final version 3")),
            ("format", format!("version {version}")),
            (
                "checksum",
                if verdict.is_ok() { "valid".into() } else { "INVALID: the filter is damaged".into() },
            ),
            ("fill ratio", percent(fill)),
            ("distinct keys", keys),
            ("FPR", percent(fpr)),
        ];
        rows.map(|(name, text)| format!("{name:17}{text}\n")).concat()
    };
    Printer::new().print(text)?;
    if let Err(error) = verdict {
        return Err(file.error(error));
    }
    if let Some(path) = &arguments.plot {
        let lanes = &file.bytes()[..file.bytes().len() - StandaloneFooter::BYTES];
        plot(lanes, view.k(), estimated.keys(), path)?;
    }
    Ok(ExitCode::SUCCESS)
}

const BLOCK_BITS: usize = 512;

fn plot(lanes: &[u8], k: u32, estimated: Option<u64>, path: &Path) -> Result<()> {
    let (blocks, []) = lanes.as_chunks::<64>() else {
        bail!("a filter of {} bytes has no whole blocks to plot (omit --plot)", lanes.len());
    };
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
        title: &format!("How full the {} blocks are, k = {k}", grouped(blocks.len() as u64)),
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
