// Package machine describes what figures were taken on.
package machine

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A Machine is a machine with the versions of what ran on it.
type Machine struct {
	Cores    int               `json:"cores"`
	CPU      string            `json:"cpu"`
	Memory   string            `json:"memory"`
	Kernel   string            `json:"kernel"`
	Load     string            `json:"load"` // load averages when the run began
	Versions map[string]string `json:"versions"`
}

// Describe describes this machine. What can't be found out is left out.
func Describe(ctx context.Context, db *sql.DB, redisAddr string) Machine {
	m := Machine{
		Cores: runtime.NumCPU(), CPU: field("/proc/cpuinfo", "model name"), Memory: field("/proc/meminfo", "MemTotal"),
		Kernel: output(ctx, "uname", "-sr"), Load: load(), Versions: map[string]string{"go": runtime.Version()},
	}
	note := func(name, version string) {
		if version != "" {
			m.Versions[name] = version
		}
	}
	for _, path := range []string{"github.com/redis/go-redis/v9", "gorm.io/gorm", "github.com/go-sql-driver/mysql"} {
		note(path, module(path))
	}
	note("belay", belay())
	var version string
	if db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version) == nil {
		note("mariadb", version)
	}
	note("redis", redisVersion(ctx, redisAddr))
	_, nginx, _ := strings.Cut(output(ctx, "nginx", "-v"), "nginx/")
	note("nginx", nginx)
	return m
}

// String is the machine in a line.
func (m Machine) String() string {
	return fmt.Sprintf("%d cores · %s · %s memory · %s · load %s", m.Cores, m.CPU, m.Memory, m.Kernel, m.Load)
}

func module(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, dep := range info.Deps {
		if dep.Path == path {
			return dep.Version
		}
	}
	return ""
}

// belay is the revision that this program was built from.
func belay() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return info.Main.Version
}

func field(path, name string) string {
	text, err := os.ReadFile(path) //nolint:gosec // one of two files
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// load is the load averages: who reads the figures should know whether anything
// else was running.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	fields := strings.Fields(string(text))
	return strings.Join(fields[:min(3, len(fields))], " ")
}

func output(ctx context.Context, name string, args ...string) string {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput() //nolint:gosec // two programs
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func redisVersion(ctx context.Context, addr string) string {
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		return ""
	}
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, "redis_version:"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
