package belay.interop;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.ReadMode;

/**
 * A Redisson client that does what it is told, one line a command:
 *
 * <pre>THREAD COMMAND ARGUMENT...</pre>
 *
 * The commands of one thread run in order on a Java thread of that name, those
 * of different threads at the same time. Each is answered by one line:
 *
 * <pre>
 * THREAD ok RESULT
 * THREAD failed EXCEPTION
 * </pre>
 *
 * The first line of the output is {@code ready VERSION}. The program ends with
 * its input.
 */
public final class Peer {
    private Peer() {}

    /** Arguments: the addresses of the cluster's nodes, the watchdog's timeout in ms. */
    public static void main(String[] args) throws IOException {
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        RedissonClient redisson = Redisson.create(config(args[0].split(","), Long.parseLong(args[1])));
        out.println("ready " + Redisson.class.getPackage().getImplementationVersion());

        Map<String, ExecutorService> threads = new HashMap<>();
        Commands commands = new Commands(redisson);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            threads.computeIfAbsent(words[0], Peer::newThread).execute(() -> out.println(words[0] + " " + answer(commands, words)));
        }
        System.exit(0); // whatever still waits for a lock
    }

    private static Config config(String[] nodes, long watchdogTimeout) {
        Config config = new Config();
        config.setLockWatchdogTimeout(watchdogTimeout);
        config.setThreads(4).setNettyThreads(4);
        config.useClusterServers()
                .addNodeAddress(Arrays.stream(nodes).map(node -> "redis://" + node).toArray(String[]::new))
                // The counter must be read where it was written.
                .setReadMode(ReadMode.MASTER)
                .setMasterConnectionMinimumIdleSize(2)
                .setSlaveConnectionMinimumIdleSize(1);
        return config;
    }

    private static ExecutorService newThread(String name) {
        return Executors.newSingleThreadExecutor(task -> {
            Thread thread = new Thread(task, name);
            thread.setDaemon(true);
            return thread;
        });
    }

    private static String answer(Commands commands, String[] words) {
        try {
            return "ok " + commands.run(words[1], Arrays.copyOfRange(words, 2, words.length));
        } catch (Exception e) {
            return "failed " + e.toString().replace('\n', ' ');
        }
    }
}
