//! SlateDB.
