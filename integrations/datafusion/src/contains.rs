//! `bloom_contains(filter, key)` tells whether a key is possibly present.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, BooleanArray, StructArray};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::{DataType, Field, FieldRef};
use bloomline::BloomView;
use datafusion_common::tree_node::TreeNode;
use datafusion_common::{Result, ScalarValue, plan_err};
use datafusion_expr::logical_plan::Subquery;
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{
    ColumnarValue, Expr, LogicalPlanBuilder, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};

use crate::arguments::{Rows, exactly};
use crate::filters;
use crate::inspect;
use crate::keys;
use crate::reference::{self, Reference};
use crate::registered::{self, NameOf, Names, Registered};

pub const NAME: &str = "bloom_contains";
const TAKES: &str = "a filter and a key";

/// The scalar function `bloom_contains(filter, key)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Contains {
    signature: Signature,
    names: Names,
    /// The filter that the first argument names, found when the query was planned. So a query sees one filter, even if
    /// its name gets a new one.
    found: Option<Registered>,
}

impl Contains {
    pub fn new() -> Self {
        Self {
            signature: Signature::user_defined(Volatility::Immutable),
            names: Names::default(),
            found: None,
        }
    }

    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The registered filter that an argument names.
    fn registered(&self, filter: &ColumnarValue) -> Result<Option<Registered>> {
        match (&self.found, filter) {
            (Some(found), _) => Ok(Some(found.clone())),
            (None, ColumnarValue::Scalar(filter)) => {
                NameOf::read(filter).map(|name| self.names.find(NAME, &name)).transpose()
            }
            (None, ColumnarValue::Array(_)) => Ok(None),
        }
    }
}

impl ScalarUDFImpl for Contains {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [filter, key] = exactly(NAME, TAKES, types.to_vec())?;
        if !reference::is_reference(&filter) && !registered::is_name(&filter) {
            filters::check_type(NAME, &filter)?;
        }
        keys::check_type(NAME, &key)?;
        Ok(vec![filter, key])
    }

    /// The checksum of a literal filter stands for its bytes, because column names would otherwise contain them all.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let name = |arg: &Expr| match arg {
            Expr::Literal(filter, _) => match NameOf::read(filter) {
                Some(filter) => Some(format!("'{}'", filter.name)),
                None => reference::checksum(filter).map(|checksum| format!("<{checksum:016x}>")),
            },
            _ => None,
        };
        let filter =
            args.first().map(|filter| name(filter).unwrap_or_else(|| filter.schema_name().to_string()));
        let names = filter.into_iter().chain(args.iter().skip(1).map(|arg| arg.schema_name().to_string()));
        Ok(format!("{NAME}({})", names.collect::<Vec<_>>().join(",")))
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let [_, key] = exactly(NAME, TAKES, args.arg_fields.to_vec())?;
        keys::check_field(NAME, &key)?;
        Ok(Arc::new(Field::new(NAME, DataType::Boolean, true)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    /// Finds a registered filter, or makes the plan pass the filter as a reference.
    fn simplify(&self, mut args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let is_done = |data_type: DataType| reference::is_reference(&data_type) || data_type.is_null();
        if self.found.is_some() || info.get_data_type(&args[0]).map_or(true, is_done) {
            return Ok(ExprSimplifyResult::Original(args));
        }
        let mut function = self.clone();
        let filter = std::mem::take(&mut args[0]);
        args[0] = match filter {
            Expr::Literal(filter, metadata) => {
                let filter = match NameOf::read(&filter) {
                    Some(name) => {
                        let found = self.names.find(NAME, &name)?;
                        name.planned(function.found.insert(found))
                    }
                    None if filter.is_null() => ScalarValue::Null,
                    None => {
                        let reference = reference::of(NAME, ColumnarValue::Scalar(filter))?;
                        reference::open(NAME, &reference, 0)?;
                        ScalarValue::Struct(Arc::new(reference))
                    }
                };
                Expr::Literal(filter, metadata)
            }
            name if info.get_data_type(&name)?.is_string() => {
                // The value of a subquery is known only when the query runs. So the plan would lack the hash, and each
                // process would answer from its own filter of that name.
                let is_subquery = |part: &Expr| Ok(matches!(part, Expr::ScalarSubquery(_)));
                if name.any_column_refs() || name.is_volatile() || name.exists(is_subquery)? {
                    return plan_err!(
                        "{NAME}: a filter is of a binary type, not {}; the name of a registered filter must be \
                         a literal or a parameter",
                        info.get_data_type(&name)?
                    );
                }
                // A parameter, or a constant that DataFusion computes later.
                args[0] = name;
                return Ok(ExprSimplifyResult::Original(args));
            }
            Expr::ScalarSubquery(subquery) if subquery.outer_ref_columns.is_empty() => {
                let filter = Expr::Column(subquery.subquery.schema().columns().swap_remove(0));
                let reference = ScalarUDF::from(Reference::in_place()).call(vec![filter]);
                let plan =
                    LogicalPlanBuilder::new_from_arc(subquery.subquery).project([reference])?.build()?;
                Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), ..subquery })
            }
            // Below a join, each filter is folded only once.
            Expr::ScalarFunction(call) if inspect::folds_to_a_constant(&call) => {
                ScalarUDF::from(Reference::new()).call(call.args)
            }
            other => ScalarUDF::from(Reference::new()).call(vec![other]),
        };
        Ok(ExprSimplifyResult::Simplified(ScalarUDF::from(function).call(args)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = Rows::of(&args);
        let [filter, key] = exactly(NAME, TAKES, args.args)?;
        if matches!(&filter, ColumnarValue::Scalar(filter) if filter.is_null()) {
            return rows.answer(Arc::new(BooleanArray::new_null(rows.n)));
        }
        let registered = self.registered(&filter)?;
        let found = match (registered, key) {
            (Some(registered), keys) => look_up(registered.filter.as_view(), &*keys.into_array(rows.n)?)?,
            (None, keys) => look_up_references(&reference::of(NAME, filter)?, keys, rows.n)?,
        };
        rows.answer(Arc::new(found))
    }
}

