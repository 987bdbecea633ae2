package dialect

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/doctor"
)

// TestSettingsThatAreNotNamed: what a server does not say is not known, and neither right nor
// wrong.
func TestSettingsThatAreNotNamed(t *testing.T) {
	sound := map[string]string{
		"transaction_isolation": "REPEATABLE-READ", "innodb_flush_log_at_trx_commit": "1",
		"log_bin": "ON", "sync_binlog": "1", "binlog_format": "ROW",
	}
	if found := judgeMySQL(sound); found != nil {
		t.Errorf("found %v", found)
	}
	for name, check := range map[string]doctor.Check{
		"transaction_isolation": doctor.DBIsolation, "innodb_flush_log_at_trx_commit": doctor.DBDurability,
		"sync_binlog": doctor.DBDurability,
	} {
		known := maps.Clone(sound)
		delete(known, name)
		found := judgeMySQL(known)
		want := fmt.Sprintf("not checked: could not read %s: the server does not name it", name)
		if len(found) != 1 || found[0].Check != check.Name || found[0].Severity != doctor.Unchecked || found[0].Problem != want {
			t.Errorf("without %s: found %v", name, found)
		}
	}
	inside := maps.Clone(sound)
	inside["binlog_storage_engine"], inside["sync_binlog"] = "innodb", "0"
	if found := judgeMySQL(inside); found != nil {
		t.Errorf("with the binary log in InnoDB: found %v", found)
	}
	inside["rpl_semi_sync_master_enabled"] = "ON"
	if found := judgeMySQL(inside); len(found) != 1 || found[0].Check != doctor.DBDurability.Name {
		t.Errorf("with the binary log in InnoDB, and a replica: found %v", found)
	}
	for name, value := range map[string]string{"autocommit": "OFF", "completion_type": "CHAIN"} {
		known := maps.Clone(sound)
		known[name] = value
		if found := judgeMySQL(known); len(found) != 1 || found[0].Check != doctor.DBAutocommit.Name || !strings.Contains(found[0].Problem, name) {
			t.Errorf("with %s = %s: found %v", name, value, found)
		}
	}
	if found := judgeMySQL(map[string]string{"tx_isolation": "REPEATABLE-READ", "innodb_flush_log_at_trx_commit": "1", "log_bin": "OFF"}); found != nil {
		t.Errorf("without a binary log: found %v", found)
	}
}
