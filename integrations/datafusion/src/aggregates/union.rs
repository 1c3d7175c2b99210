//! `bloom_filter_union(filter)` makes one filter of the keys of all filters.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, BinaryViewBuilder, BooleanArray, ListArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef};
use bloomline::{BloomFilter, BloomView};
use datafusion_common::{Result, ScalarValue, exec_err};
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

/// Unions of filters whose sizes do not divide each other. That is an error only at the end, because a smaller filter
/// that arrives later may divide them all, so that `add` combines them. So the result does not depend on the order.
#[derive(Debug, Default)]
struct Unions(Vec<BloomFilter>);

impl Unions {
    fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let view = filters::open(NAME, bytes)?;
        let mut united: Option<BloomFilter> = None;
        loop {
            let new = united.as_ref().map_or(view, BloomFilter::as_view);
            let Some(i) = self.0.iter().position(|old| divides(old.into(), new) || divides(new, old.into()))
            else {
                break;
            };
            let mut old = self.0.swap_remove(i);
            unite(&mut old, new)?;
            united = Some(old);
        }
        self.0.push(match united {
            Some(united) => united,
            None => view.to_filter().map_err(|error| not_made(NAME, error))?,
        });
        Ok(())
    }

    /// The union of all. `None` if there were no filters, and an error if several unions remain.
    fn united(&mut self) -> Result<Option<BloomFilter>> {
        // Sorted, so that the error does not depend on the order of the rows.
        self.0.sort_by_key(|filter| (filter.n_modules(), filter.n_blocks()));
        let [a, b, ..] = &self.0[..] else { return Ok(self.0.pop()) };
        let (what, a, b) = match a.n_modules() == b.n_modules() {
            true => ("blocks", a.n_blocks(), b.n_blocks()),
            false => ("modules", a.n_modules(), b.n_modules()),
        };
        exec_err!(
            "{NAME}: filters of {a} and {b} {what} have no union of a low false-positive rate: \
             give bloom_filter the same expected_keys and fpr"
        )
    }

    fn size(&self) -> usize {
        self.0.iter().map(|filter| size_of::<BloomFilter>() + filter.byte_len()).sum()
    }
}

fn divides(a: BloomView<'_>, b: BloomView<'_>) -> bool {
    a.n_modules() == b.n_modules() && b.n_blocks().is_multiple_of(a.n_blocks())
}

/// Unites two filters whose sizes divide each other, in the smaller size and with the smaller k. Their k can differ,
/// because `expected_keys` decides both size and k.
fn unite(filter: &mut BloomFilter, other: BloomView<'_>) -> Result<()> {
    let (n_blocks, k) = (filter.n_blocks().min(other.n_blocks()), filter.k().min(other.k()));
    let folded = |view: BloomView<'_>| {
        let of_k = view.first_probes(k).unwrap_or(view);
        of_k.to_folded(view.n_blocks() / n_blocks).map_err(|error| not_made(NAME, error))
    };
    if (filter.n_blocks(), filter.k()) != (n_blocks, k) {
        *filter = folded(filter.as_view())?;
    }
    let united = match other.n_blocks() == n_blocks {
        true => filter.union_with(other.first_probes(k).unwrap_or(other)),
        false => filter.union_with(&folded(other)?),
    };
    united.map_err(|error| failed(NAME, error))
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
        let bytes = united.as_ref().map(|filter| filters::standalone(NAME, filter)).transpose()?;
        // A window function adds more filters after this.
        self.0.0.extend(united);
        Ok(ScalarValue::Binary(bytes))
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
        let united = self.take(emit_to).iter_mut().map(Unions::united).collect::<Result<Vec<_>>>()?;
        filters::column(NAME, united.iter().map(Option::as_ref), filters::FEWER_GROUPS)
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
