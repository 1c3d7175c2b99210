//! `bloom_contains(filter, key)`: whether a key is possibly present.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use arrow::array::{Array, BooleanArray, StructArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::{Result, ScalarValue, exec_datafusion_err, plan_err};
use datafusion_expr::logical_plan::Subquery;
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{
    ColumnarValue, Expr, LogicalPlanBuilder, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};

use crate::filters;
use crate::keys;
use crate::reference::{self, Reference};

const NAME: &str = "bloom_contains";

/// The scalar function `bloom_contains(filter, key)`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Contains {
    signature: Signature,
}

impl Contains {
    pub fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
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
        let [filter, key] = types else { return plan_err!("{NAME} takes a filter and a key") };
        if !reference::is_reference(filter) {
            filters::check_type(NAME, filter)?;
        }
        keys::check_type(NAME, key)?;
        Ok(types.to_vec())
    }

    /// With the checksum of a literal filter in place of its bytes, of which column names would consist otherwise.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let name = |arg: &Expr| match arg {
            Expr::Literal(filter, _) => {
                reference::checksum(filter).map(|checksum| format!("<{checksum:016x}>"))
            }
            _ => None,
        };
        let names = args.iter().map(|arg| name(arg).unwrap_or_else(|| arg.schema_name().to_string()));
        Ok(format!("{NAME}({})", names.collect::<Vec<_>>().join(",")))
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        keys::check_field(NAME, &args.arg_fields[1])?;
        Ok(Arc::new(Field::new(NAME, DataType::Boolean, true)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    /// Has the filter passed as a reference.
    fn simplify(&self, mut args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let is_done = |data_type: DataType| reference::is_reference(&data_type) || data_type.is_null();
        if info.get_data_type(&args[0]).map_or(true, is_done) {
            return Ok(ExprSimplifyResult::Original(args));
        }
        let filter = std::mem::take(&mut args[0]);
        args[0] = match filter {
            Expr::Literal(filter, metadata) => {
                let reference = reference::of(ColumnarValue::Scalar(filter))?;
                if reference.is_valid(0) {
                    reference::open(NAME, &reference, 0)?;
                }
                Expr::Literal(ScalarValue::Struct(Arc::new(reference)), metadata)
            }
            Expr::ScalarSubquery(subquery) if subquery.outer_ref_columns.is_empty() => {
                let filter = Expr::Column(subquery.subquery.schema().columns().swap_remove(0));
                let reference = ScalarUDF::from(Reference::in_place()).call(vec![filter]);
                let plan =
                    LogicalPlanBuilder::new_from_arc(subquery.subquery).project([reference])?.build()?;
                Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), ..subquery })
            }
            other => ScalarUDF::from(Reference::new()).call(vec![other]),
        };
        Ok(ExprSimplifyResult::Simplified(ScalarUDF::from(Self::new()).call(args)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [filter, key] = <[ColumnarValue; 2]>::try_from(args.args).map_err(|args| {
            exec_datafusion_err!("{NAME} takes a filter and a key, not {} arguments", args.len())
        })?;
        let is_scalar = matches!((&filter, &key), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
        let keys = key.into_array(if is_scalar { 1 } else { args.number_rows })?;
        let found = look_up(&reference::of(filter)?, &keys)?;
        Ok(if is_scalar {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?)
        } else {
            ColumnarValue::Array(Arc::new(found))
        })
    }
}

/// Looks up each key in the filter beside it, or all keys in the only filter.
fn look_up(references: &StructArray, keys: &dyn Array) -> Result<BooleanArray> {
    let n = keys.len();
    let filters = reference::filters(references);
    let valid = NullBuffer::union(references.nulls(), filters.nulls());
    let is_valid = |i: &usize| valid.as_ref().is_none_or(|valid| valid.is_valid(*i));
    let only = references.len() == 1;
    if only && !is_valid(&0) {
        return Ok(BooleanArray::new_null(n));
    }
    let mut found = vec![false; n];
    // Equal views are of one filter. Most filters have one seed.
    let (mut opened, mut hashed) = (HashMap::new(), None);
    let mut start = 0;
    for equal in filters.views().chunk_by(|a, b| a == b) {
        let rows = start..start + equal.len();
        start = rows.end;
        // The view of a null means nothing, and may equal its neighbours'.
        let Some(first) = rows.clone().find(is_valid) else { continue };
        let filter = match opened.entry(equal[0]) {
            Entry::Occupied(filter) => filter.into_mut(),
            Entry::Vacant(entry) => entry.insert(reference::open(NAME, references, first)?),
        };
        let rows = if only { 0..n } else { rows };
        let seed = filter.seed();
        let (first_seed, hashes) = match &mut hashed {
            Some(hashed) => hashed,
            None => hashed.insert((seed, keys::hash(keys, seed)?)),
        };
        if *first_seed == seed {
            filter.contains_batch(&hashes[rows.clone()], &mut found[rows]);
        } else {
            let hashes = keys::hash(&keys.slice(rows.start, rows.len()), seed)?;
            filter.contains_batch(&hashes, &mut found[rows]);
        }
    }
    let valid = valid.filter(|_| !only);
    let nulls = NullBuffer::union(valid.as_ref(), keys.logical_nulls().as_ref());
    Ok(BooleanArray::new(BooleanBuffer::collect_bool(n, |i| found[i]), nulls))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{BinaryArray, Int64Array, StructArray};
    use arrow::buffer::NullBuffer;
    use bloomline::BloomFilter;
    use datafusion_expr::ColumnarValue;

    use super::{look_up, reference};

    /// A struct may be null where the filter in it is not.
    #[test]
    fn a_null_hides_no_neighbour() {
        let mut filter = BloomFilter::with_fpr(10, 0.01).unwrap();
        filter.insert(7);
        let filters = BinaryArray::from_iter_values([filter.to_standalone()]);
        let filters = arrow::compute::take(&filters, &Int64Array::from(vec![0; 4]), None).unwrap();
        let valid = reference::of(ColumnarValue::Array(filters)).unwrap();
        let views = Arc::new(reference::filters(&valid).clone());
        let same = views.views()[0];
        let views =
            arrow::array::BinaryViewArray::new(vec![same; 4].into(), views.data_buffers().to_vec(), None);
        let nulls = NullBuffer::from(vec![false, true, false, true]);
        let columns = vec![Arc::new(views) as _, Arc::clone(valid.column(1))];
        let references = StructArray::new(valid.fields().clone(), columns, Some(nulls));
        let found = look_up(&references, &Int64Array::from(vec![7; 4])).unwrap();
        assert_eq!(found.iter().collect::<Vec<_>>(), [None, Some(true), None, Some(true)]);
    }

    #[test]
    fn each_filter_has_its_seed() {
        let filters = [0, 0x5eed, 0].map(|seed| {
            let mut filter = BloomFilter::with_fpr(1000, 1e-6).unwrap().with_seed(seed).unwrap();
            filter.insert(7);
            filter.to_standalone()
        });
        let column = Arc::new(BinaryArray::from_iter_values(filters));
        let references = reference::of(ColumnarValue::Array(column)).unwrap();
        let found = look_up(&references, &Int64Array::from(vec![7; 3])).unwrap();
        assert_eq!(found.iter().collect::<Vec<_>>(), [Some(true); 3]);
    }
}
