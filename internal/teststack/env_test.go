package teststack

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestEnv: a usual server is named even when it has died, so that its tests fail;
// one beside them only while it runs, so that its tests are skipped.
func TestEnv(t *testing.T) {
	s := newStack(t, "env")
	if err := os.MkdirAll(s.dir, 0o750); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"password": "secret", "port": strconv.Itoa(s.port),
		"mariadb.ready": "", "mysql.ready": "", // both were up once
	} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := s.Stack(t, "env")
	if !strings.Contains(out, "export BELAY_MYSQL_DSN='belay:secret@") {
		t.Errorf("a usual server that is down is not named:\n%s", out)
	}
	if strings.Contains(out, "BELAY_MYSQL9_DSN") || strings.Contains(out, "BELAY_REDIS_ADDRS") {
		t.Errorf("what does not run is named:\n%s", out)
	}
}
