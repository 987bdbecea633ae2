package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// jvmWarm is how long a new JVM runs before its compiled code is a fair match.
const jvmWarm = 4 * time.Second

// redisson runs where BELAY_BENCH_REDISSON names the directory with the jars of
// Redisson; run fills it where there are a JDK and Maven.
func redisson() contender {
	c := contender{name: "redisson", warm: jvmWarm}
	jars := os.Getenv("BELAY_BENCH_REDISSON")
	if jars == "" {
		c.absent = "needs a JDK, Maven and Redisson's jars (BELAY_BENCH_REDISSON is empty)"
		return c
	}
	c.settings = fmt.Sprintf("redisson %s, RLock, watchdog %v, checkLockSyncedSlaves off (it sends WAIT all the same), StringCodec, reads from masters, else defaults", redissonVersion(jars), ttl)
	c.command = []string{
		"java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
		"-cp", filepath.Join(jars, "*"), "redisson/Worker.java",
	}
	return c
}

func redissonVersion(jars string) string {
	found, _ := filepath.Glob(filepath.Join(jars, "redisson-[0-9]*.jar"))
	if len(found) == 0 {
		return "of unknown version"
	}
	return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(found[0]), "redisson-"), ".jar")
}
