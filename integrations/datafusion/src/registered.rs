//! Filters that are registered under a name. A plan holds the name and a hash of the filter, not its bytes.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use arrow::array::{ArrayRef, AsArray, StringArray, StructArray, UInt64Array};
use arrow::datatypes::{DataType, Field, Fields, UInt64Type};
use bloomline::{BloomFilter, hash_key};
use datafusion_common::{Result, ScalarValue, exec_err};

use crate::filters;

/// A registered filter. Equal hashes are of the same bytes.
#[derive(Clone, Debug)]
pub struct Registered {
    pub filter: Arc<BloomFilter>,
    hash: u64,
}

impl PartialEq for Registered {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

impl Eq for Registered {}

impl Hash for Registered {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

/// The filters of a session, which all clones of the session's functions share.
#[derive(Clone, Debug, Default)]
pub struct Names(Arc<RwLock<Registry>>);

#[derive(Debug, Default)]
struct Registry {
    filters: BTreeMap<String, Registered>,
    /// What errors call this process, and how it gets filters.
    process: Option<(String, String)>,
}

impl PartialEq for Names {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Names {}

impl Hash for Names {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl Names {
    /// Registers a filter. It replaces the filter that had the name.
    pub fn insert(&self, function: &str, name: String, filter: Arc<BloomFilter>) -> Result<()> {
        let hash = hash_key(filters::standalone(function, &filter)?, 0);
        self.write().filters.insert(name, Registered { filter, hash });
        Ok(())
    }

    /// Makes errors name this process and what gives it filters.
    pub fn name_process(&self, process: String, remedy: String) {
        self.write().process = Some((process, remedy));
    }

    fn write(&self) -> RwLockWriteGuard<'_, Registry> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the filter that a plan refers to.
    pub fn find(&self, function: &str, reference: &NameOf<'_>) -> Result<Registered> {
        let NameOf { name, hash } = *reference;
        let registry = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let (process, remedy) = match &registry.process {
            Some((process, remedy)) => (&process[..], &remedy[..]),
            None => ("this process", "call register_filter"),
        };
        let names = &registry.filters;
        match names.get(name) {
            Some(found) if hash.is_none_or(|hash| hash == found.hash) => Ok(found.clone()),
            Some(_) => exec_err!(
                "{function}: the filter {} in {process} is not the one that the query was planned with: \
                 register the same filter in all processes, or run the query again",
                quoted(name)
            ),
            None => {
                let mut known: Vec<_> = names.keys().take(LISTED).map(|name| quoted(name)).collect();
                match names.len() {
                    0 => known.push("none".into()),
                    n if n > LISTED => known.push(format!("{} more", n - LISTED)),
                    _ => {}
                }
                exec_err!(
                    "{function}: no filter is registered as {} in {process} (registered: {}): {remedy}",
                    quoted(name),
                    known.join(", ")
                )
            }
        }
    }
}

/// How many names an error lists.
const LISTED: usize = 20;

/// The beginning of a name, for errors, because a filter stored as text can be mistaken for a name.
fn quoted(name: &str) -> String {
    match name.char_indices().nth(60) {
        Some((end, _)) => format!("'{}…'", &name[..end]),
        None => format!("'{name}'"),
    }
}

fn fields() -> Fields {
    Fields::from_iter([
        Field::new("bloomline_name", DataType::Utf8, false),
        Field::new("bloomline_hash", DataType::UInt64, false),
    ])
}

/// How a plan refers to a registered filter. It does so by name, and once the query is planned also by hash, so that no
/// process answers from a different filter of that name.
#[derive(Clone, Copy)]
pub struct NameOf<'a> {
    pub name: &'a str,
    hash: Option<u64>,
}

impl<'a> NameOf<'a> {
    /// `None` for values that are no name.
    pub fn read(value: &'a ScalarValue) -> Option<Self> {
        match value {
            ScalarValue::Struct(value) if is_planned(value.fields()) => {
                let name = value.column(0).as_string::<i32>().value(0);
                let hash = value.column(1).as_primitive::<UInt64Type>().value(0);
                Some(Self { name, hash: Some(hash) })
            }
            text => Some(Self { name: text.try_as_str()??, hash: None }),
        }
    }

    /// The value in the plan that refers to this very filter.
    pub fn planned(&self, found: &Registered) -> ScalarValue {
        let columns: Vec<ArrayRef> =
            vec![Arc::new(StringArray::from(vec![self.name])), Arc::new(UInt64Array::from(vec![found.hash]))];
        ScalarValue::Struct(Arc::new(StructArray::new(fields(), columns, None)))
    }
}

/// Returns whether values of this type can be names.
pub fn is_name(data_type: &DataType) -> bool {
    data_type.is_string() || matches!(data_type, DataType::Struct(fields) if is_planned(fields))
}

fn is_planned(found: &Fields) -> bool {
    filters::same_fields(found, &fields())
}
