//! However keys are split into batches and partitions, and however partial filters are merged, the filter has the same
//! bytes as one that the Rust crate builds of all keys at once.

use std::sync::Arc;

use crate::common::{built, bytes};
use arrow::array::{ArrayRef, BinaryArray, BooleanArray, Int16Array, Int64Array};
use arrow::compute::concat;
use arrow::datatypes::{DataType, Field, Schema};
use bloomline::{BloomFilter, BloomView, Sizing, hash_key};
use bloomline_datafusion::aggregate_functions;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion::physical_expr::expressions::{col, lit};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// `tests/golden.rs` has keys of other types.
fn column(keys: &[Option<i16>]) -> ArrayRef {
    Arc::new(keys.iter().copied().collect::<Int16Array>())
}

/// What a filter of these keys must be.
fn expected<'a>(keys: impl IntoIterator<Item = &'a Option<i16>>) -> Vec<u8> {
    built(EXPECTED_KEYS as usize, FPR, keys.into_iter().flatten().map(|&key| hash_key(key, 0)))
}

const EXPECTED_KEYS: i64 = 40;
const FPR: f64 = 0.01;

/// Keys in some order, a third of them null, more of them than expected at times.
fn keys() -> impl Strategy<Value = Vec<Option<i16>>> {
    vec(prop_oneof![1 => Just(None), 2 => (0..200_i16).prop_map(Some)], 0..80)
}

/// Cuts into batches, of which some are empty.
fn cut<T>(rows: &[T], cuts: &[Index]) -> Vec<Vec<T>>
where
    T: Clone,
{
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(rows.len() + 1)).collect();
    cuts.extend([0, rows.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|ends| rows[ends[0]..ends[1]].to_vec()).collect()
}

fn aggregate(name: &str, data_type: &DataType) -> AggregateFunctionExpr {
    let function = aggregate_functions().into_iter().find(|function| function.name() == name).unwrap();
    let schema = Arc::new(Schema::new(vec![Field::new("key", data_type.clone(), true)]));
    let mut args: Vec<Arc<dyn PhysicalExpr>> = vec![col("key", &schema).unwrap()];
    if name == "bloom_filter" {
        args.extend([lit(EXPECTED_KEYS), lit(FPR)]);
    }
    AggregateExprBuilder::new(function, args).schema(schema).alias("filter").build().unwrap()
}

/// The columns that an accumulator is given for a batch, the constants among them.
fn arguments(keys: ArrayRef) -> Vec<ArrayRef> {
    let n = keys.len();
    let constants: [ArrayRef; 2] = [
        Arc::new(Int64Array::from(vec![EXPECTED_KEYS; n])),
        Arc::new(arrow::array::Float64Array::from(vec![FPR; n])),
    ];
    [keys].into_iter().chain(constants).collect()
}

fn states_of(states: &[Vec<ArrayRef>]) -> Vec<ArrayRef> {
    let columns = states[0].len();
    let column = |i: usize| concat(&states.iter().map(|state| &*state[i]).collect::<Vec<_>>()).unwrap();
    (0..columns).map(column).collect()
}

fn state_of(accumulator: &mut dyn Accumulator) -> Vec<ArrayRef> {
    accumulator.state().unwrap().iter().map(|value| value.to_array().unwrap()).collect()
}

/// Merges states in a tree. Each step replaces some neighbours, anywhere in the list, by one.
fn merge(
    aggregate: &AggregateFunctionExpr,
    mut states: Vec<Vec<ArrayRef>>,
    steps: &[(Index, Index, bool)],
) -> Vec<u8> {
    for &(start, n, in_one_batch) in steps {
        let start = start.index(states.len());
        let n = n.index(states.len() - start) + 1;
        let mut accumulator = aggregate.create_accumulator().unwrap();
        let some: Vec<_> = states.drain(start..start + n).collect();
        if in_one_batch {
            accumulator.merge_batch(&states_of(&some)).unwrap();
        } else {
            some.iter().rev().for_each(|state| accumulator.merge_batch(state).unwrap());
        }
        states.insert(start / 2, state_of(&mut *accumulator));
    }
    let mut last = aggregate.create_accumulator().unwrap();
    states.iter().for_each(|state| last.merge_batch(state).unwrap());
    let size = last.size();
    let result = last.evaluate().unwrap().to_array().unwrap();
    let result = bytes(&result, 0).unwrap();
    // Without keys there is no filter until the result is made.
    let is_empty = BloomView::from_standalone(&result).unwrap().fill_ratio() == 0.0;
    assert!(is_empty || size + 64 >= result.len(), "{size} bytes accounted for a filter of {}", result.len());
    result
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn accumulators(
        partitions in vec((keys(), vec(any::<Index>(), 0..4)), 1..6),
        steps in vec(any::<(Index, Index, bool)>(), 0..5),
    ) {
        let aggregate = aggregate("bloom_filter", &DataType::Int16);
        let mut states = vec![];
        for (keys, cuts) in &partitions {
            let mut accumulator = aggregate.create_accumulator().unwrap();
            let (whole, rows): (_, Vec<_>) = (column(keys), (0..keys.len()).collect());
            for batch in cut(&rows, cuts) {
                let slice = whole.slice(batch.first().copied().unwrap_or(0), batch.len());
                accumulator.update_batch(&arguments(slice)).unwrap();
            }
            states.push(state_of(&mut *accumulator));
        }
        let all = partitions.iter().flat_map(|(keys, _)| keys);
        prop_assert_eq!(merge(&aggregate, states, &steps), expected(all));
    }
}

