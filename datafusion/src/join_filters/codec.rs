//! How the operators travel to executors.

use std::sync::Arc;

use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr_common::physical_expr::proto_decode::PhysicalExprDecodeCtx;
use datafusion::physical_expr_common::physical_expr::proto_encode::PhysicalExprEncodeCtx;
use datafusion_common::{Result, exec_datafusion_err, exec_err};
use datafusion_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, WindowUDF};
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};

use super::build::JoinFilterBuildExec;
use super::options::JoinFilterOptions;
use super::probe::JoinFilterExec;
use super::trace::Plan;

/// The operators' names in plans that travel, with the version of their encoding. Hashes of keys are the same in all
/// versions of this crate.
const PROBE: &[u8] = b"bloomline JoinFilterExec 1\n";
const BUILD: &[u8] = b"bloomline JoinFilterBuildExec 1\n";

/// Encodes the operators of joins that filter themselves, and leaves all else to another codec. On Ballista, scheduler
/// and executors need it: `JoinFilterCodec::new(Arc::new(BallistaPhysicalExtensionCodec::default()))`.
#[derive(Debug)]
pub struct JoinFilterCodec(Arc<dyn PhysicalExtensionCodec>);

impl JoinFilterCodec {
    /// A codec that leaves all other operators to `inner`.
    pub fn new(inner: Arc<dyn PhysicalExtensionCodec>) -> Self {
        Self(inner)
    }
}

/// Numbers of 8 bytes.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn next(&mut self) -> Result<u64> {
        let Some((number, rest)) = self.0.split_first_chunk() else {
            return exec_err!("join filter: an operator of {} bytes is cut off", self.0.len());
        };
        self.0 = rest;
        Ok(u64::from_le_bytes(*number))
    }

    fn size(&mut self) -> Result<usize> {
        let number = self.next()?;
        number
            .try_into()
            .map_err(|_| exec_datafusion_err!("join filter: {number} is too large for this machine"))
    }

    fn float(&mut self) -> Result<f64> {
        self.next().map(f64::from_bits)
    }

    /// The columns of the keys, which the input must have.
    fn columns(&mut self, input: &Plan) -> Result<Vec<usize>> {
        let n = input.schema().fields().len();
        let columns = (0..self.0.len() / 8).map(|_| self.size()).collect::<Result<Vec<_>>>()?;
        match columns.iter().find(|&&column| column >= n) {
            Some(column) => exec_err!("join filter: column {column} of an input of {n} columns"),
            None => Ok(columns),
        }
    }
}

impl PhysicalExtensionCodec for JoinFilterCodec {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Plan],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Plan> {
        if let (Some(bytes), [input, keys]) = (bytes.strip_prefix(PROBE), inputs) {
            let mut numbers = Numbers(bytes);
            let share = numbers.float()?;
            let options = JoinFilterOptions {
                max_share: numbers.float()?,
                sample_rows: numbers.size()?,
                max_bytes: numbers.size()?,
                fpr: numbers.float()?,
                ..JoinFilterOptions::default()
            };
            let columns = numbers.columns(input)?;
            return Ok(Arc::new(JoinFilterExec::new(
                Arc::clone(input),
                Arc::clone(keys),
                columns,
                share,
                options,
            )));
        }
        if let (Some(bytes), [input]) = (bytes.strip_prefix(BUILD), inputs) {
            let mut numbers = Numbers(bytes);
            let max_keys = numbers.size()?;
            let columns = numbers.columns(input)?;
            return Ok(Arc::new(JoinFilterBuildExec::new(Arc::clone(input), columns, max_keys)));
        }
        self.0.try_decode(bytes, inputs, context, converter)
    }

    fn try_encode(
        &self,
        plan: Plan,
        bytes: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let (name, numbers, columns) = if let Some(probe) = plan.downcast_ref::<JoinFilterExec>() {
            let options = &probe.options;
            let numbers = vec![
                probe.expected_share.to_bits(),
                options.max_share.to_bits(),
                options.sample_rows as u64,
                options.max_bytes as u64,
                options.fpr.to_bits(),
            ];
            (PROBE, numbers, &probe.columns)
        } else if let Some(build) = plan.downcast_ref::<JoinFilterBuildExec>() {
            (BUILD, vec![build.max_keys as u64], &build.columns)
        } else {
            return self.0.try_encode(plan, bytes, converter);
        };
        bytes.extend_from_slice(name);
        let columns = columns.iter().map(|&column| column as u64);
        numbers.into_iter().chain(columns).for_each(|number| bytes.extend(number.to_le_bytes()));
        Ok(())
    }

    fn try_decode_udf(&self, name: &str, bytes: &[u8]) -> Result<Arc<ScalarUDF>> {
        self.0.try_decode_udf(name, bytes)
    }

    fn try_encode_udf(&self, function: &ScalarUDF, bytes: &mut Vec<u8>) -> Result<()> {
        self.0.try_encode_udf(function, bytes)
    }

    fn try_decode_higher_order_function(&self, name: &str, bytes: &[u8]) -> Result<Arc<HigherOrderUDF>> {
        self.0.try_decode_higher_order_function(name, bytes)
    }

    fn try_encode_higher_order_function(&self, function: &HigherOrderUDF, bytes: &mut Vec<u8>) -> Result<()> {
        self.0.try_encode_higher_order_function(function, bytes)
    }

    fn try_decode_expr(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn PhysicalExpr>],
        context: &PhysicalExprDecodeCtx<'_>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        self.0.try_decode_expr(bytes, inputs, context)
    }

    fn try_encode_expr(
        &self,
        expression: &Arc<dyn PhysicalExpr>,
        bytes: &mut Vec<u8>,
        context: &PhysicalExprEncodeCtx<'_>,
    ) -> Result<()> {
        self.0.try_encode_expr(expression, bytes, context)
    }

    fn try_decode_udaf(&self, name: &str, bytes: &[u8]) -> Result<Arc<AggregateUDF>> {
        self.0.try_decode_udaf(name, bytes)
    }

    fn try_encode_udaf(&self, function: &AggregateUDF, bytes: &mut Vec<u8>) -> Result<()> {
        self.0.try_encode_udaf(function, bytes)
    }

    fn try_decode_udwf(&self, name: &str, bytes: &[u8]) -> Result<Arc<WindowUDF>> {
        self.0.try_decode_udwf(name, bytes)
    }

    fn try_encode_udwf(&self, function: &WindowUDF, bytes: &mut Vec<u8>) -> Result<()> {
        self.0.try_encode_udwf(function, bytes)
    }
}
