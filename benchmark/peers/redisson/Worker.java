import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;
import org.redisson.config.ReadMode;
import org.yaml.snakeyaml.Yaml;

/**
 * A worker with Redisson: see worker.go for the words it is asked in, job.go for
 * the jobs, arena.go for the memory that the holders share.
 *
 * Run from source, with Redisson's jars in the class path. Arguments: the
 * addresses of the cluster's nodes.
 */
public final class Worker {
    private static final double GROWTH = 1.01;
    private static final int BUCKETS = 2600;
    private static final long END_GRACE_MS = 50;

    public static void main(String[] args) throws IOException {
        PrintStream out = System.out;
        RedissonClient redisson = Redisson.create(config(args));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        out.println("ready");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(redisson, line));
        }
        redisson.shutdown(0, 2, TimeUnit.SECONDS);
        System.exit(0); // whatever still waits for a lock
    }

    private static Config config(String[] nodes) {
        Config config = new Config();
        config.setCodec(StringCodec.INSTANCE);
        config.setLockWatchdogTimeout(30_000);
        config.setCheckLockSyncedSlaves(false); // as the others: no WAIT for replicas
        config.useClusterServers()
                .addNodeAddress(Arrays.stream(nodes).map(node -> "redis://" + node).toArray(String[]::new))
                .setReadMode(ReadMode.MASTER)
                .setTimeout(10_000);
        return config;
    }

    private static String answer(RedissonClient redisson, String line) {
        try {
            if (!line.startsWith("run ")) {
                throw new IllegalArgumentException("unknown request");
            }
            Job job = new Job(new Yaml().load(line.substring("run ".length()))); // JSON is YAML
            return "done " + (job.workload.equals("try-one-key") ? bursts(redisson, job) : callers(redisson, job));
        } catch (Exception e) {
            return "failed " + oneLine(e);
        }
    }

    private static String oneLine(Exception e) {
        return e.toString().replaceAll("[\\n\"\\\\]", " ");
    }

    private static final class Job {
        final String workload, key, arena;
        final int callers, first;
        final long from, to; // in microseconds since 1970

        Job(Map<String, Object> fields) {
            workload = (String) fields.get("workload");
            key = (String) fields.get("key");
            arena = (String) fields.get("arena");
            callers = ((Number) fields.get("callers")).intValue();
            first = ((Number) fields.get("first")).intValue();
            from = ((Number) fields.get("from_us")).longValue();
            to = ((Number) fields.get("to_us")).longValue();
        }

        static long now() {
            java.time.Instant now = java.time.Instant.now();
            return now.getEpochSecond() * 1_000_000 + now.getNano() / 1000;
        }

        boolean ended() {
            return now() >= to;
        }
    }

    /** What a caller did, and what all did together. */
    private static final class Outcome {
        long cycles, handOvers, passed, broken, errors;
        String error = "";
        final int[] latency = new int[BUCKETS];

        void note(long nanos) {
            int bucket = nanos < 1 ? 0 : (int) (Math.log(nanos) / Math.log(GROWTH));
            latency[Math.min(bucket, BUCKETS - 1)]++;
        }

        void fail(Exception e) {
            errors++;
            error = oneLine(e);
        }

        void add(Outcome other) {
            cycles += other.cycles;
            handOvers += other.handOvers;
            passed += other.passed;
            broken += other.broken;
            errors += other.errors;
            error = error.isEmpty() ? other.error : error;
            for (int i = 0; i < BUCKETS; i++) {
                latency[i] += other.latency[i];
            }
        }

        @Override
        public String toString() {
            Map<String, Integer> counts = new TreeMap<>(); // some buckets of a few ns are one here
            for (int i = 0; i < BUCKETS; i++) {
                if (latency[i] > 0) {
                    counts.merge("\"" + (long) Math.pow(GROWTH, i + 0.5) + "\"", latency[i], Integer::sum); // nanoseconds
                }
            }
            return String.format(
                    "{\"cycles\":%d,\"hand_overs\":%d,\"passed\":%d,\"broken\":%d,\"errors\":%d,\"error\":\"%s\",\"latency\":%s}",
                    cycles, handOvers, passed, broken, errors, error, counts.toString().replace('=', ':'));
        }
    }

    private static final class Arena {
        private static final VarHandle NUMBER =
                MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());
        private static final int INSIDE = 0, SUM = 64, LAST = 128, OVERLAPS = 192;
        private final ByteBuffer page;

        Arena(String file) throws IOException {
            try (FileChannel channel = FileChannel.open(Path.of(file), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
                page = channel.map(FileChannel.MapMode.READ_WRITE, 0, 4096);
            }
        }

        boolean pass(long caller) {
            if ((long) NUMBER.getAndAdd(page, INSIDE, 1L) != 0) {
                NUMBER.getAndAdd(page, OVERLAPS, 1L);
            }
            long sum = (long) NUMBER.getVolatile(page, SUM);
            boolean handOver = (long) NUMBER.getVolatile(page, LAST) != caller;
            NUMBER.setVolatile(page, LAST, caller);
            NUMBER.setVolatile(page, SUM, sum + 1);
            NUMBER.getAndAdd(page, INSIDE, -1L);
            return handOver;
        }
    }

    private static Outcome callers(RedissonClient redisson, Job job) throws Exception {
        Arena arena = job.arena.isEmpty() ? null : new Arena(job.arena);
        List<Outcome> outcomes = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < job.callers; i++) {
            int number = job.first + i;
            Outcome outcome = new Outcome();
            RLock lock = redisson.getLock(job.workload.equals("own-key") ? job.key + ":" + number : job.key);
            Thread thread = new Thread(() -> {
                while (!job.ended()) {
                    cycle(job, lock, arena, number, outcome);
                }
            });
            thread.setDaemon(true);
            outcomes.add(outcome);
            threads.add(thread);
            thread.start();
        }
        Thread.sleep(Math.max(0, (job.to - Job.now()) / 1000 + END_GRACE_MS));
        for (Thread thread : threads) {
            thread.interrupt(); // ends a wait
        }
        Outcome total = new Outcome();
        for (int i = 0; i < threads.size(); i++) {
            threads.get(i).join();
            total.add(outcomes.get(i));
        }
        return total;
    }

    private static void cycle(Job job, RLock lock, Arena arena, int number, Outcome outcome) {
        long asked = System.nanoTime();
        boolean handOver = false;
        boolean granted = false;
        try {
            lock.lockInterruptibly();
            granted = true;
        } catch (Exception e) {
            if (!job.ended()) {
                outcome.fail(e);
                return;
            }
        }
        long took = System.nanoTime() - asked;
        long now = Job.now();
        if (now >= job.from) {
            outcome.note(took);
        }
        if (!granted) {
            return;
        }
        if (arena != null && now < job.to) {
            outcome.passed++;
            handOver = arena.pass(number);
        }
        try {
            lock.unlock();
        } catch (Exception e) {
            if (!job.ended()) {
                outcome.fail(e);
            }
            return;
        }
        long done = Job.now();
        if (done >= job.from && done < job.to) {
            outcome.cycles++;
            outcome.handOvers += handOver ? 1 : 0;
        }
    }

    private static Outcome bursts(RedissonClient redisson, Job job) throws Exception {
        Outcome total = new Outcome();
        for (int n = 0; !job.ended(); n++) {
            Outcome outcome = burst(redisson.getLock(job.key + ":" + n), job.callers);
            long now = Job.now();
            if (now < job.from || now >= job.to) {
                outcome.cycles = 0;
                Arrays.fill(outcome.latency, 0);
            }
            total.add(outcome);
        }
        return total;
    }

    /** A lock belongs to its thread, so whoever was granted it waits for the others. */
    private static Outcome burst(RLock lock, int callers) throws Exception {
        CountDownLatch ready = new CountDownLatch(callers);
        CountDownLatch start = new CountDownLatch(1);
        CountDownLatch answered = new CountDownLatch(callers);
        Outcome outcome = new Outcome();
        int[] granted = new int[1];
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < callers; i++) {
            Thread thread = new Thread(() -> attempt(lock, ready, start, answered, outcome, granted));
            thread.setDaemon(true);
            threads.add(thread);
            thread.start();
        }
        ready.await();
        start.countDown();
        for (Thread thread : threads) {
            thread.join();
        }
        outcome.cycles = 1;
        outcome.broken = Math.max(0, granted[0] - 1);
        if (granted[0] == 0) {
            outcome.fail(new IllegalStateException("nobody was granted a free lock"));
        }
        return outcome;
    }

    private static void attempt(RLock lock, CountDownLatch ready, CountDownLatch start, CountDownLatch answered, Outcome outcome, int[] granted) {
        boolean mine = false;
        try {
            ready.countDown();
            start.await();
            long asked = System.nanoTime();
            mine = lock.tryLock();
            long took = System.nanoTime() - asked;
            synchronized (outcome) {
                outcome.note(took);
                granted[0] += mine ? 1 : 0;
            }
        } catch (Exception e) {
            synchronized (outcome) {
                outcome.fail(e);
            }
        }
        answered.countDown();
        if (!mine) {
            return;
        }
        try {
            answered.await();
            lock.unlock();
        } catch (Exception e) {
            synchronized (outcome) {
                outcome.fail(e);
            }
        }
    }
}