const GROUPS: usize = 5;

/// A row of a grouped aggregate has a group, a key, and a value of the `FILTER` clause.
type Row = (usize, Option<i16>, Option<bool>);

fn grouped_rows() -> impl Strategy<Value = Vec<Row>> {
    let filter = prop_oneof![3 => Just(Some(true)), 1 => Just(Some(false)), 1 => Just(None)];
    let key = prop_oneof![1 => Just(None), 3 => (0..200_i16).prop_map(Some)];
    vec((0..GROUPS, key, filter), 0..60)
}

/// What is done with a batch of a partition.
#[derive(Clone, Debug)]
enum Step {
    Update,
    /// Each row becomes a state, without the accumulator.
    Convert,
    /// `Update`, then the first groups, or all, are given out as states.
    UpdateAndEmit(Option<Index>),
}

fn steps() -> impl Strategy<Value = Vec<(Step, Index)>> {
    let step = prop_oneof![
        3 => Just(Step::Update),
        1 => Just(Step::Convert),
        1 => any::<Option<Index>>().prop_map(Step::UpdateAndEmit),
    ];
    vec((step, any::<Index>()), 0..5)
}

/// Numbers groups in the order in which they come, as a hash aggregate does, and forgets the groups that are given out.
#[derive(Default)]
struct Numbers(Vec<usize>);

impl Numbers {
    fn of(&mut self, group: usize) -> usize {
        self.0.iter().position(|&known| known == group).unwrap_or_else(|| {
            self.0.push(group);
            self.0.len() - 1
        })
    }

    fn emit(&mut self, emit_to: EmitTo) -> Vec<usize> {
        emit_to.take_needed(&mut self.0)
    }
}

/// States, and the group of each.
type GroupStates = (Vec<usize>, Vec<ArrayRef>);

