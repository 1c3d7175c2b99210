//! Random queries. Whatever the functions are given, they answer or return an error, and never panic.

use std::sync::Arc;

use crate::common::{Random, built, runtime, session};
use arrow::array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray};
use bloomline_datafusion::register_filter;
use datafusion::prelude::SessionContext;

/// Templates by letter. `$` and a letter stand for a random template of the list. Past a depth, each is the first of its
/// list. Most filters and keys are of the types that functions take, some of others.
const TEMPLATES: [(char, &str); 13] = [
    ('f', "filter; filter; filter; filter; filter; filter; $o; arrow_cast($f, '$t'); bloom_fold($f, $n); coalesce($f, $f);
        CASE WHEN id % 2 = 0 THEN $f END; bloom_reference($f); bloom_reference($f, $n)"),
    ('o', "x''; x'00'; CASE WHEN id = 5 THEN x'0707' ELSE filter END; NULL; arrow_cast(NULL, 'Binary');
        arrow_cast(NULL, 'Dictionary(Int8, Binary)'); (SELECT max(filter) FROM t); (SELECT filter FROM t WHERE false);
        'named'; 'missing'; ''; text; arrow_cast('named', 'Utf8View'); arrow_cast(NULL, 'Utf8'); 1; id;
        arrow_cast(filter, 'List(Binary)');
        named_struct('bloomline_filter', arrow_cast(filter, 'BinaryView'), 'bloomline_is_intact', id > 3);
        named_struct('bloomline_name', 'named', 'bloomline_hash', arrow_cast(7, 'UInt64'));
        named_struct('bloomline_name', text, 'bloomline_hash', arrow_cast(id, 'UInt64'))"),
    ('t', "Binary; LargeBinary; BinaryView; FixedSizeBinary(192); Dictionary(Int8, Binary);
        Dictionary(UInt64, BinaryView); Dictionary(Int16, Dictionary(Int8, Binary)); Utf8"),
    ('k', "id; text; 7; 'k'; NULL; ''; x''; 1.5; arrow_cast(id, 'List(Int64)'); filter; arrow_cast(NULL, 'Utf8View');
        arrow_cast(id, 'UInt8'); arrow_cast(text, 'LargeUtf8'); arrow_cast(text, 'Dictionary(Int8, Utf8)');
        arrow_cast(text, 'BinaryView'); CASE WHEN id < 5 THEN text END; repeat(text, 9);
        arrow_cast(arrow_cast(id, 'Dictionary(Int8, Int64)'), 'Dictionary(Int16, Dictionary(Int8, Int64))')"),
    ('n', "0.01; 0.9; 0; 1; -1; 100; 1e300; NULL; 'x'; id; 0.1 * id; arrow_cast(0.5, 'Float16')"),
    // A call of a scalar function, at times with too few or too many arguments.
    ('s', "bloom_contains($f, $k); bloom_contains($f, $k); bloom_contains($f, $k); bloom_contains($f, $k);
        bloom_contains($f, $k); bloom_estimated_keys($f); bloom_estimated_fpr($f);
        bloom_estimated_fpr(bloom_fold($f, $n)); $c(); $c($f); $c($f, $k); $c($f, $k, $k)"),
    ('c', "bloom_contains; bloom_estimated_keys; bloom_estimated_fpr; bloom_fold; bloom_reference;
        bloom_reference_in_place; bloom_filter; bloom_filter_union; bloom_filter_in_window"),
    ('a', "bloom_filter($d $k, 10, 0.01 $e) $w; bloom_filter($d $k, 10, 0.01 $e) $w;
        bloom_filter($d $k, $n, 0.01 $e) $w; bloom_filter($d $k, 10, $n $e) $w;
        bloom_filter_union($d $f $e) $w; bloom_filter_union($d $f $e) $w"),
    ('d', "; ; DISTINCT"),
    ('e', "; ; ORDER BY id; ORDER BY text DESC"),
    // Only columns, because DataFusion 55.2 panics where two windows share an expression such as `id % 2`.
    ('w', "; FILTER (WHERE id > 4); FILTER (WHERE NULL); ; OVER (); OVER (ORDER BY id); OVER (PARTITION BY text);
        FILTER (WHERE id > 4) OVER (PARTITION BY text ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING);
        OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW);
        OVER (ORDER BY id RANGE BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING);
        OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)"),
    ('g', "; GROUP BY id % 2; GROUP BY text; GROUP BY id; HAVING false"),
    ('T', "t; t; nothing AS t; (SELECT * FROM t WHERE id < 0) AS t; (SELECT * FROM t LIMIT 3 OFFSET 4) AS t;
        (SELECT a.id, b.text, b.filter FROM t AS a JOIN t AS b ON a.id = b.id + 1) AS t;
        (SELECT b.id, b.text, a.filter FROM t AS a RIGHT JOIN nothing AS b ON a.id = b.id) AS t"),
];
const QUERIES: &str = "SELECT id, $s FROM $T; SELECT id, $s FROM $T WHERE id % 3 = 1; SELECT id, $s FROM $T WHERE false;
    SELECT id, $s FROM $T ORDER BY id DESC LIMIT 2; SELECT count(*) FROM $T WHERE $s;
    SELECT count(*) FROM $T JOIN nothing AS n ON t.id = n.id WHERE $s OR NOT $s; SELECT $a FROM $T $g; SELECT $a FROM $T $g;
    SELECT bloom_contains($a, 7), bloom_estimated_keys($a) FROM $T $g";

fn write(random: &mut Random, template: &str, depth: usize) -> String {
    let mut parts = template.split('$');
    let mut sql = parts.next().unwrap().to_owned();
    for part in parts {
        let mut rest = part.chars();
        let letter = rest.next().unwrap();
        let list = TEMPLATES.iter().find(|list| list.0 == letter).unwrap().1;
        let template = if depth > 0 { random.part(list) } else { list.split(';').next().unwrap() };
        sql += &write(random, template, depth.saturating_sub(1));
        sql += rest.as_str();
    }
    sql
}

fn with_tables(settings: &[(&str, &str)]) -> SessionContext {
    let context = session(settings);
    let filter = |i: i64| built(10, 0.5, (0..i as u64).map(|key| bloomline::hash_key(key, 0)));
    let ids = Int64Array::from_iter_values(0..10);
    let texts = StringArray::from_iter((0..10).map(|i| (i % 4 != 3).then(|| format!("text {i}"))));
    let filters = BinaryArray::from_iter((0..10).map(|i| match i {
        2 | 9 => None,
        i => Some(filter(i / 3)),
    }));
    let columns: [(&str, ArrayRef); 3] =
        [("id", Arc::new(ids)), ("text", Arc::new(texts)), ("filter", Arc::new(filters))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    context.register_batch("nothing", batch.slice(4, 0)).unwrap();
    context.register_batch("t", batch).unwrap();
    let mut named = bloomline::BloomFilter::with_fpr(10, 0.01).unwrap();
    named.insert(7);
    register_filter(&context, "named", named).unwrap();
    context
}

#[test]
fn no_query_panics() {
    let runtime = runtime();
    let sessions = [
        with_tables(&[
            ("datafusion.execution.target_partitions", "3"),
            ("datafusion.execution.batch_size", "3"),
        ]),
        with_tables(&[
            ("datafusion.execution.target_partitions", "2"),
            ("datafusion.execution.skip_partial_aggregation_probe_rows_threshold", "0"),
            ("datafusion.execution.skip_partial_aggregation_probe_ratio_threshold", "0"),
            ("datafusion.optimizer.max_passes", "0"),
        ]),
    ];
    let queries = std::env::var("QUERIES").map_or(300, |text| text.parse().expect("QUERIES"));
    let mut answered = 0;
    for seed in 0..queries {
        let random = &mut Random::new(seed);
        let query = random.part(QUERIES);
        let (sql, context) = (write(random, query, 5), random.of(&[0, 1]));
        let context = sessions[context].clone();
        let run = runtime.spawn({
            let sql = sql.clone();
            async move { context.sql(&sql).await?.collect().await }
        });
        match runtime.block_on(run) {
            Ok(Ok(_)) => answered += 1,
            Ok(Err(error)) => assert!(!error.to_string().contains("panicked"), "{sql}: {error}"),
            Err(_) => panic!("{sql} panicked"),
        }
    }
    println!("{answered} queries of {queries} have an answer");
    assert!(answered * 10 > queries, "only {answered} queries of {queries} have an answer");
}
