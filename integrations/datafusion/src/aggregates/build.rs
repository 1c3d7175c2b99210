//! `bloom_filter(key, expected_keys, fpr)` makes a filter of all keys.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, BinaryViewBuilder, BooleanArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, FieldRef};
use arrow::record_batch::RecordBatch;
use bloomline::{BloomFilter, Sizing, StandaloneFooter};
use datafusion_common::{Result, ScalarValue, plan_datafusion_err, plan_err};
use datafusion_expr::expr::AggregateFunction;
use datafusion_expr::function::{AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{
    Accumulator, AggregateUDFImpl, ColumnarValue, EmitTo, Expr, GroupsAccumulator, Signature, Volatility,
};

use crate::arguments::exactly;
use crate::filters::{self, failed, not_made};
use crate::keys;

const NAME: &str = "bloom_filter";

/// The aggregate `bloom_filter(key, expected_keys, fpr)`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Build {
    signature: Signature,
}

impl Build {
    pub fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for Build {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Checks the arguments' types, and changes none of them.
    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let takes = "a key, the number of expected keys and a false-positive rate";
        let [key, expected_keys, fpr] = exactly(NAME, takes, types.to_vec())?;
        keys::check_type(NAME, &key)?;
        for (name, number) in [("expected_keys", &expected_keys), ("fpr", &fpr)] {
            if !number.is_numeric() && !number.is_null() {
                return plan_err!("{NAME}: {name} must be a number, not of type {number}");
            }
        }
        Ok(vec![key, expected_keys, fpr])
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Binary)
    }

    fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        if let Some(key) = arguments.first() {
            keys::check_field(NAME, key)?;
        }
        Ok(Arc::new(Field::new(NAME, DataType::Binary, true)))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        // As views, filters are not copied when rows are distributed by group.
        Ok(vec![Arc::new(Field::new(format!("{}[filter]", args.name), DataType::BinaryView, true))])
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        Some(Box::new(|function: AggregateFunction, _| {
            check(&function.params.args)?;
            Ok(Expr::AggregateFunction(function))
        }))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Whole { sizing: sizing_of(&args)?, filter: None }))
    }

    fn groups_accumulator_supported(&self, _args: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let sizing = sizing_of(&args)?;
        Ok(Box::new(Groups { sizing, filters: Vec::new(), built: 0 }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// Checks constants while planning. Values that are not known yet, such as parameters, are checked by `sizing_of`.
fn check(arguments: &[Expr]) -> Result<()> {
    let [_, expected_keys, fpr] = arguments else { return Ok(()) };
    for (name, argument) in [("expected_keys", expected_keys), ("fpr", fpr)] {
        if argument.any_column_refs() {
            return plan_err!("{NAME}: {name} must be a constant, not {argument}");
        }
    }
    if let (Expr::Literal(expected_keys, _), Expr::Literal(fpr, _)) = (expected_keys, fpr) {
        sizing(expected_keys, fpr)?;
    }
    Ok(())
}

fn sizing_of(args: &AccumulatorArgs) -> Result<Sizing> {
    let nothing = RecordBatch::new_empty(Arc::new(args.schema.clone()));
    let constant = |i: usize, name| match args.exprs[i].evaluate(&nothing)? {
        ColumnarValue::Scalar(value) => Ok(value),
        ColumnarValue::Array(_) => plan_err!("{NAME}: {name} must be a constant, not {}", args.exprs[i]),
    };
    sizing(&constant(1, "expected_keys")?, &constant(2, "fpr")?)
}

fn sizing(expected_keys: &ScalarValue, fpr: &ScalarValue) -> Result<Sizing> {
    let number = |name, value: &ScalarValue| match value.cast_to(&DataType::Float64)? {
        ScalarValue::Float64(Some(number)) => Ok(number),
        _ => plan_err!("{NAME}: {name} must be a number, not {value}"),
    };
    let keys = number("expected_keys", expected_keys)?;
    // Above 2^53, floating point skips whole numbers.
    if keys.fract() != 0.0 || !(0.0..=9_007_199_254_740_992.0).contains(&keys) {
        return plan_err!("{NAME}: expected_keys must be a whole number from 0 to 2^53, not {expected_keys}");
    }
    let sizing = Sizing::for_fpr(keys as u64, number("fpr", fpr)?)
        .map_err(|error| plan_datafusion_err!("{NAME}: {error}"))?
        .rounded_to_fold();
    let checksums = if sizing.n_modules() == 1 { 0 } else { 8 * sizing.n_modules() };
    let bytes = sizing.byte_len().saturating_add(checksums + StandaloneFooter::LEN);
    if bytes > i32::MAX as usize {
        return plan_err!(
            "{NAME}: a filter of {bytes} bytes exceeds SQL's limit of {} bytes in a value: \
             expect fewer keys, or build one filter per group of keys",
            i32::MAX
        );
    }
    Ok(sizing)
}

fn empty(sizing: Sizing) -> Result<BloomFilter> {
    BloomFilter::with_sizing(sizing).map_err(|error| not_made(NAME, error))
}

/// The filter of some keys, made for the first of them.
fn filter_of(filter: &mut Option<BloomFilter>, sizing: Sizing) -> Result<&mut BloomFilter> {
    match filter {
        Some(filter) => Ok(filter),
        None => Ok(filter.insert(empty(sizing)?)),
    }
}

/// Adds the state of some keys. An accumulator's is standalone bytes, and `convert_to_state`'s is the hash of one key.
fn merge(filter: &mut Option<BloomFilter>, sizing: Sizing, state: &[u8]) -> Result<()> {
    if let Ok(hash) = state.try_into() {
        filter_of(filter, sizing)?.insert_hash(u64::from_le_bytes(hash));
        return Ok(());
    }
    let state = filters::open(NAME, state)?;
    filter_of(filter, sizing)?.union_with(state).map_err(|error| failed(NAME, error))
}

/// Which keys are neither null nor left out by the clause `FILTER`.
pub fn valid(keys: &dyn Array, filter: Option<&BooleanArray>) -> Option<NullBuffer> {
    let selected = filter.map(|filter| match filter.nulls() {
        Some(nulls) => NullBuffer::new(filter.values() & nulls.inner()),
        None => NullBuffer::new(filter.values().clone()),
    });
    NullBuffer::union(keys.logical_nulls().as_ref(), selected.as_ref())
}

/// The hashes of the keys that `valid` selects.
fn hash(keys: &dyn Array, valid: Option<&NullBuffer>) -> Result<Vec<u64>> {
    let mut hashes = keys::hash(keys, 0)?;
    if let Some(valid) = valid {
        let mut valid = valid.iter();
        hashes.retain(|_| valid.next() == Some(true));
    }
    Ok(hashes)
}

/// One filter. It is made when its first key arrives, so that partitions without keys cost nothing.
#[derive(Debug)]
struct Whole {
    sizing: Sizing,
    filter: Option<BloomFilter>,
}

impl Accumulator for Whole {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let hashes = hash(&values[0], valid(&values[0], None).as_ref())?;
        if !hashes.is_empty() {
            filter_of(&mut self.filter, self.sizing)?.insert_batch(&hashes);
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        states[0]
            .as_binary_view()
            .iter()
            .flatten()
            .try_for_each(|state| merge(&mut self.filter, self.sizing, state))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let state = self.filter.take().map(|filter| filters::standalone(NAME, &filter)).transpose()?;
        Ok(vec![ScalarValue::BinaryView(state)])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let bytes = match &self.filter {
            Some(filter) => filters::standalone(NAME, filter)?,
            None => filters::standalone(NAME, &empty(self.sizing)?)?,
        };
        Ok(ScalarValue::Binary(Some(bytes)))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.filter.as_ref().map_or(0, BloomFilter::byte_len)
    }
}

/// A filter per group, made when its first key arrives.
#[derive(Debug)]
struct Groups {
    sizing: Sizing,
    filters: Vec<Option<BloomFilter>>,
    /// Counted, because `size` is called for each batch, and must not visit each group.
    built: usize,
}

impl Groups {
    fn take(&mut self, emit_to: EmitTo) -> Vec<Option<BloomFilter>> {
        let taken = emit_to.take_needed(&mut self.filters);
        self.built -= taken.iter().flatten().count();
        taken
    }
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.filters.resize_with(total_num_groups, || None);
        let valid = valid(&values[0], filter);
        let group_indices = match &valid {
            Some(valid) => Cow::Owned(valid.valid_indices().map(|i| group_indices[i]).collect()),
            None => Cow::Borrowed(group_indices),
        };
        let hashes = hash(&values[0], valid.as_ref())?;
        let mut rest = &hashes[..];
        // Neighbours often belong to one group.
        for neighbours in group_indices.chunk_by(|a, b| a == b) {
            let filter = &mut self.filters[neighbours[0]];
            self.built += usize::from(filter.is_none());
            let batch;
            (batch, rest) = rest.split_at(neighbours.len());
            filter_of(filter, self.sizing)?.insert_batch(batch);
        }
        Ok(())
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.filters.resize_with(total_num_groups, || None);
        for (&group, state) in group_indices.iter().zip(states[0].as_binary_view()) {
            if let Some(state) = state {
                let filter = &mut self.filters[group];
                self.built += usize::from(filter.is_none());
                merge(filter, self.sizing, state)?;
            }
        }
        Ok(())
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        // Many small filters share a buffer, because DataFusion counts references to each buffer for each batch.
        let mut states = BinaryViewBuilder::new().with_fixed_block_size(1 << 20);
        for filter in self.take(emit_to) {
            match filter {
                Some(filter) => states.append_value(filters::standalone(NAME, &filter)?),
                None => states.append_null(),
            }
        }
        Ok(vec![Arc::new(states.finish())])
    }

    /// Each key becomes a state of 8 bytes. If most groups have one key, a filter for each row would fill the memory.
    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let hashes = keys::hash(&values[0], 0)?;
        let valid = valid(&values[0], filter);
        let state = |(i, hash): (usize, u64)| {
            valid.as_ref().is_none_or(|valid| valid.is_valid(i)).then(|| hash.to_le_bytes())
        };
        Ok(vec![Arc::new(hashes.into_iter().enumerate().map(state).collect::<BinaryViewArray>())])
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let filters = self.take(emit_to);
        let empty = empty(self.sizing)?;
        let filters = filters.iter().map(|filter| Some(filter.as_ref().unwrap_or(&empty)));
        filters::column(NAME, filters, filters::FEWER_GROUPS)
    }

    fn size(&self) -> usize {
        size_of::<Self>()
            + self.filters.capacity() * size_of::<Option<BloomFilter>>()
            + self.built * self.sizing.byte_len()
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{BooleanArray, Int64Array};
    use arrow::buffer::{BooleanBuffer, NullBuffer};

    /// A null of the clause `FILTER` selects no row, whichever bit is beneath it.
    #[test]
    fn a_null_selects_nothing() {
        let nulls = NullBuffer::from(vec![true, false]);
        let filter = BooleanArray::new(BooleanBuffer::new_set(2), Some(nulls));
        let valid = super::valid(&Int64Array::from(vec![7, 8]), Some(&filter)).unwrap();
        assert_eq!(valid.iter().collect::<Vec<_>>(), [true, false]);
    }
}
