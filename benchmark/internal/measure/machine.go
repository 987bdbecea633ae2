// Package measure has what all measurements share: the machine that they were
// taken on, the processor time of processes, and latencies. It imports nothing of
// Belay, so that benchmark/peers can use it, too.
package measure

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"
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

// Describe describes this machine and this program. What can't be found out is
// "unknown", or left out.
func Describe(ctx context.Context) Machine {
	m := Machine{
		Cores: runtime.NumCPU(), CPU: "unknown", Memory: "unknown", Kernel: output(ctx, "uname", "-sr"), Load: LoadAverages(),
		Versions: map[string]string{"go": runtime.Version()},
	}
	proc, _ := procfs.NewDefaultFS()
	if processors, err := proc.CPUInfo(); err == nil && len(processors) > 0 && processors[0].ModelName != "" {
		m.CPU = processors[0].ModelName
	}
	if memory, err := proc.Meminfo(); err == nil && memory.MemTotalBytes != nil {
		m.Memory = fmt.Sprintf("%.0f GB", float64(*memory.MemTotalBytes)/(1<<30))
	}
	m.Note("belay", belay(ctx))
	for path, name := range modules {
		m.Note(name, ModuleVersion(path))
	}
	return m
}

// modules are those that figures depend on, with their names.
var modules = map[string]string{
	"github.com/redis/go-redis/v9":   "go-redis",
	"github.com/go-sql-driver/mysql": "go-sql-driver/mysql",
	"gorm.io/gorm":                   "gorm",
}

// Note notes the version of something else that ran, unless it is "".
func (m Machine) Note(name, version string) {
	if version != "" {
		m.Versions[name] = version
	}
}

// String is the machine in a line.
func (m Machine) String() string {
	return fmt.Sprintf("%d cores · %s · %s memory · %s · load %s", m.Cores, m.CPU, m.Memory, m.Kernel, m.Load)
}

// Software is what ran on it in a line.
func (m Machine) Software() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m.Versions)) {
		parts = append(parts, name+" "+m.Versions[name])
	}
	return strings.Join(parts, ", ")
}

// ModuleVersion is the version of a module that is built into this program.
func ModuleVersion(path string) string {
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
func belay(ctx context.Context) string {
	info, ok := debug.ReadBuildInfo()
	if ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return output(ctx, "git", "describe", "--always", "--dirty", "--tags")
}

// LoadAverages are those of the machine: they show whether anything else was
// running.
func LoadAverages() string {
	proc, _ := procfs.NewDefaultFS()
	load, err := proc.LoadAvg()
	if err != nil {
		return "unknown"
	}
	return fmt.Sprintf("%.2f %.2f %.2f", load.Load1, load.Load5, load.Load15)
}

// NginxVersion is the version of the nginx that is installed.
func NginxVersion(ctx context.Context) string {
	_, version, _ := strings.Cut(output(ctx, "nginx", "-v"), "nginx/")
	return version
}

func output(ctx context.Context, name string, args ...string) string {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput() //nolint:gosec // three programs
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// RedisServer returns what a Redis server says about itself: the section Server of
// INFO.
func RedisServer(ctx context.Context, addr string) (map[string]string, error) {
	client := redis.NewClient(&redis.Options{Addr: addr, DialTimeout: 2 * time.Second})
	defer client.Close()
	info, err := client.InfoMap(ctx, "server").Result()
	if err != nil {
		return nil, fmt.Errorf("ask %s for its INFO: %w", addr, err)
	}
	return info["Server"], nil
}
