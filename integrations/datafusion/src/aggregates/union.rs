//! `bloom_filter_union(filter)` makes one filter of the keys of all filters.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, BinaryViewBuilder, BooleanArray, ListArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef};
use bloomline::{BloomFilter, Sizing};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility};

use super::build::valid;
use crate::arguments::exactly;
use crate::filters::{self, failed, not_made};

const NAME: &str = "bloom_filter_union";

/// The aggregate `bloom_filter_union(filter)`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Union {
    signature: Signature,
}

impl Union {
    pub fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for Union {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [filter] = exactly(NAME, "one column of filters", types.to_vec())?;
        filters::check_type(NAME, &filter)?;
        Ok(vec![filter])
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Binary)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let filters = DataType::List(element());
        Ok(vec![Arc::new(Field::new(format!("{}[filters]", args.name), filters, false))])
    }

    fn accumulator(&self, _args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Whole::default()))
    }

    fn groups_accumulator_supported(&self, _args: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, _args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Groups::default()))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

fn element() -> FieldRef {
    Arc::new(Field::new("filter", DataType::BinaryView, false))
}

/// A union for each size. They are united only at the end, because a filter that is resized twice may get more bits than
/// by one step, and the result would depend on the order.
#[derive(Debug, Default)]
struct Unions(Vec<BloomFilter>);

impl Unions {
    fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let filter = filters::open(NAME, bytes)?;
        match self.0.iter_mut().find(|union| union.sizing() == filter.sizing()) {
            Some(union) => union.union_with(filter).map_err(|error| failed(NAME, error))?,
            None => self.0.push(filter.to_filter().map_err(|error| not_made(NAME, error))?),
        }
        Ok(())
    }

    /// The union of all, in the largest size, and with the fewest modules and probes, because every filter has these.
    /// `None` if there were no filters.
    fn united(&self) -> Result<Option<Cow<'_, BloomFilter>>> {
        if let [] | [_] = &self.0[..] {
            return Ok(self.0.first().map(Cow::Borrowed));
        }
        let sizes = || self.0.iter().map(BloomFilter::sizing);
        let n_modules = sizes().map(Sizing::n_modules).min().unwrap_or(1);
        let module_blocks = sizes().map(|size| size.n_blocks() / size.n_modules()).max().unwrap_or(1);
        let k = sizes().map(Sizing::k).min().unwrap_or(1);
        let mut united: Option<BloomFilter> = None;
        for filter in &self.0 {
            let view = filter.as_view();
            let fewest = view.first_modules(n_modules).and_then(|view| view.first_probes(k)).unwrap_or(view);
            let resized =
                fewest.to_resized(n_modules * module_blocks).map_err(|error| not_made(NAME, error))?;
            match &mut united {
                Some(united) => united.union_with(&resized).map_err(|error| failed(NAME, error))?,
                None => united = Some(resized),
            }
        }
        Ok(united.map(Cow::Owned))
    }

    fn size(&self) -> usize {
        self.0.iter().map(|filter| size_of::<BloomFilter>() + filter.byte_len()).sum()
    }
}

/// The state of each group is a list of its filters.
fn states(groups: &[Unions]) -> Result<ListArray> {
    // Many small filters share a buffer, because DataFusion counts references to each buffer for each batch.
    let mut filters = BinaryViewBuilder::new().with_fixed_block_size(1 << 20);
    for filter in groups.iter().flat_map(|group| &group.0) {
        filters.append_value(filters::standalone(NAME, filter)?);
    }
    let offsets = OffsetBuffer::from_lengths(groups.iter().map(|group| group.0.len()));
    Ok(ListArray::try_new(element(), offsets, Arc::new(filters.finish()), None)?)
}

#[derive(Debug, Default)]
struct Whole(Unions);

impl Accumulator for Whole {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        filters::views(&values[0])?.iter().flatten().try_for_each(|bytes| self.0.add(bytes))
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let states = states[0].as_list::<i32>();
        states.iter().flatten().try_for_each(|filters| self.update_batch(&[filters]))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let unions = std::mem::take(&mut self.0);
        Ok(vec![ScalarValue::List(Arc::new(states(&[unions])?))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let united = self.0.united()?;
        Ok(ScalarValue::Binary(united.map(|filter| filters::standalone(NAME, &filter)).transpose()?))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.0.size()
    }
}

/// The unions of each group.
#[derive(Debug, Default)]
struct Groups {
    groups: Vec<Unions>,
    /// Counted, because `size` is called for each batch, and must not visit each group.
    bytes: usize,
}

impl Groups {
    fn add(&mut self, group: usize, filters: &BinaryViewArray) -> Result<()> {
        let group = &mut self.groups[group];
        self.bytes -= group.size();
        let added = filters.iter().flatten().try_for_each(|bytes| group.add(bytes));
        self.bytes += group.size();
        added
    }

    fn take(&mut self, emit_to: EmitTo) -> Vec<Unions> {
        let taken = emit_to.take_needed(&mut self.groups);
        self.bytes -= taken.iter().map(Unions::size).sum::<usize>();
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
        self.groups.resize_with(total_num_groups, Unions::default);
        let filters = filters::views(&values[0])?;
        let valid = valid(&filters, filter);
        for (i, &group) in group_indices.iter().enumerate() {
            if valid.as_ref().is_none_or(|valid| valid.is_valid(i)) {
                self.add(group, &filters.slice(i, 1))?;
            }
        }
        Ok(())
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.groups.resize_with(total_num_groups, Unions::default);
        for (&group, filters) in group_indices.iter().zip(states[0].as_list::<i32>().iter()) {
            if let Some(filters) = filters {
                self.add(group, filters.as_binary_view())?;
            }
        }
        Ok(())
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![Arc::new(states(&self.take(emit_to))?)])
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let filters = filters::views(&values[0])?;
        let valid = valid(&filters, filter);
        let is_valid = |i| valid.as_ref().is_none_or(|valid| valid.is_valid(i));
        let offsets = OffsetBuffer::from_lengths((0..filters.len()).map(|i| usize::from(is_valid(i))));
        let selected = BooleanArray::from_iter((0..filters.len()).map(|i| Some(is_valid(i))));
        let filters = arrow::compute::filter(&filters, &selected)?;
        Ok(vec![Arc::new(ListArray::try_new(element(), offsets, filters, None)?)])
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let groups = self.take(emit_to);
        let united = groups.iter().map(Unions::united).collect::<Result<Vec<_>>>()?;
        filters::column(NAME, united.iter().map(Option::as_deref), filters::FEWER_GROUPS)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.groups.capacity() * size_of::<Unions>() + self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, BinaryArray};
    use bloomline::BloomFilter;
    use datafusion_expr::{EmitTo, GroupsAccumulator};

    use super::Groups;

    /// Three filters of 0.4 MiB each do not fit, because a column of the tests ends at 1 MiB.
    #[test]
    fn more_than_a_column_holds_is_an_error() {
        let filter = BloomFilter::with_blocks(6554, 6).unwrap().to_standalone();
        let filters: ArrayRef = Arc::new(BinaryArray::from_iter_values([&filter; 3]));
        let evaluate = |groups: [usize; 3]| {
            let mut accumulator = Groups::default();
            accumulator.update_batch(&[Arc::clone(&filters)], &groups, None, 3).unwrap();
            accumulator.evaluate(EmitTo::All)
        };
        assert_eq!(evaluate([0, 1, 1]).unwrap().len(), 3);
        let error = evaluate([0, 1, 2]).unwrap_err().to_string();
        assert!(error.contains("3 filters of 12"), "{error}");
    }
}
