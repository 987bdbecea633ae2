package dbtx_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/teststack"
)

// A mariaDB is a server of one test's own, which may be killed. It listens on a
// socket in a folder of the test only.
type mariaDB struct {
	dir     string
	options []string
	process *exec.Cmd
}

// startMariaDB starts an empty MariaDB with durable commits and has it killed when
// the test ends. The options are those of mariadbd. Without the program the test is
// skipped, or fails where the stack is required.
func startMariaDB(tb testing.TB, options ...string) *mariaDB {
	tb.Helper()
	dir, err := os.MkdirTemp("", "belay") //nolint:usetesting // the test's own folder is too long for a socket
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	own, err := user.Current()
	if err != nil {
		tb.Fatal(err)
	}
	tmp := filepath.Join(dir, "tmp") // a server that starts deletes other servers' temporary tables
	if err := os.Mkdir(tmp, 0o700); err != nil {
		tb.Fatal(err)
	}
	m := &mariaDB{dir: dir, options: append([]string{"--no-defaults", "--user=" + own.Username, "--datadir=" + dir + "/data", "--tmpdir=" + tmp}, options...)}
	if out, err := exec.Command("cp", "-r", emptyMariaDB(tb), filepath.Join(dir, "data")).CombinedOutput(); err != nil {
		tb.Fatalf("copy the data of MariaDB: %v\n%s", err, out)
	}
	tb.Cleanup(func() { m.Kill(tb) })
	m.Start(tb)
	return m
}

// installed holds the folder with the data of an empty server, which takes seconds to make.
var installed struct {
	once sync.Once
	data string
	err  error
}

// emptyMariaDB returns the data of an empty server, for a server that starts on a copy.
func emptyMariaDB(tb testing.TB) (data string) {
	tb.Helper()
	program := teststack.Program(tb, "mariadb-install-db", "mariadb-server")
	installed.once.Do(func() { installed.data, installed.err = installMariaDB(program) })
	if installed.err != nil {
		tb.Fatal(installed.err)
	}
	return installed.data
}

// installMariaDB makes the data of an empty server in a folder that is removed after all tests.
func installMariaDB(program string) (data string, err error) {
	dir, err := os.MkdirTemp("", "belay")
	if err != nil {
		return "", err
	}
	atEnd = append(atEnd, func() { _ = os.RemoveAll(dir) })
	own, err := user.Current()
	if err != nil {
		return "", err
	}
	install := exec.Command(program, "--no-defaults", "--force", "--datadir=./data", "--user="+own.Username,
		"--skip-test-db", "--auth-root-authentication-method=normal", "--innodb-log-file-size=8M")
	install.Dir = dir
	install.Env = append(os.Environ(), "TMPDIR="+dir)
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("install MariaDB: %w\n%s", err, out)
	}
	return filepath.Join(dir, "data"), nil
}

// DSN leads to the database test, as a user who may do everything.
func (m *mariaDB) DSN() string {
	return "root@unix(" + filepath.Join(m.dir, "socket") + ")/test?parseTime=true&charset=utf8mb4"
}

// Kill kills the server at once, if it runs.
func (m *mariaDB) Kill(tb testing.TB) {
	tb.Helper()
	if m.process == nil {
		return
	}
	if err := m.process.Process.Kill(); err != nil {
		tb.Errorf("kill MariaDB: %v", err)
	}
	_ = m.process.Wait() // it says that it was killed
	m.process = nil
}

// Start starts the server, also after Kill, and waits until it answers.
func (m *mariaDB) Start(tb testing.TB) {
	tb.Helper()
	path := filepath.Join(m.dir, "log")
	log, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer log.Close()
	server := exec.Command(teststack.Program(tb, "mariadbd", "mariadb-server"), append(m.options,
		"--socket="+filepath.Join(m.dir, "socket"), "--skip-networking", "--innodb-flush-log-at-trx-commit=1",
		"--innodb-log-file-size=8M", "--innodb-buffer-pool-size=16M")...)
	server.Stdout, server.Stderr = log, log
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // it must not outlive a test that is killed
	if err := server.Start(); err != nil {
		tb.Fatalf("start MariaDB: %v", err)
	}
	m.process = server
	for end := time.Now().Add(time.Minute); !m.ready(); <-time.After(50 * time.Millisecond) {
		if time.Now().After(end) {
			text, _ := os.ReadFile(path)
			tb.Fatalf("MariaDB does not answer:\n%s", text)
		}
	}
}

// ready reports whether the server answers, and sees to it that it has the database.
func (m *mariaDB) ready() bool {
	config, err := mysql.ParseDSN(m.DSN())
	if err != nil {
		return false
	}
	config.DBName, config.Logger = "", &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return false
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	_, err = db.ExecContext(ctx, "CREATE DATABASE IF NOT EXISTS test")
	return err == nil
}

// DelayLog delays each write to the server's redo log by d, from when it returns
// until stop is called or the test ends.
func (m *mariaDB) DelayLog(tb testing.TB, d time.Duration) (stop func()) {
	tb.Helper()
	log := filepath.Join(m.dir, "data", "ib_logfile0")
	return inject(tb, m.process.Process.Pid, log, "pwrite64:delay_enter="+strconv.FormatInt(d.Microseconds(), 10))
}

// DelayBinlog delays each fsync of the server's binary log likewise.
func (m *mariaDB) DelayBinlog(tb testing.TB, d time.Duration) {
	tb.Helper()
	log := filepath.Join(m.dir, "data", "binlog.000001")
	inject(tb, m.process.Process.Pid, log, "fdatasync:delay_enter="+strconv.FormatInt(d.Microseconds(), 10))
}

// beginHasty begins a transaction that gives up a silent database after 300 ms. A new server on a
// machine that has other work may take longer to describe the table of a row: that is known by then.
func beginHasty(t *testing.T, db *gorm.DB, row any) *dbtx.Tx {
	t.Helper()
	tx := begin(t, db, dbtx.Options{})
	wantNil(t, tx.Protect(row))
	wantNil(t, tx.DB().Create(row).Error)
	tx.Rollback()
	return begin(t, db, dbtx.Options{EndTimeout: 300 * time.Millisecond})
}
