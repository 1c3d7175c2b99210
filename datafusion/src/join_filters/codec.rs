//! How the operators travel to executors: as words of text.

use std::str::FromStr;
use std::sync::Arc;

use datafusion::execution::TaskContext;
use datafusion_common::{Result, exec_datafusion_err, exec_err};
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};

use super::build::{self, JoinFilterBuildExec};
use super::keys::Plan;
use super::options::JoinFilterOptions;
use super::probe::JoinFilterExec;

/// The first words, with the version of the encoding. Hashes of keys are the same in all versions of this crate.
const PROBE: &str = "bloomline-join-filter-1";
const BUILD: &str = "bloomline-join-filter-build-1";

/// Encodes the operators of joins that filter themselves, and no others: compose it with the codec that you have by
/// [`ComposedPhysicalExtensionCodec`](datafusion_proto::physical_plan::ComposedPhysicalExtensionCodec), as its last. On
/// Ballista, scheduler and executors need it.
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
        let words = &mut text.split(' ');
        match (words.next(), inputs) {
            (Some(PROBE), [input, keys]) => {
                let expected_share = parse(words.next())?;
                let options = JoinFilterOptions {
                    max_share: parse(words.next())?,
                    sample_rows: parse(words.next())?,
                    max_bytes: parse(words.next())?,
                    fpr: parse(words.next())?,
                    ..JoinFilterOptions::default()
                };
                let columns = columns(words, input)?;
                if keys.schema() != build::schema() {
                    return exec_err!("a join filter has {} in place of hashes", keys.name());
                }
                let (input, keys) = (Arc::clone(input), Arc::clone(keys));
                Ok(Arc::new(JoinFilterExec::new(input, keys, columns, expected_share, options)))
            }
            (Some(BUILD), [input]) => {
                let max_keys = parse(words.next())?;
                let columns = columns(words, input)?;
                Ok(Arc::new(JoinFilterBuildExec::new(Arc::clone(input), columns, max_keys)))
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
        let (mut text, columns) = if let Some(probe) = plan.downcast_ref::<JoinFilterExec>() {
            let JoinFilterOptions { max_share, sample_rows, max_bytes, fpr, .. } = &probe.options;
            let share = probe.expected_share;
            (format!("{PROBE} {share} {max_share} {sample_rows} {max_bytes} {fpr}"), &probe.columns)
        } else if let Some(build) = plan.downcast_ref::<JoinFilterBuildExec>() {
            (format!("{BUILD} {}", build.max_keys), &build.columns)
        } else {
            return exec_err!("{} is not a join filter", plan.name());
        };
        columns.iter().for_each(|column| text += &format!(" {column}"));
        bytes.extend(text.into_bytes());
        Ok(())
    }
}

fn parse<T: FromStr>(word: Option<&str>) -> Result<T> {
    let word = word.unwrap_or_default();
    word.parse().map_err(|_| exec_datafusion_err!("a join filter has '{word}' in place of a number"))
}

/// The columns of the keys, which the input must have.
fn columns<'a>(words: impl Iterator<Item = &'a str>, input: &Plan) -> Result<Vec<usize>> {
    let n = input.schema().fields().len();
    let columns = words.map(|word| parse(Some(word))).collect::<Result<Vec<usize>>>()?;
    match columns.iter().find(|&&column| column >= n) {
        Some(column) => exec_err!("a join filter of column {column} has an input of {n} columns"),
        None if columns.is_empty() => exec_err!("a join filter has no columns"),
        None => Ok(columns),
    }
}
