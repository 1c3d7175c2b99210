//! `bloom_filter_union(filter)`: one filter of the keys of all filters.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, ListArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef};
use bloomline::{BloomFilter, MismatchError};
use datafusion_common::{Result, ScalarValue, plan_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};

use crate::filters::{self, failed};

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
        let mut new = filters::open(NAME, bytes)?.to_filter();
        while let Some(i) = self.0.iter().position(|old| divides(old, &new) || divides(&new, old)) {
            let mut old = self.0.swap_remove(i);
            let (larger, smaller) =
                if new.n_blocks() > old.n_blocks() { (&mut new, &old) } else { (&mut old, &new) };
            larger.fold(larger.n_blocks() / smaller.n_blocks()).map_err(|error| failed(NAME, error))?;
            new.union_with(&old).map_err(|error| failed(NAME, error))?;
        }
        self.0.push(new);
        Ok(())
    }
}

fn divides(a: &BloomFilter, b: &BloomFilter) -> bool {
    b.n_blocks().is_multiple_of(a.n_blocks())
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
        match self.0.as_slice() {
            [] => Ok(ScalarValue::Binary(None)),
            [filter] => Ok(ScalarValue::Binary(Some(filters::standalone(NAME, filter)?))),
            [a, b, ..] => {
                let (ours, theirs) = (a.n_blocks(), b.n_blocks());
                let (ours, theirs) = (ours.min(theirs), ours.max(theirs));
                Err(failed(NAME, MismatchError::Blocks { ours, theirs }))
            }
        }
    }

    fn size(&self) -> usize {
        size_of::<Self>()
            + self.0.iter().map(|filter| size_of::<BloomFilter>() + filter.size_bytes()).sum::<usize>()
    }
}
