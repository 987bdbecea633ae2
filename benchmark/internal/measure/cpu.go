package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// A Meter measures how much processor time groups of processes use: on a machine
// where everything shares a few cores, that is what bounds the throughput.
type Meter struct{ groups map[string][]int }

// NewMeter returns a Meter of no processes.
func NewMeter() *Meter { return &Meter{groups: make(map[string][]int)} }

// Add puts a process into a group.
func (m *Meter) Add(group string, pid int) { m.groups[group] = append(m.groups[group], pid) }

// AddTree puts a process and its current descendants into a group.
func (m *Meter) AddTree(group string, pid int) {
	m.groups[group] = append(m.groups[group], Tree(pid)...)
}

// Tree returns a process and its current descendants.
func Tree(pid int) []int {
	pids := []int{pid}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		text, _ := os.ReadFile(file) //nolint:gosec // of /proc
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, Tree(child)...)
			}
		}
	}
	return pids
}

// A Reading is the processor time that each process has used.
type Reading map[int]time.Duration

// Read returns the processor time that all processes have used until now.
func (m *Meter) Read() Reading {
	used := make(Reading)
	for _, pids := range m.groups {
		for _, pid := range pids {
			used[pid] = processorTime(pid)
		}
	}
	return used
}

// Since returns how many milliseconds each group has used since before. The time
// of a process or a thread that has ended since then is not in it.
func (m *Meter) Since(before Reading) map[string]float64 {
	now, spent := m.Read(), make(map[string]float64)
	for group, pids := range m.groups {
		for _, pid := range pids {
			spent[group] += float64(max(0, now[pid]-before[pid]).Microseconds()) / 1000
		}
	}
	return spent
}

// processorTime adds up the threads: only their counters are in nanoseconds.
func processorTime(pid int) (sum time.Duration) {
	threads, _ := procfs.AllThreads(pid)
	for _, thread := range threads {
		stat, _ := thread.Schedstat()                 // zero for a thread that has just ended
		sum += time.Duration(stat.RunningNanoseconds) //nolint:gosec // 292 years fit
	}
	return sum
}
