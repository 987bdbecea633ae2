package chaos_test

import (
	"bufio"
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// set has a node run a statement, again until it has: the connection may be cut.
func (s *standing) set(node int, statement string) {
	for until := time.Now().Add(time.Minute); ; <-time.After(100 * time.Millisecond) {
		err := s.admin[node].Exec(statement).Error
		if err == nil {
			return
		}
		if time.Now().After(until) {
			s.t.Fatalf("%s: %s: %v", s.nodes[node], statement, err)
		}
	}
}

// setReadOnly has a node take no writes, or take them again.
func (s *standing) setReadOnly(node int, on bool) {
	switch {
	case s.kind != "postgres" && on:
		s.set(node, "SET GLOBAL read_only = ON")
	case s.kind != "postgres":
		s.set(node, "SET GLOBAL read_only = OFF")
	case on:
		s.set(node, "ALTER SYSTEM SET default_transaction_read_only = on")
		s.set(node, "SELECT pg_reload_conf()")
	default:
		s.set(node, "ALTER SYSTEM RESET default_transaction_read_only")
		s.set(node, "SELECT pg_reload_conf()")
	}
}

// storm takes all connections that a node, or the pooler before it, has for ordinary users,
// for a while.
func (w *wrecker) storm(s step, n int) {
	b := w.server.bed
	dsn := b.past[n]
	if b.pooler != "" {
		dsn = b.dsns[0]
	}
	connector, err := databases[b.kind].connector(dsn, new(net.Dialer).DialContext)
	if err != nil {
		w.t.Fatal(err)
	}
	var taken []driver.Conn
	take := func() {
		for len(taken) < 2000 {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			c, err := connector.Connect(ctx)
			cancel()
			if err != nil {
				return // the node has no more
			}
			taken = append(taken, c)
		}
	}
	w.hurtNode(s, n, func() {
		take()
		for end := time.Now().Add(aWhile); time.Now().Before(end); w.linger(100 * time.Millisecond) {
			take() // what others have given back
		}
	}, func() {
		for _, c := range taken {
			_ = c.Close()
		}
	})
}

// fillDisk leaves no node any room on its disk, for a while.
func (w *wrecker) fillDisk(s step) {
	b := w.server.bed
	w.hurt(s.Kind, "", func() bool {
		free := b.stack.Fill(w.t)
		w.linger(aWhile + s.For)
		free()
		// MariaDB and MySQL look for room once a minute. PostgreSQL has ended.
		for until := time.Now().Add(2 * time.Minute); b.kind != "postgres" && b.front.stands(false) && !b.hasRoom() && time.Now().Before(until); {
			w.linger(100 * time.Millisecond)
		}
		b.stack.Stack(w.t, "heal")
		b.awaitStands()
		return true
	})
}

// hasRoom reports whether something can be written.
func (s *standing) hasRoom() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	n := s.front.present()
	if n < 0 {
		return false
	}
	db := s.admin[n].WithContext(ctx)
	return db.Exec("DROP TABLE IF EXISTS room").Error == nil && db.Exec("CREATE TABLE room (id INT)").Error == nil
}

// slowDown has each fsync of a node take a while longer, and all its system calls a little.
func (w *wrecker) slowDown(s step, n int) {
	b := w.server.bed
	var stop func()
	w.hurtNode(s, n, func() {
		stop = w.trace(b.stack.PID(w.t, b.nodes[n]), "fsync,fdatasync:delay_enter=200000")
	}, func() { stop() })
}

// withChildren returns a process and its children, which PostgreSQL's sessions are, as
// strace takes them.
func withChildren(pid int) string {
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	return strings.Join(append([]string{strconv.Itoa(pid)}, strings.Fields(string(children))...), ",")
}

// trace has strace tamper with system calls of a process until stop is called.
func (w *wrecker) trace(pid int, inject string) (stop func()) {
	calls, _, _ := strings.Cut(inject, ":")
	cmd := exec.Command("strace", "-f", "-p", withChildren(pid), "-e", "trace="+calls, "-e", "inject="+inject, "-o", os.DevNull)
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	says, _ := bufio.NewReader(stderr).ReadString('\n')
	if !strings.Contains(says, "attached") {
		w.t.Errorf("strace of %d: %s", pid, says)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, stderr)
		_ = cmd.Wait()
	}()
	return func() {
		_ = cmd.Process.Signal(os.Interrupt) // it detaches
		<-done
	}
}

// canTrace says why no process can be traced, if none can.
func canTrace() error {
	if _, err := exec.LookPath("strace"); err != nil {
		return err
	}
	if out, err := exec.Command("strace", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
