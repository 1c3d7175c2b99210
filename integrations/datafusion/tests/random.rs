//! Random queries. Whatever the functions are given, they answer or return an error, and never panic.

use std::sync::Arc;

use crate::common::{Random, built, runtime, session};
use arrow::array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray};
use bloomline_datafusion::register_filter;
use datafusion::prelude::SessionContext;

/// An expression over a table of ten rows, or an empty one. Most are of the types of filters, some of other types.
fn filter(random: &mut Random, depth: usize) -> String {
    const OTHERS: &str = "x''; x'00'; CASE WHEN id = 5 THEN x'0707' ELSE filter END; NULL; arrow_cast(NULL, 'Binary');
        arrow_cast(NULL, 'Dictionary(Int8, Binary)'); (SELECT max(filter) FROM t); (SELECT filter FROM t WHERE false);
        'named'; 'missing'; ''; text; arrow_cast('named', 'Utf8View'); arrow_cast(NULL, 'Utf8'); 1; id; make_array(filter);
        named_struct('bloomline_filter', arrow_cast(filter, 'BinaryView'), 'bloomline_is_intact', id > 3);
        named_struct('bloomline_name', 'named', 'bloomline_hash', arrow_cast(7, 'UInt64'));
        named_struct('bloomline_name', text, 'bloomline_hash', arrow_cast(id, 'UInt64'))";
    const TYPES: &str = "Binary; LargeBinary; BinaryView; FixedSizeBinary(192); Dictionary(Int8, Binary);
        Dictionary(UInt64, BinaryView); Dictionary(Int16, Dictionary(Int8, Binary)); Utf8";
    if depth == 0 || random.below(2) == 0 {
        return if random.below(7) == 0 { random.part(OTHERS).to_owned() } else { "filter".to_owned() };
    }
    let inner = filter(random, depth - 1);
    match random.below(6) {
        0 => format!("arrow_cast({inner}, '{}')", random.part(TYPES)),
        1 => format!("bloom_fold({inner}, {})", number(random)),
        2 => format!("CASE WHEN id % 2 = 0 THEN {inner} END"),
        3 => format!("coalesce({inner}, {})", filter(random, depth - 1)),
        4 => format!("bloom_reference({inner})"),
        _ => format!("bloom_reference({inner}, {})", number(random)),
    }
}

fn key(random: &mut Random) -> &'static str {
    random.part(
        "id; text; 7; 'k'; NULL; ''; x''; 1.5; make_array(id); filter; arrow_cast(NULL, 'Utf8View'); arrow_cast(id, 'UInt8');
        arrow_cast(text, 'LargeUtf8'); arrow_cast(text, 'Dictionary(Int8, Utf8)'); arrow_cast(text, 'BinaryView');
        arrow_cast(arrow_cast(id, 'Dictionary(Int8, Int64)'), 'Dictionary(Int16, Dictionary(Int8, Int64))');
        CASE WHEN id < 5 THEN text END; repeat(text, 9)",
    )
}

fn number(random: &mut Random) -> &'static str {
    random.part("0.01; 0.9; 0; 1; -1; 100; 1e300; NULL; 'x'; id; 0.1 * id; arrow_cast(0.5, 'Float16')")
}

/// A call of a scalar function, at times with too few or too many arguments.
fn scalar(random: &mut Random) -> String {
    const FUNCTIONS: &str =
        "bloom_contains; bloom_estimated_keys; bloom_estimated_fpr; bloom_fold; bloom_reference;
        bloom_reference_in_place; bloom_filter; bloom_filter_union; bloom_filter_in_window";
    let filter = filter(random, 3);
    match random.below(10) {
        0 => format!("bloom_estimated_keys({filter})"),
        1 => format!("bloom_estimated_fpr({filter})"),
        2 => format!("bloom_estimated_fpr(bloom_fold({filter}, {}))", number(random)),
        3 => {
            let function = random.part(FUNCTIONS);
            let arguments = [&filter, key(random), key(random)];
            format!("{function}({})", arguments[..random.below(4) as usize].join(", "))
        }
        _ => format!("bloom_contains({filter}, {})", key(random)),
    }
}

fn aggregate(random: &mut Random) -> String {
    let call = match random.below(2) {
        0 => {
            let constant =
                |random: &mut Random, usual| if random.below(4) == 0 { number(random) } else { usual };
            let (keys, fpr) = (constant(random, "10"), constant(random, "0.01"));
            ("bloom_filter", format!("{}, {keys}, {fpr}", key(random)))
        }
        _ => ("bloom_filter_union", filter(random, 3)),
    };
    let (name, arguments) = call;
    let (distinct, order) = (random.part("; ; DISTINCT"), random.part("; ; ORDER BY id; ORDER BY text DESC"));
    let clause = random.part("; ; FILTER (WHERE id > 4); FILTER (WHERE NULL)");
    // Only columns, because DataFusion 55.2 panics where two windows share an expression such as `id % 2`.
    let over = random.part(
        "; ; ; OVER (); OVER (ORDER BY id); OVER (PARTITION BY text);
        OVER (PARTITION BY text ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING);
        OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW);
        OVER (ORDER BY id RANGE BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING);
        OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    );
    format!("{name}({distinct} {arguments} {order}) {clause} {over}")
}

fn query(random: &mut Random) -> String {
    let table = random.part(
        "t; t; nothing AS t; (SELECT * FROM t WHERE id < 0) AS t; (SELECT * FROM t LIMIT 3 OFFSET 4) AS t;
        (SELECT a.id, b.text, b.filter FROM t AS a JOIN t AS b ON a.id = b.id + 1) AS t;
        (SELECT b.id, b.text, a.filter FROM t AS a RIGHT JOIN nothing AS b ON a.id = b.id) AS t",
    );
    let rest = random.part("; WHERE id % 3 = 1; WHERE false; ORDER BY id DESC LIMIT 2");
    let grouped = random.part("; GROUP BY id % 2; GROUP BY text; GROUP BY id; HAVING false");
    match random.below(5) {
        0 => format!("SELECT id, {} FROM {table} {rest}", scalar(random)),
        1 => format!("SELECT count(*) FROM {table} WHERE {}", scalar(random)),
        2 => {
            let (a, b) = (scalar(random), scalar(random));
            format!("SELECT count(*) FROM {table} JOIN nothing AS n ON t.id = n.id WHERE {a} OR NOT {b}")
        }
        3 => format!("SELECT {} FROM {table} {grouped}", aggregate(random)),
        _ => {
            let (a, b) = (aggregate(random), aggregate(random));
            format!("SELECT bloom_contains({a}, 7), bloom_estimated_keys({b}) FROM {table} {grouped}")
        }
    }
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
        let (sql, context) = (query(random), random.of(&[0, 1]));
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
