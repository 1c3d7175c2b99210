//! The client plans a query, lets the cluster run it, and prints or saves the result.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, bail};
use ballista::prelude::{SessionConfigExt, SessionContextExt};
use bloomline_datafusion::{BloomlineOptions, attach_index};
use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{DataFrame, ParquetReadOptions, SessionConfig, SessionContext};

use crate::filters::{FilterFiles, pair};

/// Runs a query on the cluster and prints the result.
#[derive(clap::Args)]
pub struct Arguments {
    /// The query
    sql: String,
    /// Scheduler
    #[arg(long, default_value = "df://localhost:50050")]
    scheduler: String,
    /// Parquet file, or folder of Parquet files, that the query reads as a table. All executors must reach it
    #[arg(long, value_name = "NAME=PATH", value_parser = pair)]
    table: Vec<(String, String)>,
    /// Index over the files of a table. This client and the scheduler must reach it
    #[arg(long, value_name = "TABLE=INDEX", value_parser = pair)]
    index: Vec<(String, String)>,
    /// File, such as a filter, that the query reads as the parameter $NAME
    #[arg(long, value_name = "NAME=FILE", value_parser = pair)]
    param: Vec<(String, String)>,
    /// Setting of the session
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
    /// Write the only value of the result, a filter, to this file
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    filters: FilterFiles,
}

pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let mut config = SessionConfig::new_with_ballista()
        .with_option_extension(BloomlineOptions::default())
        .with_ballista_logical_extension_codec(crate::logical_codec());
    for (key, value) in &arguments.set {
        config.options_mut().set(key, value)?;
    }
    let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
    let mut context = SessionContext::remote_with_state(&arguments.scheduler, state).await?;
    // Not on the state before, because `remote_with_state` replaces the functions of the state by Ballista's.
    bloomline_datafusion::register_all(&mut context)?;
    arguments.filters.read()?.register(&context, "the client")?;
    for (name, path) in &arguments.table {
        context.register_parquet(name, path, ParquetReadOptions::default()).await?;
    }
    for (table, index) in &arguments.index {
        attach_index(&context, table, index).await?;
    }

    let mut parameters = Vec::new();
    for (name, file) in arguments.param {
        let bytes = fs::read(&file).with_context(|| format!("cannot read {file}"))?;
        parameters.push((name, ScalarValue::Binary(Some(bytes))));
    }
    let mut result = context.sql(&arguments.sql).await?;
    if !parameters.is_empty() {
        result = result.with_param_values(parameters)?;
    }
    match arguments.output {
        Some(file) => fs::write(&file, only_value(result).await?)
            .with_context(|| format!("cannot write {}", file.display())),
        None => Ok(result.show().await?),
    }
}

/// The bytes of a result of one row and one column.
async fn only_value(result: DataFrame) -> anyhow::Result<Vec<u8>> {
    let mut batches = result.collect().await?;
    batches.retain(|batch| batch.num_rows() > 0);
    let [batch] = &batches[..] else {
        bail!("--output needs a result of one row, and this one has none or several batches");
    };
    if (batch.num_rows(), batch.num_columns()) != (1, 1) {
        bail!(
            "--output needs one row and one column, and the result has {} and {}",
            batch.num_rows(),
            batch.num_columns(),
        );
    }
    let column = cast(batch.column(0), &DataType::Binary)?;
    if column.is_null(0) {
        bail!("the result is null");
    }
    Ok(column.as_binary::<i32>().value(0).to_vec())
}
