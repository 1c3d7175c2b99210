package bloomline;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** The golden files and the command line, for several tests. */
final class Support {
    static final Path GOLDEN = Path.of("../../tests/golden");
    static final long SEED = 0x5eed;
    static final List<Function<ByteBuffer, Filter>> OPENERS =
            List.of(BloomView::fromStandalone, FilterBank::fromStandalone);

    private Support() {}

    /** The names of the golden files of a kind. */
    static List<String> names(String prefix) throws IOException {
        try (Stream<Path> files = Files.list(GOLDEN)) {
            Stream<String> names = files.map(file -> file.getFileName().toString());
            return names.filter(name -> name.startsWith(prefix) && name.endsWith(".bin")).sorted().toList();
        }
    }

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

    /** The rows of a table, without the names of its columns. */
    static List<String[]> rows(Path table, int count) throws IOException {
        List<String[]> rows = new ArrayList<>();
        for (String line : Files.readAllLines(table).stream().skip(1).toList()) {
            rows.add(line.split("\t", -1));
        }
        assertEquals(count, rows.size());
        return rows;
    }

    static long hex(String digits) {
        return Long.parseUnsignedLong(digits, 16);
    }

    /** The texts "0", "1" and so on, as in the golden files. */
    static List<String> numbers(int count) {
        return IntStream.range(0, count).mapToObj(String::valueOf).toList();
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
