//! Every function returns an error for a damaged filter, in each way to pass it, whatever the session did before. That no
//! damage goes unnoticed is the Rust crate's to test.

use std::sync::Arc;

use crate::common::{count, hex, register, session};
use arrow::array::{BinaryArray, Int64Array, StringArray};
use bloomline::BloomFilter;
use bloomline::sizing::standard::StandardSizing;
use bloomline::variants::StandardBloomFilter;

const KEYS: [&str; 3] = ["ant", "bee", "cat"];

/// A filter of three keys in three blocks.
fn good() -> Vec<u8> {
    let mut filter = BloomFilter::with_blocks(3, 6).unwrap();
    filter.extend(KEYS);
    filter.to_standalone()
}

/// A filter with a bit of each part changed, in its blocks, seed, checksum and magic, with other lengths, and of another
/// kind.
fn damaged() -> Vec<Vec<u8>> {
    let good = good();
    let n = good.len();
    let mut damaged: Vec<_> = [0, 100, n - 64, n - 40, n - 9, n - 1]
        .map(|at| {
            let mut bytes = good.clone();
            bytes[at] ^= 1;
            bytes
        })
        .into();
    let standard = StandardBloomFilter::with_sizing(StandardSizing::new(1000, 7).unwrap()).unwrap();
    let others = [&[], &good[..n - 1], &good[64..], &[&good[..], &[0]].concat(), &standard.to_standalone()];
    damaged.extend(others.map(<[u8]>::to_vec));
    damaged
}

/// In one session, each way passes the good filter before the damaged ones.
#[tokio::test]
async fn what_the_session_did_before_does_not_hide_damage() {
    let context = session(&[("datafusion.execution.target_partitions", "2")]);
    let filters: Vec<_> = [good()].into_iter().chain(damaged()).collect();
    let ids = Arc::new(Int64Array::from_iter_values(0..filters.len() as i64));
    let column = Arc::new(BinaryArray::from_iter_values(&filters));
    register(&context, "filters", [("id", ids), ("filter", column)]);
    register(&context, "keys", [("key", Arc::new(StringArray::from(KEYS.to_vec())))]);
    for query in [
        "SELECT count(*) FROM keys WHERE bloom_contains((SELECT filter FROM filters WHERE id = ID), key)",
        "SELECT count(*) FROM keys, filters WHERE id = ID AND bloom_contains(filter, key)",
        "SELECT count(*) FROM keys JOIN (SELECT filter FROM filters WHERE id = ID) ON bloom_contains(filter, key)",
        "SELECT count(filter) FROM keys LEFT JOIN filters ON id = ID AND bloom_contains(filter, key)",
        "SELECT count(*) FROM keys WHERE bloom_contains(x'HEX', key)",
        "SELECT count(*) FROM keys WHERE bloom_contains(
            (SELECT bloom_filter_union(filter) FROM filters WHERE id IN (0, ID)), key)",
        "SELECT count(*) FROM keys WHERE bloom_contains((SELECT bloom_fold(filter, 1e-5) FROM filters WHERE id = ID), key)",
        // A column in which others are good.
        "SELECT count(bloom_contains(f, 'ant')) FROM COLUMN",
        "SELECT count(bloom_contains(arrow_cast(f, 'BinaryView'), 'ant')) FROM COLUMN",
        "SELECT count(bloom_estimated_keys(f)) FROM COLUMN",
        "SELECT count(bloom_estimated_fpr(f)) FROM COLUMN",
        "SELECT count(bloom_fold(f, 0.5)) FROM COLUMN",
        "SELECT count(bloom_fold(f, key * 0.1)) FROM COLUMN",
        "SELECT 3 * count(u) FROM (SELECT bloom_filter_union(f) AS u FROM COLUMN)",
        "SELECT 3 * count(u) FROM (SELECT bloom_filter_union(f) AS u FROM COLUMN WHERE key = 2)",
        "SELECT count(u) FROM (SELECT bloom_filter_union(f) AS u FROM COLUMN GROUP BY key)",
        // Constants.
        "SELECT 3 * CAST(bloom_contains(x'HEX', 'ant') AS BIGINT)",
        "SELECT CAST(bloom_estimated_keys(x'HEX') AS BIGINT)",
        "SELECT CAST(3 + bloom_estimated_fpr(x'HEX') AS BIGINT)",
        "SELECT 3 * CAST(bloom_contains(bloom_fold(x'HEX', 0.5), 'ant') AS BIGINT)",
    ] {
        let query = query.replace(
            "COLUMN",
            "(SELECT key, CASE key WHEN 2 THEN x'HEX' ELSE x'GOOD' END AS f FROM range(1, 4) AS t (key))",
        );
        for (id, bytes) in filters.iter().enumerate() {
            let sql = query
                .replace("ID", &id.to_string())
                .replace("HEX", &hex(bytes))
                .replace("GOOD", &hex(&good()));
            match (id, count(&context, &sql).await) {
                (0, answer) => assert_eq!(answer.unwrap(), 3, "{sql}"),
                (_, answer) => assert!(answer.is_err(), "{sql}"),
            }
        }
    }
}
