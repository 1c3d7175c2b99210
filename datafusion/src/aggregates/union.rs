//! `bloom_filter_union(filter)`: one filter of the keys of all filters.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, ListArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef};
use bloomline::{BloomFilter, BloomView};
use datafusion_common::{Result, ScalarValue, plan_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};

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
        let [filter] = types else { return plan_err!("{NAME} takes one column of filters") };
        filters::check_type(NAME, filter)?;
        Ok(vec![filter.clone()])
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Binary)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let filters = DataType::List(element());
        Ok(vec![Arc::new(Field::new(format!("{}[filters]", args.name), filters, false))])
    }

    fn accumulator(&self, _args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Unions::default()))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

fn element() -> FieldRef {
    Arc::new(Field::new("filter", DataType::BinaryView, false))
}

/// A union for each size that neither divides another one nor is a multiple of it. A smaller filter that arrives later
/// may divide them all, so that the result does not depend on the order.
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
}

fn divides(a: BloomView<'_>, b: BloomView<'_>) -> bool {
    b.n_blocks().is_multiple_of(a.n_blocks())
}

/// Unites two filters whose sizes divide each other, in the smaller size.
fn unite(filter: &mut BloomFilter, other: BloomView<'_>) -> Result<()> {
    let (ours, theirs) = (filter.n_blocks(), other.n_blocks());
    let united = if ours < theirs {
        let folded = other.to_folded(theirs / ours).map_err(|error| not_made(NAME, error))?;
        filter.union_with(&folded)
    } else {
        filter.fold(ours / theirs).map_err(|error| not_made(NAME, error))?;
        filter.union_with(other)
    };
    united.map_err(|error| failed(NAME, error))
}

impl Accumulator for Unions {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        filters::views(&values[0])?.iter().flatten().try_for_each(|bytes| self.add(bytes))
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let states = states[0].as_list::<i32>();
        states.iter().flatten().try_for_each(|filters| self.update_batch(&[filters]))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let filters: Vec<_> =
            self.0.drain(..).map(|filter| filters::standalone(NAME, &filter)).collect::<Result<_>>()?;
        let filters = BinaryViewArray::from_iter_values(filters);
        let list = ListArray::try_new(
            element(),
            OffsetBuffer::from_lengths([filters.len()]),
            Arc::new(filters),
            None,
        )?;
        Ok(vec![ScalarValue::List(Arc::new(list))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        // In this order, so that the error does not depend on that of the rows.
        self.0.sort_by_key(BloomFilter::n_blocks);
        let Some((filter, others)) = self.0.split_first_mut() else { return Ok(ScalarValue::Binary(None)) };
        for other in others {
            filter.union_with(&*other).map_err(|error| failed(NAME, error))?;
        }
        Ok(ScalarValue::Binary(Some(filters::standalone(NAME, filter)?)))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
            + self.0.iter().map(|filter| size_of::<BloomFilter>() + filter.byte_len()).sum::<usize>()
    }
}
