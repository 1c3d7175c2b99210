//! The columns of an index, and how their values are hashed.

use std::fmt::Write;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Schema};
use datafusion::catalog::TableProvider;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result, plan_err};

use crate::stored_keys::{hash_column, stored_type};

/// Begins the rule of an index, and ends in its version.
const RULE: &str = "columns 1";

/// The columns of a table's files, without partition columns, whose values are not in the files.
#[derive(Debug)]
pub struct Files {
    schema: Schema,
    /// Whether columns are known by their numbers, because the files have no names.
    is_numbered: bool,
    /// Options that change the values of the same bytes, if there are any.
    options: String,
}

impl Files {
    /// As a session with these settings reads them.
    pub fn of(table: &ListingTable, settings: &ConfigOptions) -> Result<Self> {
        let (all, ListingOptions { table_partition_cols, format, .. }) = (table.schema(), table.options());
        let schema = all.project(&Vec::from_iter(0..all.fields().len() - table_partition_cols.len()))?;
        let (csv, parquet) = (format.downcast_ref::<CsvFormat>(), format.downcast_ref::<ParquetFormat>());
        let mut options = String::new();
        if let Some(csv) = csv.map(CsvFormat::options) {
            let lines = (
                csv.has_header.unwrap_or(settings.catalog.has_header),
                csv.newlines_in_values.unwrap_or(settings.catalog.newlines_in_values),
                csv.comment,
                csv.terminator,
                csv.truncated_rows,
                csv.compression,
            );
            let values = (csv.delimiter, csv.quote, csv.escape, csv.double_quote);
            options = format!(" csv {lines:?} {values:?}");
        }
        if let Some(parquet) = parquet.map(|parquet| &parquet.options().global)
            && let Some(unit) = &parquet.coerce_int96
        {
            options = format!(" int96 {unit} {:?}", parquet.coerce_int96_tz);
        }
        Ok(Self { schema, is_numbered: csv.is_some(), options })
    }

    /// The class of a column, with what its values depend on besides.
    fn class(&self, name: &str) -> Option<String> {
        let (number, field) = self.schema.column_with_name(name)?;
        let number = if self.is_numbered { format!(" {number}") } else { String::new() };
        Some(class(field.data_type())? + &number + &self.options)
    }

    /// Whether values of this type have keys like those of a column.
    pub fn has_keys_of(&self, name: &str, data_type: &DataType) -> bool {
        let field = self.schema.field_with_name(name);
        field.is_ok_and(|field| class(data_type).is_some_and(|found| Some(found) == class(field.data_type())))
    }
}

/// The columns of an index, each with the class of its type. Values of a class are equal if and only if their keys are.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns(Vec<(String, String)>);

impl Columns {
    /// Refuses columns that the table's files do not have, and types that have no keys.
    pub fn of(files: &Files, names: &[String]) -> Result<Self> {
        let mut columns = Vec::new();
        for name in names {
            let Ok(field) = files.schema.field_with_name(name) else {
                let all: Vec<_> = files.schema.fields().iter().map(|field| field.name().as_str()).collect();
                return plan_err!(
                    "file index: the table's files have no column '{name}', but {}",
                    all.join(", ")
                );
            };
            let Some(class) = files.class(name) else {
                return plan_err!(
                    "file index: '{name}' is of type {}, which has no keys (index text, binary, integers, dates, times or decimals)",
                    field.data_type()
                );
            };
            if name.contains('\n') || columns.iter().any(|(other, _)| other == name) {
                return plan_err!(
                    "file index: the column {name:?} is named twice, or its name has a newline"
                );
            }
            columns.push((name.clone(), class));
        }
        if columns.is_empty() { plan_err!("file index: name at least one column") } else { Ok(Self(columns)) }
    }

    /// As an index records it.
    pub fn rule(&self) -> String {
        let mut rule = RULE.to_owned();
        for (name, class) in &self.0 {
            write!(rule, "\n{class}\t{name}").expect("a string has room");
        }
        rule
    }

    /// `None` if another program wrote the rule.
    pub fn of_rule(rule: &str) -> Option<Self> {
        let columns = rule.strip_prefix(RULE)?.strip_prefix('\n')?.split('\n');
        let column =
            |line: &str| line.split_once('\t').map(|(class, name)| (name.to_owned(), class.to_owned()));
        columns.map(column).collect::<Option<_>>().map(Self)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The number of the column of this name, if the values of files have the class of those in the index. Files of a
    /// partitioned table can have a column of the name of a partition column, with other values.
    pub fn position(&self, name: &str, files: &Files) -> Option<usize> {
        let column = self.names().position(|column| column == name)?;
        (files.class(name)? == self.0[column].1).then_some(column)
    }

    /// Refuses a table in whose files a column is missing, or of another class.
    pub fn check(&self, files: &Files) -> Result<()> {
        let names: Vec<_> = self.names().map(str::to_owned).collect();
        let found = Self::of(files, &names)?;
        if found == *self {
            return Ok(());
        }
        plan_err!("file index: the index is of {:?}, but the table has {:?}", self.rule(), found.rule())
    }

    /// A file has one filter for all columns. So their seeds differ, but that of the first is the default, so that an
    /// index of one column is asked like any other.
    pub fn seed(&self, column: usize) -> u64 {
        if column == 0 { 0 } else { bloomline::hash_key(&self.0[column].0, 0) }
    }
}

/// Types that differ only in how values are stored have one class, because a table's type can change so, for example by
/// an option of the session. `None` for types without keys.
fn class(data_type: &DataType) -> Option<String> {
    Some(match data_type {
        DataType::Dictionary(_, values) => {
            stored_type(data_type)?;
            return class(values);
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "binary".to_owned(),
        integer if integer.is_integer() => "integer".to_owned(),
        // They are hashed as they are in memory.
        DataType::Decimal128(..) | DataType::Decimal256(..) if cfg!(target_endian = "big") => return None,
        other => stored_type(other).map(|_| other.to_string())?,
    })
}

/// Appends the hashes of all values but nulls.
pub fn add_hashes(values: &ArrayRef, seed: u64, hashes: &mut Vec<u64>) -> Result<()> {
    let all = hash_column(values, seed)?;
    match values.logical_nulls() {
        Some(nulls) => hashes.extend(nulls.valid_indices().map(|row| all[row])),
        None => hashes.extend(all),
    }
    Ok(())
}
