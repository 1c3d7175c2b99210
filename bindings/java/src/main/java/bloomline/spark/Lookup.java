package bloomline.spark;

import bloomline.BloomView;
import java.io.Serializable;
import java.nio.ByteBuffer;
import org.apache.spark.broadcast.Broadcast;

/** What the code that Spark generates calls for each row. Each task has its own, which opens a filter once. */
public final class Lookup implements Serializable {
    private static final long serialVersionUID = 1;

    private transient Opened last;

    /** In one object, so that threads that share a lookup never see the filter of another source. */
    private record Opened(Object source, BloomView filter) {}

    /** Looks up an integer in standalone bytes, or in a broadcast of them. */
    public boolean contains(Object filter, long key) {
        return open(filter).contains(key);
    }

    /** Looks up a byte string, or the bytes of a text. */
    public boolean contains(Object filter, byte[] key) {
        return open(filter).contains(key);
    }

    private BloomView open(Object source) {
        Opened opened = last;
        if (opened == null || opened.source != source) {
            byte[] bytes = (byte[]) (source instanceof Broadcast<?> broadcast ? broadcast.value() : source);
            opened = new Opened(source, BloomView.fromStandalone(ByteBuffer.wrap(bytes)));
            last = opened;
        }
        return opened.filter;
    }

    /** As expressions are equal if their parts are, all are. */
    @Override
    public boolean equals(Object other) {
        return other instanceof Lookup;
    }

    @Override
    public int hashCode() {
        return 1;
    }

    /** Spark names a column {@code bloomline.contains(filter, key)}. */
    @Override
    public String toString() {
        return "bloomline";
    }
}
