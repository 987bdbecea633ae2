package teststack

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// BedConfig says how a [Bed] is brought up.
type BedConfig struct {
	Servers []string // of scripts/stack, in this order
	Env     []string // of scripts/stack
	Network bool     // each node has a network of its own, under root
	Disk    string   // the size of the disk that all share, as mount takes it, under root; or that of the machine
}

// A Bed is a database of several nodes, of one test's own: each node may be killed, paused
// and started again by commands of scripts/stack.
type Bed struct {
	*servers

	Network bool // its nodes can be cut off from each other
	Disk    bool // its disk can be filled
}

// StartBed brings up a bed and has it stopped when the test ends. Like Redis it skips or
// fails without a stack: where there is one, there may be another.
func StartBed(tb testing.TB, name string, c BedConfig) *Bed {
	tb.Helper()
	Redis(tb)
	root := os.Getuid() == 0
	b := &Bed{Network: c.Network && root, Disk: c.Disk != "" && root}
	tb.Cleanup(b.unmount) // when its servers are down
	b.servers = newStack(tb, name)
	b.env = append(b.env, c.Env...)
	if b.Network {
		b.env = append(b.env, "BELAY_STACK_NETWORK=1")
	}
	if b.Disk {
		if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "mode=755,size="+c.Disk, "belay", b.dir).CombinedOutput(); err != nil {
			tb.Fatalf("mount: %v: %s", err, out)
		}
		b.own(tb)
	}
	for _, s := range c.Servers {
		b.Stack(tb, "up", s)
	}
	return b
}

func (b *Bed) unmount() {
	if b.Disk {
		_ = exec.Command("umount", "--lazy", b.dir).Run()
		_ = os.Remove(b.dir)
	}
}

// Fill leaves no room on the disk, until the returned function is called.
func (b *Bed) Fill(tb testing.TB) (free func()) {
	tb.Helper()
	f, err := os.Create(filepath.Join(b.dir, "full"))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 1<<20))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		tb.Fatal(err)
	}
	return func() { _ = os.Remove(f.Name()) }
}

// Logs is the folder of what its servers log.
func (b *Bed) Logs() string { return filepath.Join(b.dir, "log") }

// Wipe removes the data of a node that was killed.
func (b *Bed) Wipe(tb testing.TB, node string) {
	tb.Helper()
	data := filepath.Join(b.dir, node, "data")
	entries, err := os.ReadDir(data)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(data, e.Name())))
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// PID returns the number of a node's process.
func (b *Bed) PID(tb testing.TB, node string) int {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, "run", node+".pid"))
	if err != nil {
		tb.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), " ")
	pid, err := strconv.Atoi(first)
	if err != nil {
		tb.Fatal(err)
	}
	return pid
}

// DSNs returns the DSNs, one of each node, in a variable that scripts/stack env prints.
func (b *Bed) DSNs(tb testing.TB, variable string) []string {
	tb.Helper()
	return strings.Fields(b.settings(tb)[variable])
}
