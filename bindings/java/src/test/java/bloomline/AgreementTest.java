package bloomline;

import static bloomline.Support.bloomline;
import static bloomline.Support.lines;
import static bloomline.Support.view;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.junit.jupiter.api.io.TempDir;

/** The same answers and bytes as Rust, through the command line, whose path is in BLOOMLINE_CLI. */
@EnabledIfEnvironmentVariable(named = "BLOOMLINE_CLI", matches = ".+")
class AgreementTest {
    @TempDir
    Path folder;

    private String path(String name) {
        return folder.resolve(name).toString();
    }

    /** Texts of all planes, without newlines. Half of them are ASCII. */
    private static List<String> texts(Random random, int count) {
        int[] planes = {0x20, 0x7f, 0x800, 0xd800, 0xe000, 0x110000};
        List<String> texts = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            StringBuilder text = new StringBuilder();
            for (int length = random.nextInt(41); length > 0; length--) {
                int plane = i % 2 == 0 ? 0 : random.nextInt(3) * 2;
                text.appendCodePoint(random.nextInt(planes[plane], planes[plane + 1]));
            }
            texts.add(text.toString());
        }
        return texts;
    }

    private static <T> List<T> half(List<T> all) {
        List<T> half = new ArrayList<>();
        for (int i = 1; i < all.size(); i += 2) {
            half.add(all.get(i));
        }
        return half;
    }

    @Test
    void integersOfAllWidths() throws Exception {
        List<Long> integers = new Random(6).longs(300_000).map(bits -> bits >> (bits & 63)).boxed().toList();
        bloomline(lines(half(integers)), "build", "-q", "--integers", "-o", path("theirs"), "--keys", "150000", "--fpr",
                "30%");
        BloomView theirs = view(Files.readAllBytes(folder.resolve("theirs")));
        List<Long> found = integers.stream().filter(theirs::contains).toList();
        assertArrayEquals(bloomline(lines(integers), "check", "--integers", path("theirs")), lines(found));

        BloomFilter filter = new BloomFilter(150_000, 0.3);
        filter.insertKeys(half(integers).stream().mapToLong(Long::longValue).toArray());
        assertArrayEquals(Files.readAllBytes(folder.resolve("theirs")), filter.toStandalone());
    }

    @Test
    void randomFilters() throws Exception {
        Random random = new Random(8);
        for (int round = 0; round < 40; round++) {
            int expected = 1 + random.nextInt(1 << random.nextInt(1, 14));
            double fpr = Math.pow(10, -7.8 * random.nextDouble()) * 0.99;
            List<String> texts = texts(random, random.nextInt(expected + 1));
            int modules = random.nextInt(4);
            bloomline(lines(texts), with(modules, "build", "-q", "--allow-overfull", "-o", path("theirs"), "--keys",
                    "" + expected, "--fpr", "" + fpr));
            Sizing sizing = modules == 0 ? Sizing.forFpr(expected, fpr) : Sizing.forFpr(expected, fpr, modules);
            BloomFilter filter = new BloomFilter(sizing.roundedToFold(), 0);
            texts.forEach(filter::insert);
            String message = expected + " keys, " + fpr + ", at most " + modules + " modules";
            assertArrayEquals(Files.readAllBytes(folder.resolve("theirs")), filter.toStandalone(), message);
        }
    }

    @Test
    void estimates() throws Exception {
        Random random = new Random(12);
        List<String> paths = new ArrayList<>();
        for (Map<String, String> row : Support.files("standalone")) {
            Path golden = Support.GOLDEN.resolve(row.get("file"));
            // Blocks of short filters overlap, but not those of copies that were changed.
            BloomFilter copy = view(Files.readAllBytes(golden)).toFilter();
            copy.insert(-1);
            Path changed = folder.resolve(row.get("file"));
            Files.write(changed, copy.toStandalone());
            paths.addAll(List.of(golden.toString(), changed.toString()));
        }
        for (int round = 0; round < 200; round++) {
            int nModules = 1 + random.nextInt(4);
            int ofEach = 1 + random.nextInt(round % 2 == 0 ? 9 : 200);
            BloomFilter filter = new BloomFilter(new Sizing(ofEach * nModules, 1 + round % 16, nModules), round);
            // Up to more than there is an estimate for.
            random.longs((long) (512.0 * ofEach / filter.k() * random.nextDouble() * 5)).forEach(filter::insert);
            if (round % 3 == 0) {
                int factor = FilterTest.divisor(random, ofEach);
                Sizing divided = new Sizing(ofEach / factor * nModules, filter.k(), nModules);
                BloomFilter small = new BloomFilter(divided, round);
                random.longs(random.nextInt(1 + 50 * ofEach / factor)).forEach(small::insert);
                filter.unionWith(small);
            }
            paths.add(path("" + round));
            Files.write(folder.resolve("" + round), filter.toStandalone());
        }
        String[] arguments = Stream.concat(Stream.of("info", "--as-json"), paths.stream()).toArray(String[]::new);
        String[] infos = new String(bloomline(new byte[0], arguments), StandardCharsets.UTF_8).split("\n}");
        int tooFull = 0;
        for (int i = 0; i < paths.size(); i++) {
            BloomView view = view(Files.readAllBytes(Path.of(paths.get(i))));
            for (BloomView filter : List.of(view, view.toFilter())) {
                Optional<KeyEstimate> estimate = filter.estimatedKeys();
                agrees(infos[i], "estimated_keys", estimate.map(keys -> (double) keys.keys()));
                agrees(infos[i], "standard_error", estimate.map(KeyEstimate::standardError));
                agrees(infos[i], "fill_ratio", Optional.of(filter.fillRatio()));
                agrees(infos[i], "false_positive_rate", Optional.of(filter.estimatedFpr()));
                tooFull += estimate.isEmpty() ? 1 : 0;
            }
        }
        assertTrue(tooFull > 20 && tooFull < 200, tooFull + " are too full");
    }

    private static void agrees(String info, String name, Optional<Double> ours) {
        String theirs = info.replaceFirst("(?s).*\"" + name + "\": ([^,\\n]*).*", "$1");
        boolean isSame = theirs.equals("null") ? ours.isEmpty() : ours.isPresent()
                && Math.abs(Double.parseDouble(theirs) - ours.get()) <= 1e-12 * ours.get();
        assertTrue(isSame, name + " is " + ours + " in Java, but" + info);
    }

    /** With the option for at most so many modules, or none for 0. */
    private static String[] with(int modules, String... arguments) {
        Stream<String> option = modules == 0 ? Stream.of() : Stream.of("--modules", "" + modules);
        return Stream.concat(Stream.of(arguments), option).toArray(String[]::new);
    }

    @Test
    void mergesAndFolds() throws Exception {
        List<String> texts = texts(new Random(10), 3_000);
        for (int nModules = 1; nModules <= 3; nModules++) {
            List<BloomFilter> filters = new ArrayList<>();
            for (int part = 0; part < 3; part++) {
                BloomFilter filter = new BloomFilter(new Sizing(96 >> (part + nModules) % 3, 7, nModules), 0);
                texts.subList(1_000 * part, 1_000 * (part + 1)).forEach(filter::insert);
                Files.write(folder.resolve("" + part), filter.toStandalone());
                filters.add(filter);
            }
            BloomFilter union = BloomFilter.union(filters);
            assertTrue(texts.stream().allMatch(union::contains));
            bloomline(new byte[0], "merge", "-q", "-o", path("merged"), path("0"), path("1"), path("2"));
            assertArrayEquals(Files.readAllBytes(folder.resolve("merged")), union.toStandalone());
            bloomline(new byte[0], "fold", "-q", "-o", path("folded"), "--factor", "8", path("merged"));
            assertArrayEquals(Files.readAllBytes(folder.resolve("folded")), union.toFolded(8).toStandalone());
        }
    }
}
