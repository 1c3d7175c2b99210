package bloomline.spark;

import bloomline.BloomView;
import bloomline.Filter;
import bloomline.ModularView;
import java.io.Serializable;
import java.nio.ByteBuffer;
import org.apache.spark.broadcast.Broadcast;

/** A filter, and the bytes or the broadcast that it was opened from. Public for the code that Spark generates. */
public record Opened(Object source, Filter filter) {
    /** Opens a source, or returns {@code last} if it has the same one, as in all rows of most tasks. */
    public static Opened of(Opened last, Object source) {
        if (last != null && last.source == source) {
            return last;
        }
        return new Opened(source, source instanceof Broadcast<?> broadcast
                ? ((Shared) broadcast.value()).filter()
                : open((byte[]) source));
    }

    private static Filter open(byte[] bytes) {
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        // Of "blmod" in the last eight bytes. No other kind has it there.
        boolean isModular = bytes.length > 8 && bytes[bytes.length - 5] == 'm';
        return isModular ? ModularView.fromStandalone(buffer) : BloomView.fromStandalone(buffer);
    }

    /** Standalone bytes to broadcast. Each executor opens them once. */
    static final class Shared implements Serializable {
        private static final long serialVersionUID = 1;

        final int kinds;
        private final byte[] bytes;
        private transient Filter filter;

        Shared(byte[] bytes, int kinds) {
            this.bytes = bytes;
            this.kinds = kinds;
        }

        synchronized Filter filter() {
            if (filter == null) {
                filter = open(bytes);
            }
            return filter;
        }
    }
}
