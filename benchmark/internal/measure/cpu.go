package measure

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// A Meter measures how much processor time groups of processes use: on a machine
// where everything shares a few cores, that is what bounds the throughput.
type Meter struct{ groups map[string][]int }

// NewMeter returns a meter of no processes.
func NewMeter() *Meter { return &Meter{groups: make(map[string][]int)} }

// Add puts a process into a group.
func (m *Meter) Add(group string, pid int) { m.groups[group] = append(m.groups[group], pid) }

// AddTree puts a process and its children, as they are now, into a group.
func (m *Meter) AddTree(group string, pid int) {
	m.Add(group, pid)
	for _, child := range children(pid) {
		m.AddTree(group, child)
	}
}

// A Reading is what each process has used up to a moment.
type Reading map[int]time.Duration

// Read returns what all processes have used so far.
func (m *Meter) Read() Reading {
	used := make(Reading)
	for _, pids := range m.groups {
		for _, pid := range pids {
			used[pid] = ofProcess(pid)
		}
	}
	return used
}

// Since returns how many milliseconds each group has used since before. What a
// process or a thread that has ended meanwhile used is not in it.
func (m *Meter) Since(before Reading) map[string]float64 {
	spent := make(map[string]float64, len(m.groups))
	for group, pids := range m.groups {
		spent[group] = 0
		for _, pid := range pids {
			spent[group] += float64(max(0, ofProcess(pid)-before[pid]).Microseconds()) / 1000
		}
	}
	return spent
}

// ofProcess sums up the threads: only their counters are in nanoseconds.
func ofProcess(pid int) (sum time.Duration) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, path := range threads {
		text, err := os.ReadFile(path) //nolint:gosec // of the kernel
		if err != nil {
			continue // it has just ended
		}
		first, _, _ := bytes.Cut(text, []byte(" "))
		if n, err := strconv.ParseInt(string(first), 10, 64); err == nil {
			sum += time.Duration(n)
		}
	}
	return sum
}

func children(pid int) (found []int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil
	}
	for field := range bytes.FieldsSeq(text) {
		if n, err := strconv.Atoi(string(field)); err == nil {
			found = append(found, n)
		}
	}
	return found
}
