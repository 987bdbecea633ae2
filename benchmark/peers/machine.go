package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/redis/go-redis/v9"
)

// machine describes in a line what the figures were taken on.
func machine(ctx context.Context, addrs []string) string {
	parts := []string{
		fmt.Sprintf("%d cores", runtime.NumCPU()),
		cpuModel(),
		runtime.GOOS + "/" + runtime.GOARCH,
		kernel(ctx),
		runtime.Version(),
		"go-redis " + version("github.com/redis/go-redis/v9"),
		"redis " + redisVersion(ctx, addrs[0]) + fmt.Sprintf(", %d nodes", len(addrs)),
		"load " + load(),
	}
	return strings.Join(parts, " · ")
}

// version returns the version of a module that is built into this program.
func version(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, dep := range info.Deps {
		if dep.Path == module {
			return dep.Version
		}
	}
	return "unknown"
}

func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.SplitSeq(string(text), "\n") {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

func kernel(ctx context.Context) string {
	text, err := exec.CommandContext(ctx, "uname", "-sr").Output()
	if err != nil {
		return "unknown kernel"
	}
	return strings.TrimSpace(string(text))
}

// load is the machine's load averages: who reads the figures should know
// whether anything else was running.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	fields := strings.Fields(string(text))
	return strings.Join(fields[:min(3, len(fields))], " ")
}

func redisVersion(ctx context.Context, addr string) string {
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, "redis_version:"); ok {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
