package bloomline.spark;

import bloomline.BloomFilter;
import bloomline.BloomView;
import bloomline.Sizing;
import java.io.Serializable;
import java.nio.ByteBuffer;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.AggregateFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/**
 * A filter of keys, which are integers or bytes. Its state is {@code null} before the first key, so that tasks without
 * keys send no filter, then a {@link State} or a filter's standalone bytes.
 */
record Build(Sizing sizing, long seed, DataType type) implements AggregateFunction<Serializable, byte[]> {
    /** A filter that Spark sends as bytes, because it cannot read objects whose class is in {@code spark.jars}. */
    private record State(BloomFilter filter) implements Serializable {
        static State of(Serializable state) {
            return state instanceof State same ? same : new State(view(state).toFilter());
        }

        static BloomView view(Serializable state) {
            return state instanceof State same ? same.filter : BloomView.fromStandalone(ByteBuffer.wrap((byte[]) state));
        }

        private Object writeReplace() {
            return filter.toStandalone();
        }
    }

    @Override
    public Serializable newAggregationState() {
        return null;
    }

    @Override
    public Serializable update(Serializable state, InternalRow row) {
        if (row.isNullAt(0)) {
            return state;
        }
        State grown = state == null ? new State(new BloomFilter(sizing, seed)) : State.of(state);
        boolean isInteger = type.equals(DataTypes.LongType);
        BloomFilter filter = grown.filter;
        filter.insertHash(isInteger ? filter.hashKey(row.getLong(0)) : filter.hashKey(row.getBinary(0)));
        return grown;
    }

    @Override
    public Serializable merge(Serializable state, Serializable other) {
        if (state == null || other == null) {
            return state == null ? other : state;
        }
        State united = State.of(state);
        united.filter.unionWith(State.view(other));
        return united;
    }

    @Override
    public byte[] produceResult(Serializable state) {
        return (state == null ? new BloomFilter(sizing, seed) : State.of(state).filter).toStandalone();
    }

    @Override
    public String name() {
        return "bloomline_filter";
    }

    @Override
    public DataType[] inputTypes() {
        return new DataType[] {type};
    }

    @Override
    public DataType resultType() {
        return DataTypes.BinaryType;
    }
}
