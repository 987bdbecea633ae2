package chaos_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// A sample is what a process has in use at a time.
type sample struct {
	Heap       float64        `json:"heap"` // live bytes
	Goroutines float64        `json:"goroutines"`
	Conns      map[string]int `json:"conns"` // by server

	at  int64
	ops float64 // operations that were begun by then
}

// portsName is the variable that has a worker take samples, and has the ports.
const portsName = "BELAY_CHAOS_PORTS"

// ports are those of the servers, by what they are.
type ports map[string]string

func (p ports) String() string {
	var text []string
	for _, port := range slices.Sorted(maps.Keys(p)) {
		text = append(text, port+"="+p[port])
	}
	return strings.Join(text, ",")
}

func parsePorts(text string) ports {
	p := make(ports)
	for pair := range strings.SplitSeq(text, ",") {
		port, server, _ := strings.Cut(pair, "=")
		p[port] = server
	}
	return p
}

// takeSample takes one of this process.
func takeSample(p ports) (*sample, error) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	conns, err := p.connections("self")
	return &sample{Heap: float64(m.HeapAlloc), Goroutines: float64(runtime.NumGoroutine()), Conns: conns}, err
}

// connections counts the connections of a process to the servers, also those that the
// server has closed and the process has not.
func (p ports) connections(pid string) (map[string]int, error) {
	own, err := filepath.Glob(filepath.Join("/proc", pid, "fd", "*"))
	if err != nil {
		return nil, err
	}
	sockets := make(map[string]bool)
	for _, fd := range own {
		if to, err := os.Readlink(fd); err == nil { // else it was closed meanwhile
			sockets[to] = true
		}
	}
	table, err := os.ReadFile(filepath.Join("/proc", pid, "net", "tcp"))
	if err != nil {
		return nil, err
	}
	n := make(map[string]int)
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line) // number, local and remote address, state, ..., inode
		if len(f) < 10 || !sockets[fmt.Sprintf("socket:[%s]", f[9])] {
			continue
		}
		_, hex, _ := strings.Cut(f[2], ":")
		port, err := strconv.ParseUint(hex, 16, 16)
		if err != nil {
			return nil, err
		}
		if server := p[strconv.FormatUint(port, 10)]; server != "" {
			n[server]++
		}
	}
	return n, nil
}
