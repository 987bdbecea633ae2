package belay.interop;

import java.util.concurrent.TimeUnit;
import org.redisson.api.RBucket;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/** What a thread can be told to do. The first argument is the name of a lock. */
final class Commands {
    private final RedissonClient redisson;

    Commands(RedissonClient redisson) {
        this.redisson = redisson;
    }

    /** Runs one command on the thread that calls and returns its result. */
    Object run(String command, String[] args) throws InterruptedException {
        RLock lock = redisson.getLock(args[0]);
        switch (command) {
            case "lock": // NAME, watched by the watchdog
                lock.lock();
                return owner();
            case "lease": // NAME MILLISECONDS
                lock.lock(Long.parseLong(args[1]), TimeUnit.MILLISECONDS);
                return owner();
            case "try": // NAME
                return lock.tryLock();
            case "tryfor": // NAME MILLISECONDS
                return lock.tryLock(Long.parseLong(args[1]), TimeUnit.MILLISECONDS);
            case "unlock": // NAME
                lock.unlock();
                return "";
            case "force": // NAME
                return lock.forceUnlock();
            case "count": // NAME COUNTER TIMES
                return count(lock, redisson.getBucket(args[1], StringCodec.INSTANCE), Integer.parseInt(args[2]));
            default:
                throw new IllegalArgumentException("unknown command " + command);
        }
    }

    private String owner() {
        return redisson.getId() + ":" + Thread.currentThread().getId();
    }

    /** Increments a counter which nothing but the lock protects. */
    private static int count(RLock lock, RBucket<String> counter, int times) {
        for (int i = 0; i < times; i++) {
            lock.lock();
            try {
                counter.set(Long.toString(Long.parseLong(counter.get()) + 1));
            } finally {
                lock.unlock();
            }
        }
        return times;
    }
}