fn emit(accumulator: &mut dyn GroupsAccumulator, numbers: &mut Numbers, emit_to: EmitTo) -> GroupStates {
    let states = accumulator.state(emit_to).unwrap();
    let groups = numbers.emit(emit_to);
    assert_eq!(states[0].len(), groups.len());
    (groups, states)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn groups_accumulators(
        partitions in vec((grouped_rows(), steps()), 1..4),
        filtered: bool,
        emit_first in any::<Option<Index>>(),
    ) {
        let aggregate = aggregate("bloom_filter", &DataType::Int16);
        prop_assert!(aggregate.groups_accumulator_supported());
        let mut states: Vec<GroupStates> = vec![];
        for (rows, steps) in &partitions {
            let mut accumulator = aggregate.create_groups_accumulator().unwrap();
            let mut numbers = Numbers::default();
            let cuts: Vec<_> = steps.iter().map(|(_, cut)| *cut).collect();
            for (i, batch) in cut(rows, &cuts).into_iter().enumerate() {
                let keys: Vec<_> = batch.iter().map(|row| row.1).collect();
                let arguments = arguments(column(&keys));
                let filter = filtered.then(|| batch.iter().map(|row| row.2).collect::<BooleanArray>());
                let step = steps.get(i).map_or(&Step::Update, |(step, _)| step);
                if let Step::Convert = step {
                    let converted = accumulator.convert_to_state(&arguments, filter.as_ref()).unwrap();
                    prop_assert_eq!(converted[0].len(), batch.len());
                    states.push((batch.iter().map(|row| row.0).collect(), converted));
                    continue;
                }
                let groups: Vec<_> = batch.iter().map(|row| numbers.of(row.0)).collect();
                accumulator.update_batch(&arguments, &groups, filter.as_ref(), numbers.0.len()).unwrap();
                if let Step::UpdateAndEmit(first) = step {
                    let emit_to = match first {
                        Some(first) => EmitTo::First(first.index(numbers.0.len() + 1)),
                        None => EmitTo::All,
                    };
                    states.push(emit(&mut *accumulator, &mut numbers, emit_to));
                }
            }
            states.push(emit(&mut *accumulator, &mut numbers, EmitTo::All));
        }

        let mut last = aggregate.create_groups_accumulator().unwrap();
        let mut numbers = Numbers::default();
        for (groups, states) in states.iter().rev() {
            let groups: Vec<_> = groups.iter().map(|&group| numbers.of(group)).collect();
            last.merge_batch(states, &groups, numbers.0.len()).unwrap();
        }
        let (n, size) = (numbers.0.len(), last.size());
        let (mut results, mut bytes_of_filters) = (vec![], 0);
        if let Some(first) = emit_first {
            let emit_to = EmitTo::First(first.index(n + 1));
            results.push((numbers.emit(emit_to), last.evaluate(emit_to).unwrap()));
        }
        results.push((numbers.emit(EmitTo::All), last.evaluate(EmitTo::All).unwrap()));
        let mut seen = 0;
        for (groups, filters) in results {
            prop_assert_eq!(groups.len(), filters.len());
            seen += groups.len();
            for (i, group) in groups.into_iter().enumerate() {
                let keys = partitions.iter().flat_map(|(rows, _)| rows);
                let keys = keys.filter(|row| row.0 == group && (!filtered || row.2 == Some(true)));
                let expected = expected(keys.map(|row| &row.1));
                // Without keys there is no filter until the result is made.
                let is_empty = BloomView::from_standalone(&expected).unwrap().fill_ratio() == 0.0;
                bytes_of_filters += if is_empty { 0 } else { expected.len() - 64 };
                prop_assert_eq!(bytes(&filters, i).unwrap(), expected, "group {}", group);
            }
        }
        // Else a query would exceed its memory limit instead of spilling.
        prop_assert!(size >= bytes_of_filters, "{} bytes accounted for {}", size, bytes_of_filters);
        prop_assert_eq!(seen, n);
    }

    /// Filters of any sizes, in one module or two, with few and many probes.
    #[test]
    fn unions(
        first in sizes(),
        partitions in vec((vec((sizes(), keys()), 0..5), vec(any::<Index>(), 0..3)), 1..5),
        steps in vec(any::<(Index, Index, bool)>(), 0..5),
    ) {
        let make = |sizing: Sizing, keys: &[Option<i16>]| {
            let mut filter = BloomFilter::with_sizing(sizing).unwrap();
            keys.iter().flatten().for_each(|key| _ = filter.insert(key));
            filter
        };
        let aggregate = aggregate("bloom_filter_union", &DataType::Binary);
        let mut states = vec![];
        // One filter at least.
        let mut all = vec![make(first, &[Some(7)])];
        for (i, (filters, cuts)) in partitions.iter().enumerate() {
            let mut column = vec![];
            for (size, keys) in filters {
                all.push(make(*size, keys));
                column.extend([all.last().map(BloomFilter::to_standalone), None]);
            }
            if i == 0 {
                column.push(Some(all[0].to_standalone()));
            }
            let mut accumulator = aggregate.create_accumulator().unwrap();
            for batch in cut(&column, cuts) {
                accumulator.update_batch(&[Arc::new(batch.iter().map(Option::as_ref).collect::<BinaryArray>())]).unwrap();
            }
            states.push(state_of(&mut *accumulator));
        }
        let result = merge(&aggregate, states, &steps);
        let result = BloomFilter::from_standalone(&result).unwrap();

        let fewest = all.iter().map(BloomFilter::n_modules).min().unwrap();
        let k = all.iter().map(BloomFilter::k).min().unwrap();
        let largest = all.iter().map(|filter| filter.n_blocks() / filter.n_modules()).max().unwrap();
        // A multiple of all sizes, in which each block is repeated.
        let common = Sizing::new(COMMON_BLOCKS * fewest, k).unwrap().with_modules(fewest).unwrap();
        let mut expected = make(common, &[]);
        for filter in &all {
            expected.union_with(filter.as_view().first_modules(fewest).unwrap().first_probes(k).unwrap()).unwrap();
        }
        expected.fold(COMMON_BLOCKS / largest).unwrap();
        prop_assert!(result == expected, "{result:?} {expected:?}");
        let keys = partitions.iter().flat_map(|(filters, _)| filters).flat_map(|(_, keys)| keys);
        prop_assert!(keys.flatten().chain([&7]).all(|&key| result.contains(key)), "a key was lost");
    }
}

/// A multiple of all blocks of [`sizes`].
const COMMON_BLOCKS: usize = 60;

fn sizes() -> impl Strategy<Value = Sizing> {
    (prop::sample::select(vec![1_usize, 2, 3, 4, 5, 6, 10]), 1..=2_usize, 4..=10_u32).prop_map(
        |(blocks, modules, k)| Sizing::new(blocks * modules, k).unwrap().with_modules(modules).unwrap(),
    )
}
