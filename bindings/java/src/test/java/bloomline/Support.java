package bloomline;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** The golden tables and files, and the command line, for several tests. */
final class Support {
    static final Path GOLDEN = Path.of("../../tests/golden");
    static final long SEED = 0x5eed;

    private Support() {}

    static byte[] golden(String name) throws IOException {
        return Files.readAllBytes(GOLDEN.resolve(name));
    }

    static ByteBuffer map(Path path) throws IOException {
        try (FileChannel file = FileChannel.open(path)) {
            return file.map(FileChannel.MapMode.READ_ONLY, 0, file.size());
        }
    }

    static BloomView view(byte[] bytes) {
        return BloomView.fromStandalone(ByteBuffer.wrap(bytes));
    }

    /** The rows of a golden table, by the names of its columns. */
    static List<Map<String, String>> table(String name) throws IOException {
        List<Map<String, String>> rows = new ArrayList<>();
        String[] names = null;
        for (String line : Files.readAllLines(GOLDEN.resolve(name))) {
            String[] fields = line.split("\t", -1);
            if (names == null) {
                names = fields;
                continue;
            }
            Map<String, String> row = new HashMap<>();
            for (int i = 0; i < names.length; i++) {
                row.put(names[i], fields[i]);
            }
            rows.add(row);
        }
        assertTrue(rows.size() > 10, name);
        return rows;
    }

    /** The rows of files.tsv of these kinds. */
    static List<Map<String, String>> files(String... kinds) throws IOException {
        return table("files.tsv").stream().filter(row -> List.of(kinds).contains(row.get("kind"))).toList();
    }

    /** The readers of a kind. */
    static List<Function<ByteBuffer, Filter>> openers(String kind) {
        return switch (kind) {
            case "standalone" -> List.of(BloomView::fromStandalone);
            case "bank" -> List.of(FilterBank::fromStandalone);
            default -> List.of();
        };
    }

    /** The keys of each slot of a row, or of the only one. */
    static List<List<byte[]>> slots(Map<String, String> row) throws IOException {
        List<List<byte[]>> slots = new ArrayList<>();
        for (String texts : row.get("keys").split("\\|", -1)) {
            slots.add(new ArrayList<>());
            for (String text : texts.isEmpty() ? new String[0] : texts.split(" ")) {
                slots.get(slots.size() - 1).addAll(keys(text));
            }
        }
        return slots;
    }

    private static List<byte[]> keys(String text) throws IOException {
        if (text.equals("keys.tsv")) {
            return table(text).stream().map(row -> HexFormat.of().parseHex(row.get("key"))).toList();
        }
        String[] range = text.split("\\.\\.");
        Stream<String> texts = range.length == 1
                ? Stream.of(text)
                : IntStream.range(Integer.parseInt(range[0]), Integer.parseInt(range[1])).mapToObj(String::valueOf);
        return texts.map(key -> key.getBytes(StandardCharsets.UTF_8)).toList();
    }

    static int number(Map<String, String> row, String column) {
        return Integer.parseInt(row.get(column));
    }

    static long hex(String digits) {
        return Long.parseUnsignedLong(digits, 16);
    }

    /** Runs the command line, with {@code input} as its standard input, and returns its output. */
    static byte[] bloomline(byte[] input, String... arguments) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(System.getenv("BLOOMLINE_CLI")));
        command.addAll(List.of(arguments));
        Path in = Files.createTempFile("bloomline", ".in");
        Path out = Files.createTempFile("bloomline", ".out");
        try {
            Files.write(in, input);
            ProcessBuilder builder = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT);
            int status = builder.redirectInput(in.toFile()).redirectOutput(out.toFile()).start().waitFor();
            // 1 if no key was found.
            assertTrue(status <= 1, command + " ended with status " + status);
            return Files.readAllBytes(out);
        } finally {
            Files.delete(in);
            Files.delete(out);
        }
    }

    static byte[] lines(List<?> keys) {
        StringBuilder text = new StringBuilder();
        keys.forEach(key -> text.append(key).append('\n'));
        return text.toString().getBytes(StandardCharsets.UTF_8);
    }
}
