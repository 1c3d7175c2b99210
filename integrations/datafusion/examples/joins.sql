-- 4 million rows, whose keys are in no order, and 200,000 keys, which 1% of the rows have.
COPY (SELECT value * 7919 % 4000037 AS k, 'payload ' || value AS payload FROM range(4000000)) TO 'target/joins/facts.parquet';
COPY (SELECT value * 87 AS key FROM range(200000)) TO 'target/joins/keys.parquet';
CREATE EXTERNAL TABLE facts STORED AS PARQUET LOCATION 'target/joins/facts.parquet';
CREATE EXTERNAL TABLE keys STORED AS PARQUET LOCATION 'target/joins/keys.parquet';
SET datafusion.explain.analyze_level = 'summary';
EXPLAIN ANALYZE SELECT count(*), max(payload) FROM facts JOIN keys ON k = key;
SET bloomline.join_filters.enabled = false;
EXPLAIN ANALYZE SELECT count(*), max(payload) FROM facts JOIN keys ON k = key;
