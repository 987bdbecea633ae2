package stage

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/belaygo/belay/benchmark/internal/measure"
)

// Meter returns a meter of all processes that take part, among them those of
// the cluster as they are now.
func (s *Stage) Meter(ctx context.Context) *measure.Meter {
	m := measure.NewMeter()
	m.Add("load", os.Getpid())
	for _, p := range s.started {
		group := p.name
		if strings.HasPrefix(group, "instance-") {
			group = "instances"
		}
		m.AddTree(group, p.cmd.Process.Pid)
	}
	for _, addr := range s.Cluster.Addrs {
		if pid, err := processOf(ctx, addr); err == nil {
			m.Add("redis", pid)
		}
	}
	if pid, err := MariaDB(ctx, s.DB); err == nil {
		m.Add("mariadb", pid)
	}
	return m
}

// MariaDB asks the database for its process.
func MariaDB(ctx context.Context, db *sql.DB) (int, error) {
	var file, dir string
	if err := db.QueryRowContext(ctx, "SELECT @@pid_file, @@datadir").Scan(&file, &dir); err != nil {
		return 0, err
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	text, err := os.ReadFile(file) //nolint:gosec // of the database server
	if err != nil {
		return 0, fmt.Errorf("read the pid of mariadb: %w", err)
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}
