//! A table with an index that travels in a logical plan.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use bloomline_datafusion::{FileIndexCodec, IndexedTable};
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::datasource::MemTable;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::error::Result;
use datafusion::prelude::{SessionContext, col};
use datafusion_proto::logical_plan::{DefaultLogicalExtensionCodec, LogicalExtensionCodec};

const LOGS: &str = "file:///logs/";
const INDEX: &str = "/logs, old/ä.index";

/// A table of files in these places, with nothing as it is by default.
fn table(places: &[&str]) -> Arc<IndexedTable> {
    let format = CsvFormat::default().with_has_header(false).with_delimiter(b';');
    let options = ListingOptions::new(Arc::new(format))
        .with_file_extension(".log")
        .with_table_partition_cols(vec![("day".to_owned(), DataType::Date32)])
        .with_file_sort_order(vec![vec![col("time").sort(false, true)]]);
    let fields = [("id", DataType::Utf8View, false), ("time", DataType::Int64, true)];
    let fields = Vec::from(fields.map(|(name, kind, nullable)| Field::new(name, kind, nullable)));
    let metadata = [("made by".to_owned(), "a test".to_owned())].into();
    let urls = places.iter().map(|place| ListingTableUrl::parse(place).unwrap()).collect();
    let config = ListingTableConfig::new_with_multi_paths(urls)
        .with_listing_options(options)
        .with_schema(Arc::new(Schema::new_with_metadata(fields, metadata)));
    Arc::new(IndexedTable::new(&ListingTable::try_new(config).unwrap(), INDEX).unwrap())
}

fn codec() -> FileIndexCodec {
    FileIndexCodec::new(Arc::new(DefaultLogicalExtensionCodec {}))
}

fn encode(table: Arc<dyn TableProvider>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    codec().try_encode_table_provider(&TableReference::bare("logs"), table, &mut bytes)?;
    Ok(bytes)
}

fn decode(bytes: &[u8]) -> Result<Arc<dyn TableProvider>> {
    let (schema, context) = (table(&[LOGS]).schema(), SessionContext::new().task_ctx());
    codec().try_decode_table_provider(bytes, &TableReference::bare("logs"), schema, &context)
}

#[test]
fn the_table_arrives_as_it_was() {
    let sent = table(&[LOGS, "file:///old%20logs/"]);
    let bytes = encode(Arc::clone(&sent) as _).unwrap();
    let arrived = decode(&bytes).unwrap();
    let arrived = arrived.downcast_ref::<IndexedTable>().unwrap();
    assert_eq!(arrived.index(), sent.index());
    assert_eq!(arrived.schema(), sent.schema());
    assert_eq!(arrived.table().table_paths(), sent.table().table_paths());
    let [arrived, sent] = [arrived.table().options(), sent.table().options()];
    assert_eq!(format!("{arrived:?}"), format!("{sent:?}"));
}

#[test]
fn damaged_bytes_are_an_error() {
    let bytes = encode(table(&[LOGS])).unwrap();
    for at in 0..bytes.len() {
        assert!(decode(&bytes[..at]).is_err(), "the first {at} bytes");
        for other in [1, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= other;
            assert!(decode(&damaged).is_err(), "byte {at} changed by {other}");
        }
    }
}

#[test]
fn what_a_plan_would_lose_is_refused() {
    let error = encode(table(&[LOGS, "/logs/2026-*.log"])).unwrap_err().to_string();
    assert!(error.contains("a plan would lose the pattern 2026-*.log of logs"), "{error}");
}

#[test]
fn other_tables_are_the_inner_codecs() {
    let table = MemTable::try_new(table(&[LOGS]).schema(), vec![vec![]]).unwrap();
    for error in [encode(Arc::new(table)).unwrap_err(), decode(b"\n\x04logs").unwrap_err()] {
        assert!(error.to_string().contains("LogicalExtensionCodec is not provided"), "{error}");
    }
}
