import bloomline.BloomFilter;
import bloomline.BloomView;
import bloomline.Sizing;
import com.google.common.hash.Funnels;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.function.LongPredicate;
import java.util.function.ToIntFunction;

/**
 * Lookups by {@code long} key, beside Guava's and Spark's filters of the same bits and keys. Each contender has a
 * virtual machine of its own, several times in turn. Prints the least time of all rounds, and its ratio to bloomline's.
 *
 * <p>The class path needs the jars of bloomline, Guava, and Spark's spark-sketch and spark-common-utils.
 */
class Lookups {
    private static final List<String> CONTENDERS = List.of("bloomline", "mapped", "batch", "guava", "spark", "spark-v2");
    private static final int FORKS = 5;
    private static final int ROUNDS = 6_000;
    private static final int QUERIES_PER_ROUND = 1 << 13;
    /** Too many for a CPU to learn the branches. */
    private static final int QUERIES = 1 << 20;
    private static final double BITS_PER_KEY = 10;

    public static void main(String[] arguments) throws Exception {
        long bytes = Long.parseLong(arguments[0]);
        double present = Double.parseDouble(arguments[1]);
        if (arguments.length > 2) {
            System.out.println(nanoseconds(arguments[2], 8 * bytes, present));
            return;
        }
        Map<String, Double> least = new TreeMap<>();
        for (int fork = 0; fork < FORKS; fork++) {
            for (String contender : CONTENDERS) {
                String java = System.getProperty("java.home") + "/bin/java";
                Process process = new ProcessBuilder(java, "-cp", System.getProperty("java.class.path"), "Lookups",
                        arguments[0], arguments[1], contender).redirectError(ProcessBuilder.Redirect.INHERIT).start();
                double time = Double.parseDouble(new String(process.getInputStream().readAllBytes()).trim());
                least.merge(contender, time, Math::min);
            }
        }
        for (String contender : CONTENDERS) {
            System.out.printf("%8d bytes, %3.0f%% present, %-10s %6.2f ns, bloomline's ÷ it %.2f%n", bytes,
                    100 * present, contender, least.get(contender), least.get("bloomline") / least.get(contender));
        }
    }

    private static double nanoseconds(String contender, long bits, double present) throws IOException {
        long[] keys = new Random(1).longs((long) (bits / BITS_PER_KEY)).toArray();
        Random random = new Random(2);
        long[] queries = random.longs(QUERIES).toArray();
        for (int i = 0; i < QUERIES; i++) {
            queries[i] = random.nextDouble() < present ? keys[random.nextInt(keys.length)] : queries[i];
        }
        BloomFilter ours = new BloomFilter(new Sizing((int) (bits / 512), 6), 0);
        ours.insertKeys(keys);
        ToIntFunction<long[]> round = switch (contender) {
            case "bloomline" -> round(ours::contains);
            case "mapped" -> {
                // Slower than in a program without other filters, because HotSpot then compiles for one kind of buffer.
                Path path = Files.write(Files.createTempFile("lookups", ".bloom"), ours.toStandalone());
                BloomView view;
                try (FileChannel file = FileChannel.open(path, StandardOpenOption.DELETE_ON_CLOSE)) {
                    view = BloomView.fromStandalone(file.map(FileChannel.MapMode.READ_ONLY, 0, file.size()));
                }
                yield round(view::contains);
            }
            case "batch" -> batch -> ours.containsKeys(batch).length;
            case "guava" -> {
                double fpr = Math.exp(-BITS_PER_KEY * Math.log(2) * Math.log(2));
                var guava = com.google.common.hash.BloomFilter.create(Funnels.longFunnel(), keys.length, fpr);
                for (long key : keys) {
                    guava.put(key);
                }
                yield round(guava::mightContain);
            }
            default -> {
                var version = contender.equals("spark")
                        ? org.apache.spark.util.sketch.BloomFilter.Version.V1
                        : org.apache.spark.util.sketch.BloomFilter.Version.V2;
                var spark = org.apache.spark.util.sketch.BloomFilter.create(version, keys.length, bits, 0);
                for (long key : keys) {
                    spark.putLong(key);
                }
                yield round(spark::mightContainLong);
            }
        };
        double least = Double.POSITIVE_INFINITY;
        long[] batch = new long[QUERIES_PER_ROUND];
        int found = 0;
        // The first rounds warm up: only the least time counts.
        for (int i = 0; i < ROUNDS; i++) {
            System.arraycopy(queries, i * QUERIES_PER_ROUND % QUERIES, batch, 0, QUERIES_PER_ROUND);
            long begun = System.nanoTime();
            found += round.applyAsInt(batch);
            least = Math.min(least, (double) (System.nanoTime() - begun) / QUERIES_PER_ROUND);
        }
        return found == 0 ? Double.NaN : least;
    }

    private static ToIntFunction<long[]> round(LongPredicate contains) {
        return queries -> {
            int found = 0;
            for (long query : queries) {
                found += contains.test(query) ? 1 : 0;
            }
            return found;
        };
    }
}
