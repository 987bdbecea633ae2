package main

import (
	"bytes"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belaygo/belay/benchmark/internal/result"
	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/internal/teststack"
)

func TestWrongUsage(t *testing.T) {
	t.Setenv("BELAY_MYSQL_DSN", "x")
	for _, args := range [][]string{
		{}, {"table2"}, {"table1", "extra"}, {"table1", "-nope"}, {"table1", "-rows", "10"}, {"table1", "-users", "7"}, {"table1", "-users", "21"},
		{"table1", "-stock", "0"}, {"table1", "-repeat", "0"}, {"table1", "-lb", "haproxy"}, {"table1", "-load", "wrk"}, {"table1", "-methods", "belly"},
		{"table1", "-instances", "0"}, {"table1", "-pool", "400"}, {"table1", "-load", "jmeter", "-lb", "none"},
		{"seed", "-rows", "-1"}, {"serve", "-pool", "0"}, {"report"}, {"cost", "-n", "0"}, {"cost", "-rows", "1000,x"}, {"cost", "-rows", "1000,1000"}, {"cost", "-methods", "x"},
		{"guard", "-pool", "0"}, {"guard", "-repeat", "0"}, {"guard", "-span", "1ms"},
		{"guard", "-delay", "-1us"}, {"guard", "-delay", "2s"}, {"guard-worker", "x"},
	} {
		if err := execute(t.Context(), args); !errors.Is(err, errUsage) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestWithoutStack(t *testing.T) {
	for _, name := range []string{"BELAY_MYSQL_DSN", "BELAY_AMQP_URL", "BELAY_AMQP_API", "BELAY_REDIS_ADDRS"} {
		t.Setenv(name, "")
	}
	for _, args := range [][]string{{"seed"}, {"serve"}, {"table1", "-lb", "none"}, {"cost"}, {"guard"}} {
		if err := execute(t.Context(), args); err == nil || !strings.Contains(err.Error(), "scripts/stack up") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestReportOfNothing(t *testing.T) {
	if err := execute(t.Context(), []string{"report", "-json", filepath.Join(t.TempDir(), "none.json")}); err == nil {
		t.Error("no error")
	}
}

// build compiles the program.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "benchmark")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// seeded seeds a small database, which is dropped at the end.
func seeded(t *testing.T) (rows string) {
	t.Helper()
	const n = 1009
	dsn := teststack.MySQL(t)
	if err := shop.Seed(t.Context(), dsn, n, new(bytes.Buffer)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		db, err := sql.Open("mysql", dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec("DROP DATABASE " + shop.Database(n)); err != nil {
			t.Error(err)
		}
	})
	return "1009"
}

func TestPortInUse(t *testing.T) {
	teststack.AMQP(t) // there is a stack
	rows, program := seeded(t), build(t)
	first := exec.Command(program, "serve", "-listen", "127.0.0.1:29480", "-rows", rows, "-pool", "2")
	out, err := first.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = first.Process.Signal(syscall.SIGTERM)
		_ = first.Wait()
	}()
	line := make([]byte, 100)
	n, err := out.Read(line)
	if err != nil || !strings.HasPrefix(string(line[:n]), "listening on 127.0.0.1:29480") {
		t.Fatalf("%q, %v", line[:n], err)
	}
	text, err := exec.Command(program, "serve", "-listen", "127.0.0.1:29480", "-rows", rows, "-pool", "2").CombinedOutput()
	if err == nil || !strings.Contains(string(text), "address already in use") {
		t.Errorf("second: %v, %s", err, text)
	}
}

func TestInterruptedRunCleansUp(t *testing.T) {
	teststack.AMQP(t)
	rows, program := seeded(t), build(t)
	json := filepath.Join(t.TempDir(), "out.json")
	cmd := exec.Command(program, "table1", "-rows", rows, "-lb", "none", "-instances", "2", "-pool", "8", "-users", "40", "-stock", "5",
		"-methods", "unique-index,redis-lock", "-repeat", "1000", "-json", json)
	cmd.Dir = ".."
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	await(t, ended, &output, func() bool {
		run, err := result.Read(json)
		return err == nil && run.Rounds >= 1
	})
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
			t.Errorf("ended with %v, want exit status 1", err)
		}
	case <-time.After(90 * time.Second):
		_ = cmd.Process.Kill()
		t.Fatal("it did not end")
	}
	if !strings.Contains(output.String(), "interrupted") || !strings.Contains(output.String(), json) {
		t.Errorf("it does not say where the results are:\n%s", output.String())
	}
	run, err := result.Read(json)
	if err != nil || run.Complete || len(run.Methods) == 0 {
		t.Errorf("partial results: %+v, %v", run, err)
	}
	if left, _ := exec.Command("pgrep", "-f", program).Output(); len(left) > 0 {
		t.Errorf("processes are left: %s", left)
	}
	if _, err := os.Stat(filepath.Join("..", ".stack", "benchmark-"+strconv.Itoa(cmd.Process.Pid))); err == nil {
		t.Error("the redis cluster is left")
	}
}

// TestExitStatusTellsFaults takes the second layer away: rows are duplicated.
func TestExitStatusTellsFaults(t *testing.T) {
	teststack.AMQP(t)
	rows, program := seeded(t), build(t)
	db, err := shop.OpenPool(teststack.MySQL(t), shop.Database(1009), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{"ALTER TABLE orders DROP INDEX orders_no", "ALTER TABLE orders ADD INDEX orders_no (no)"} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	json := filepath.Join(t.TempDir(), "out.json")
	cmd := exec.Command(program, "table1", "-users", "40", "-stock", "5", "-repeat", "1",
		"-rows", rows, "-lb", "none", "-instances", "2", "-pool", "8", "-methods", "unique-index", "-json", json)
	cmd.Dir = ".."
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
		t.Errorf("it ended with %v, want exit status 1:\n%s", err, out)
	}
	run, err := result.Read(json)
	if err != nil || !run.Complete || len(run.Problems) == 0 {
		t.Errorf("results %+v, %v; want a complete run with faults", run, err)
	}
	if !strings.Contains(string(out), "benchmark: the run found faults") {
		t.Errorf("it does not say so:\n%s", out)
	}
}

// await polls until cond holds.
func await(t *testing.T, ended <-chan error, output *bytes.Buffer, cond func() bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case err := <-ended:
			t.Fatalf("it ended by itself: %v\n%s", err, output.String())
		case <-deadline:
			t.Fatal("nothing was measured")
		}
	}
}
