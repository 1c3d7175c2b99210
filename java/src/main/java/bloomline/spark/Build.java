package bloomline.spark;

import bloomline.BloomFilter;
import bloomline.BloomView;
import bloomline.Sizing;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.TypeCheckResult;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.aggregate.TypedImperativeAggregate;
import org.apache.spark.sql.types.BinaryType$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.LongType$;
import scala.Option;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/**
 * {@code bloomline_filter(key, expected_keys, fpr, seed)}, or without a size {@code bloomline_filter_union(filter)}.
 * The buffer is {@code null} before the first key, so that tasks without keys send no filter.
 */
public final class Build extends TypedImperativeAggregate<BloomView> implements Serializable {
    private static final long serialVersionUID = 1;

    private final Seq<Expression> children;
    private final Sizing sizing;
    private final long seed;
    private final int mutableOffset;
    private final int inputOffset;
    private transient UnsafeProjection row;

    public Build(Seq<Expression> children, Sizing sizing, long seed, int mutableOffset, int inputOffset) {
        this.children = children;
        this.sizing = sizing;
        this.seed = seed;
        this.mutableOffset = mutableOffset;
        this.inputOffset = inputOffset;
    }

    @Override
    public TypeCheckResult checkInputDataTypes() {
        DataType type = children.head().dataType();
        return sizing == null && !type.equals(BinaryType$.MODULE$)
                ? Keys.failure("a filter is binary, not %s", type.simpleString())
                : Keys.check(type, Keys.UNKNOWN);
    }

    @Override
    public BloomView createAggregationBuffer() {
        return null;
    }

    @Override
    public BloomView update(BloomView buffer, InternalRow input) {
        Expression child = children.head();
        boolean areIntegers = Keys.areIntegers(child.dataType());
        if (row == null) {
            // Unlike `eval`, generated code does not box each key.
            row = UnsafeProjection.create(areIntegers ? new Cast(child, LongType$.MODULE$, Option.empty()) : child);
        }
        UnsafeRow key = row.apply(input);
        if (key.isNullAt(0)) {
            return buffer;
        }
        if (sizing == null) {
            return merge(buffer, BloomView.fromStandalone(ByteBuffer.wrap(key.getBinary(0))));
        }
        BloomFilter filter = buffer == null ? new BloomFilter(sizing, seed) : mutable(buffer);
        if (areIntegers) {
            filter.insert(key.getLong(0));
        } else {
            filter.insert(key.getBinary(0));
        }
        return filter;
    }

    @Override
    public BloomView merge(BloomView buffer, BloomView other) {
        if (buffer == null || other == null) {
            return buffer == null ? other : buffer;
        }
        BloomFilter united = mutable(buffer);
        united.unionWith(other);
        return united;
    }

    private static BloomFilter mutable(BloomView buffer) {
        return buffer instanceof BloomFilter filter ? filter : buffer.toFilter();
    }

    @Override
    public Object eval(BloomView buffer) {
        if (buffer == null && sizing == null) {
            return null;
        }
        return serialize(buffer == null ? new BloomFilter(sizing, seed) : buffer);
    }

    @Override
    public byte[] serialize(BloomView buffer) {
        return buffer == null ? new byte[0] : mutable(buffer).toStandalone();
    }

    @Override
    public BloomView deserialize(byte[] bytes) {
        return bytes.length == 0 ? null : BloomView.fromStandalone(ByteBuffer.wrap(bytes));
    }

    @Override
    public boolean nullable() {
        return sizing == null;
    }

    @Override
    public DataType dataType() {
        return BinaryType$.MODULE$;
    }

    @Override
    public String prettyName() {
        return sizing == null ? "bloomline_filter_union" : "bloomline_filter";
    }

    @Override
    public int mutableAggBufferOffset() {
        return mutableOffset;
    }

    @Override
    public int inputAggBufferOffset() {
        return inputOffset;
    }

    @Override
    public Build withNewMutableAggBufferOffset(int offset) {
        return new Build(children, sizing, seed, offset, inputOffset);
    }

    @Override
    public Build withNewInputAggBufferOffset(int offset) {
        return new Build(children, sizing, seed, mutableOffset, offset);
    }

    @Override
    public Seq<Expression> children() {
        return children;
    }

    @Override
    public Expression withNewChildrenInternal(IndexedSeq<Expression> children) {
        return new Build(children, sizing, seed, mutableOffset, inputOffset);
    }

    // As a case class of Scala.

    private Object[] fields() {
        return new Object[] {children, sizing, seed, mutableOffset, inputOffset};
    }

    @Override
    public int productArity() {
        return fields().length;
    }

    @Override
    public Object productElement(int i) {
        return fields()[i];
    }

    @Override
    public boolean canEqual(Object other) {
        return other instanceof Build;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Build that && Arrays.equals(fields(), that.fields());
    }
}
