//! Filters that queries name. They must be the same in all processes.

use std::fs;
use std::sync::Arc;

use anyhow::Context;
use bloomline::BloomFilter;
use bloomline_datafusion::{name_process, register_filter};
use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;

// Not `Arguments`, because clap wants this name to differ from the structs that flatten it.
#[derive(Default, clap::Args)]
pub struct FilterFiles {
    /// Filter in a file, which queries name as in `bloom_contains('NAME', key)`. Scheduler, executors and client need
    /// the same
    #[arg(long = "filter", value_name = "NAME=FILE", value_parser = pair)]
    files: Vec<(String, String)>,
}

pub fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Filters and their names.
pub struct Filters(Vec<(String, Arc<BloomFilter>)>);

impl FilterFiles {
    pub fn read(self) -> anyhow::Result<Filters> {
        let read = |(name, file): (String, String)| {
            let bytes = fs::read(&file).with_context(|| format!("cannot read {file}"))?;
            let filter = BloomFilter::from_standalone(&bytes).with_context(|| file)?;
            Ok((name, Arc::new(filter)))
        };
        self.files.into_iter().map(read).collect::<anyhow::Result<_>>().map(Filters)
    }
}

impl Filters {
    /// Registers the filters, after bloomline's functions. Errors say which process lacks one.
    pub fn register(&self, registry: &dyn FunctionRegistry, process: &str) -> Result<()> {
        name_process(registry, process, "start it with --filter NAME=FILE")?;
        self.0.iter().try_for_each(|(name, filter)| register_filter(registry, name, Arc::clone(filter)))
    }
}
