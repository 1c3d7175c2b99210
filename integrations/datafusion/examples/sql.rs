//! Runs SQL with the functions of bloomline: `cargo run --example sql -- FILE.sql`, or that of the README without a file.

use bloomline_datafusion::register_all;
use datafusion::error::Result;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::SessionContext;

#[tokio::main]
async fn main() -> Result<()> {
    let readme = include_str!("../README.md");
    let sql = match std::env::args().nth(1) {
        Some(file) => std::fs::read_to_string(file)?,
        None => readme
            .split("```")
            .filter_map(|block| block.strip_prefix("sql"))
            .find(|block| block.contains("bloom_filter("))
            .expect("a block of SQL with a filter")
            .to_owned(),
    };
    let mut context = SessionContext::new_with_state(state());
    register_all(&mut context)?;
    #[cfg(feature = "file-index")]
    bloomline_datafusion::register_file_index(&context);
    for statement in sql.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
        println!("{statement};");
        context.sql(statement).await?.show().await?;
    }
    Ok(())
}

#[cfg(not(feature = "join-filters"))]
fn state() -> SessionState {
    SessionStateBuilder::new_with_default_features().build()
}

/// Its joins filter themselves.
#[cfg(feature = "join-filters")]
fn state() -> SessionState {
    use bloomline_datafusion::{BloomlineOptions, JoinFilters};
    let config = datafusion::prelude::SessionConfig::new().with_option_extension(BloomlineOptions::default());
    SessionStateBuilder::new_with_default_features()
        .with_config(config)
        .with_physical_optimizer_rule(std::sync::Arc::new(JoinFilters))
        .build()
}
