//! SurrealKV.

use crate::report::{Options, Table};

pub fn measure(_: &Options) -> anyhow::Result<Vec<Table>> {
    Ok(Vec::new())
}
