//! SurrealKV.