/// Looks up all keys in one filter.
fn look_up(filter: BloomView<'_>, keys: &dyn Array) -> Result<BooleanArray> {
    let mut found = vec![0; keys.len().div_ceil(8)];
    let mut rest = &mut found[..];
    keys::for_each_chunk(keys, filter.seed(), &mut |hashes| {
        let chunk = rest.split_off_mut(..hashes.len().div_ceil(8)).expect("as many chunks as keys");
        filter.contains_bitmap(hashes, chunk);
    })?;
    let found = BooleanBuffer::new(Buffer::from_vec(found), 0, keys.len());
    Ok(BooleanArray::new(found, keys.logical_nulls()))
}

/// Looks up each of `n` keys in the filter beside it, or all keys in the only filter.
fn look_up_references(references: &StructArray, key: ColumnarValue, n: usize) -> Result<BooleanArray> {
    let filters = reference::filters(references);
    let valid = NullBuffer::union(references.nulls(), filters.nulls());
    let is_valid = |i: &usize| valid.as_ref().is_none_or(|valid| valid.is_valid(*i));
    if references.len() == 1 {
        if !is_valid(&0) {
            return Ok(BooleanArray::new_null(n));
        }
        return look_up(reference::open(NAME, references, 0)?, &*key.into_array(n)?);
    }
    // A constant key is not repeated, because all its copies may not fit into one array.
    let (keys, is_constant) = match key {
        ColumnarValue::Array(keys) => (keys, false),
        ColumnarValue::Scalar(key) => (key.to_array()?, true),
    };
    let hash = |rows: Range<usize>, seed| {
        if is_constant {
            keys::hash(&*keys, seed).map(|hash| vec![hash[0]; rows.len()])
        } else {
            keys::hash(&*keys.slice(rows.start, rows.len()), seed)
        }
    };
    let mut found = vec![false; n];
    // Equal views are of one filter. Keys are hashed once, because most filters have the same seed.
    let (mut opened, mut hashed) = (HashMap::new(), None);
    let mut start = 0;
    for equal in filters.views().chunk_by(|a, b| a == b) {
        let rows = start..start + equal.len();
        start = rows.end;
        // The view of a null means nothing, but it may equal its neighbours'.
        let Some(first) = rows.clone().find(is_valid) else { continue };
        let filter = match opened.entry(equal[0]) {
            Entry::Occupied(filter) => filter.into_mut(),
            Entry::Vacant(entry) => entry.insert(reference::open(NAME, references, first)?),
        };
        let seed = filter.seed();
        let (first_seed, hashes) = match &mut hashed {
            Some(hashed) => hashed,
            None => hashed.insert((seed, hash(0..n, seed)?)),
        };
        if *first_seed == seed {
            filter.contains_batch(&hashes[rows.clone()], &mut found[rows]);
        } else {
            filter.contains_batch(&hash(rows.clone(), seed)?, &mut found[rows]);
        }
    }
    let null_keys = match keys.logical_nulls() {
        Some(_) if is_constant => Some(NullBuffer::new_null(n)),
        nulls => nulls,
    };
    Ok(BooleanArray::new(BooleanBuffer::from(found), NullBuffer::union(valid.as_ref(), null_keys.as_ref())))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array, AsArray, BinaryArray, DictionaryArray, Int64Array, StructArray};
    use arrow::buffer::NullBuffer;
    use arrow::compute::cast;
    use arrow::datatypes::{DataType, Int32Type, Int64Type};
    use bloomline::BloomFilter;
    use datafusion_expr::ColumnarValue;

    use super::{NAME, look_up, look_up_references, reference};

    fn keys(n: usize) -> ColumnarValue {
        ColumnarValue::Array(Arc::new(Int64Array::from(vec![7; n])))
    }

    /// A struct may be null where the filter in it is not.
    #[test]
    fn a_null_hides_no_neighbour() {
        let mut filter = BloomFilter::with_fpr(10, 0.01).unwrap();
        filter.insert(7);
        let filters = BinaryArray::from_iter_values([filter.to_standalone()]);
        let filters = arrow::compute::take(&filters, &Int64Array::from(vec![0; 4]), None).unwrap();
        let valid = reference::of(NAME, ColumnarValue::Array(filters)).unwrap();
        let views = Arc::new(reference::filters(&valid).clone());
        let same = views.views()[0];
        let views =
            arrow::array::BinaryViewArray::new(vec![same; 4].into(), views.data_buffers().to_vec(), None);
        let nulls = NullBuffer::from(vec![false, true, false, true]);
        let columns = vec![Arc::new(views) as _, Arc::clone(valid.column(1))];
        let references = StructArray::new(valid.fields().clone(), columns, Some(nulls));
        let found = look_up_references(&references, keys(4), 4).unwrap();
        assert_eq!(found.iter().collect::<Vec<_>>(), [None, Some(true), None, Some(true)]);
    }

    /// Keys are hashed in chunks, whose answers are whole bytes.
    #[test]
    fn bits_are_those_of_their_keys() {
        let mut filter = BloomFilter::with_fpr(1000, 0.01).unwrap();
        filter.extend((0..6000).step_by(7));
        for n in [0, 1, 7, 8, 9, 4095, 4096, 4097, 5003] {
            let keys = Int64Array::from_iter((0..n + 3).map(|key| (key % 5 != 4).then_some(key)))
                .slice(3, n as usize);
            let dictionary: DictionaryArray<Int32Type> =
                DictionaryArray::new((0..n as i32).rev().collect(), Arc::new(keys.clone()));
            for keys in [&keys as &dyn Array, &dictionary] {
                let numbers = cast(keys, &DataType::Int64).unwrap();
                let expected =
                    numbers.as_primitive::<Int64Type>().iter().map(|key| key.map(|key| filter.contains(key)));
                let found = look_up(filter.as_view(), keys).unwrap();
                assert!(found.iter().eq(expected), "{n} keys of {}", keys.data_type());
            }
        }
    }
}
