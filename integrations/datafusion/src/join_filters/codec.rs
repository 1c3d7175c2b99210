//! The operators travel to executors as words of text.

use std::str::FromStr;
use std::sync::Arc;

use datafusion::execution::TaskContext;
use datafusion_common::config::{ConfigEntry, ExtensionOptions};
use datafusion_common::{Result, exec_datafusion_err, exec_err};
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};

use super::build::{self, JoinFilterBuildExec};
use super::filter::Plan;
use super::options::JoinFilterOptions;
use super::probe::{JoinFilterExec, Keys, Settings};

/// The first words, which end in the version of the encoding. The hashes need no version, because all versions of this
/// crate hash keys alike.
const PROBE: &str = "bloomline-join-filter-1";
const BUILD: &str = "bloomline-join-filter-build-1";

/// Encodes the operators of joins that filter themselves. It refuses all other operators, so compose it with the codec
/// that you have, as the last one of a
/// [`ComposedPhysicalExtensionCodec`](datafusion_proto::physical_plan::ComposedPhysicalExtensionCodec). On Ballista,
/// scheduler and executors need it.
#[derive(Debug)]
pub struct JoinFilterCodec;

impl PhysicalExtensionCodec for JoinFilterCodec {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Plan],
        _: &TaskContext,
        _: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Plan> {
        let text = str::from_utf8(bytes).unwrap_or_default();
        match (&text.split(' ').collect::<Vec<_>>()[..], inputs) {
            ([PROBE, share, least_share, columns, options @ ..], [input, keys]) => {
                if keys.schema() != build::schema() {
                    return exec_err!("a join filter has {} in place of hashes", keys.name());
                }
                let settings = Settings {
                    columns: parse_columns(columns, input)?,
                    share: parse(share)?,
                    least_share: parse(least_share)?,
                    options: parse_options(options)?,
                };
                Ok(Arc::new(JoinFilterExec::new(Arc::clone(input), Keys::of(Arc::clone(keys)), settings)))
            }
            ([BUILD, max_keys], [input]) => {
                Ok(Arc::new(JoinFilterBuildExec::new(Arc::clone(input), parse(max_keys)?)))
            }
            _ => exec_err!("these {} bytes are not a join filter of {} inputs", bytes.len(), inputs.len()),
        }
    }

    fn try_encode(
        &self,
        plan: Plan,
        bytes: &mut Vec<u8>,
        _: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let text = if let Some(probe) = plan.downcast_ref::<JoinFilterExec>() {
            let Settings { columns, share, least_share, options } = &probe.settings;
            let columns: Vec<_> = columns.iter().map(usize::to_string).collect();
            let mut text = format!("{PROBE} {share} {least_share} {}", columns.join(","));
            for ConfigEntry { key, value, .. } in options.entries() {
                text += &format!(" {key}={}", value.unwrap_or_default());
            }
            text
        } else if let Some(build) = plan.downcast_ref::<JoinFilterBuildExec>() {
            format!("{BUILD} {}", build.max_keys)
        } else {
            return exec_err!("{} is not a join filter", plan.name());
        };
        bytes.extend(text.into_bytes());
        Ok(())
    }
}

fn parse<T: FromStr>(word: &str) -> Result<T> {
    word.parse().map_err(|_| exec_datafusion_err!("a join filter has '{word}' in place of a number"))
}

/// All options, so that none is a default of the process that decodes.
fn parse_options(words: &[&str]) -> Result<JoinFilterOptions> {
    let mut options = JoinFilterOptions::default();
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        options.set(key, value)?;
    }
    options.check()?;
    let names = |word: &&str| word.split('=').next().map(str::to_owned);
    let given: Vec<_> = words.iter().filter_map(names).collect();
    let all: Vec<_> = options.entries().into_iter().map(|entry| entry.key).collect();
    if given == all {
        Ok(options)
    } else {
        exec_err!("a join filter has the options {given:?} in place of {all:?}")
    }
}

/// The columns of the keys, which the input must have.
fn parse_columns(list: &str, input: &Plan) -> Result<Vec<usize>> {
    let n = input.schema().fields().len();
    let columns = list.split(',').map(parse).collect::<Result<Vec<usize>>>()?;
    match columns.iter().find(|&&column| column >= n) {
        Some(column) => exec_err!("a join filter of column {column} has an input of {n} columns"),
        None => Ok(columns),
    }
}
