//! Tables by their names in a session.

use std::sync::Arc;

use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::execution::SessionState;
use datafusion::prelude::SessionContext;
use datafusion_common::{Result, TableReference, exec_err, plan_datafusion_err};

use super::table::{IndexedTable, listing};

/// Queries of a table of files ask the index at this path or URL from now on. Replaces the table by an [`IndexedTable`]
/// in its catalog.
///
/// # Errors
///
/// If there is no such table, it is not of files, or the index is missing, damaged or of other columns. Such an index is
/// no error of [`IndexedTable::new`], because it can come or change later.
pub async fn attach_index(
    context: &SessionContext,
    table: impl Into<TableReference>,
    index: &str,
) -> Result<()> {
    attach(&context.state(), &table.into(), index).await.map(drop)
}

/// Returns the number of files and of bytes of the index.
pub async fn attach(state: &SessionState, name: &TableReference, index: &str) -> Result<(usize, u64)> {
    let indexed = IndexedTable::new(&*table(state, name).await?, index)?;
    let found = indexed.check(state).await?;
    replace(state, name, indexed).await?;
    Ok(found)
}

/// The table of this name.
pub async fn table(state: &SessionState, name: &TableReference) -> Result<Arc<dyn TableProvider>> {
    let table = schema(state, name)?.table(name.table()).await?;
    table.ok_or_else(|| plan_datafusion_err!("file index: there is no table {name}"))
}

/// Replaces the table of this name, from which `table` was made, by `table`. A table that asks the same index already
/// stays, because queries find none while it is replaced. Others may have given it another index.
///
/// # Errors
///
/// If the table was dropped meanwhile.
pub async fn replace(state: &SessionState, name: &TableReference, table: IndexedTable) -> Result<()> {
    let (schema, made_from) = (schema(state, name)?, table.table());
    let Some(now) = schema.table(name.table()).await?.filter(|now| {
        listing(&**now).is_ok_and(|now| {
            now.table_paths() == made_from.table_paths() && now.schema() == made_from.schema()
        })
    }) else {
        return exec_err!("file index: the table {name} was dropped while its index was made");
    };
    if now.downcast_ref::<IndexedTable>().is_some_and(|now| now.index() == table.index()) {
        return Ok(());
    }
    schema.deregister_table(name.table())?;
    schema.register_table(name.table().to_owned(), Arc::new(table))?;
    Ok(())
}

fn schema(state: &SessionState, name: &TableReference) -> Result<Arc<dyn SchemaProvider>> {
    let defaults = &state.config_options().catalog;
    let name = name.clone().resolve(&defaults.default_catalog, &defaults.default_schema);
    let catalog = state.catalog_list().catalog(&name.catalog);
    let schema = catalog.and_then(|catalog| catalog.schema(&name.schema));
    schema.ok_or_else(|| {
        plan_datafusion_err!("file index: there is no schema {}.{}", name.catalog, name.schema)
    })
}
