//! Runs SQL with the functions of bloomline: `cargo run --example sql -- FILE.sql`, or that of the README without a file.

use bloomline_datafusion::register_all;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;

#[tokio::main]
async fn main() -> Result<()> {
    let readme = include_str!("../README.md");
    let sql = match std::env::args().nth(1) {
        Some(file) => std::fs::read_to_string(file)?,
        None => readme
            .split("```")
            .find_map(|block| block.strip_prefix("sql"))
            .expect("a block of SQL")
            .to_owned(),
    };
    let mut context = SessionContext::new();
    register_all(&mut context)?;
    for statement in sql.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
        println!("{statement};");
        context.sql(statement).await?.show().await?;
    }
    Ok(())
}
