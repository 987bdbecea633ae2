package dialect

import (
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestFamilyOfMySQL: a server that speaks MySQL's protocol is what its version, or the comment on
// it, says.
func TestFamilyOfMySQL(t *testing.T) {
	for _, tt := range []struct {
		version, comment string
		want             Family
	}{
		{"9.7.4-2", "Debian", MySQL},
		{"8.0.15", "MySQL Community Server - GPL", MySQL},
		{"8.0.36", "Source distribution", MySQL}, // as managed ones say
		{"8.0.35-27", "Percona Server (GPL), Release 27, Revision 2f8eeab2", MySQL},
		{"8.0.35-27.1", "Percona XtraDB Cluster (GPL), Release rel27, WSREP version 26.1.4.3", MySQL},
		{"8.0.31-google", "(Google)", MySQL},
		{"10.11.14-MariaDB-0+deb12u2", "Debian 12", MariaDB},
		{"5.5.5-10.6.16-MariaDB-log", "Managed Server", MariaDB},
		{"8.0.11-TiDB-v7.5.1", "TiDB Server (Apache License 2.0) Community Edition, MySQL 8.0 compatible", "TiDB"},
		{"8.0.30-Vitess", "Version: 20.0.0 (Git revision) built on host using go1.22", "Vitess"},
		{"8.0.22", "Version: 10.0.0-RC1 (Git revision 48dccf5 branch 'HEAD') built on host using go1.15.11", "Vitess"},
		{"8.0.23-PlanetScale", "", "PlanetScale"},
		{"5.7.22-ShardingSphere-Proxy 5.5.0", "", "ShardingSphere"},
		{"5.7.25-OceanBase_CE-v4.3.5.0", "OceanBase_CE 4.3.5.0", "OceanBase"},
		{"5.7.32", "SingleStoreDB source distribution", "SingleStore"},
		{"8.0.33", "Dolt", "Dolt"},
		{"8.0.32-X-Cluster-8.4.19", "PolarDB V2.0", "PolarDB-X"},
		{"10.6.9-MariaDB-Xpand-6.1", "", "MariaDB Xpand"},
		{"8.0.22", "GaussDB", "openGauss"}, // a mark of the other list
	} {
		known := map[string]string{"version": tt.version, "version_comment": tt.comment, "innodb_lock_wait_timeout": "50"}
		if got := familyOfMySQL(known); got != tt.want {
			t.Errorf("%s, %s is %q, want %q", tt.version, tt.comment, got, tt.want)
		}
		if tested := tt.want == MySQL || tt.want == MariaDB; tt.want.Resembles() == tested {
			t.Errorf("%s resembles: %v", tt.want, tested)
		}
	}
	if got := familyOfMySQL(map[string]string{"version": "8.0.11"}); got != likeMySQL || !got.Resembles() {
		t.Errorf("without InnoDB it is %q", got)
	}
}

// TestFamilyOfPostgres: a server that speaks PostgreSQL's protocol is what it says, if it answers
// what each PostgreSQL does.
func TestFamilyOfPostgres(t *testing.T) {
	for _, tt := range []struct {
		version      string
		citus, plain bool
		want         Family
	}{
		{"PostgreSQL 15.14 (Debian 15.14-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14+deb12u1) 12.2.0, 64-bit", false, true, PostgreSQL},
		{"PostgreSQL 18.6 on x86_64-pc-linux-gnu, compiled by gcc 12.2.0, 64-bit", false, true, PostgreSQL},
		{"PostgreSQL 19beta1 on x86_64-pc-linux-gnu", false, true, PostgreSQL},
		{"PostgreSQL 16.3, compiled by Visual C++ build 1938, 64-bit", false, true, PostgreSQL},
		{"PostgreSQL 15.2 (EnterpriseDB Advanced Server 15.2.0) on x86_64-pc-linux-gnu", false, true, PostgreSQL},
		{"PostgreSQL 15.14 on x86_64-pc-linux-gnu", false, false, likePostgres},
		{"PostgreSQL 16.2 on x86_64-pc-linux-gnu", true, true, "Citus"},
		{"PostgreSQL 11.2-YB-2.20.1.0-b0 on x86_64-pc-linux-gnu, compiled by clang", false, true, "YugabyteDB"},
		{"CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu, built 2023/09/27 01:53:43, go1.19.10)", false, false, "CockroachDB"},
		{"PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled by GCC gcc (GCC) 3.4.2, Redshift 1.0.61678", false, false, "Redshift"},
		{"PostgreSQL 12.12 (Greenplum Database 7.0.0 build commit:0) on x86_64-pc-linux-gnu", false, true, "Greenplum"},
		{"PostgreSQL 14.4 (Cloudberry Database 1.0.0 build dev) on x86_64-pc-linux-gnu", false, true, "Cloudberry"},
		{"PostgreSQL 17.5 (6bc9ef8) on aarch64-unknown-linux-gnu, compiled by gcc", false, true, PostgreSQL}, // Neon
		{"(openGauss 5.0.0 build a07d57c3) compiled at 2023-03-29", false, true, "openGauss"},
		{"PostgreSQL 9.5.0 on x86_64-unknown-linux-gnu (Materialize v0.90.0)", false, false, "Materialize"},
		{"PostgreSQL 15.5 (Doltgres 0.50) on x86_64-pc-linux-gnu", false, true, "Dolt"}, // likewise
		{"Something 1.0", false, true, likePostgres},
		{"", false, true, likePostgres},
	} {
		got := familyOfPostgres(tt.version, tt.citus, tt.plain)
		if got != tt.want {
			t.Errorf("%q is %q, want %q", tt.version, got, tt.want)
		}
		if got.Resembles() == (tt.want == PostgreSQL) {
			t.Errorf("%s resembles: %v", got, got.Resembles())
		}
	}
}

// TestReadOnly: a server takes writes unless one of its variables says that it does not.
func TestReadOnly(t *testing.T) {
	for value, want := range map[string]bool{"OFF": false, "0": false, "ON": true, "1": true, "NO_LOCK": true} {
		if err := readOnly(map[string]string{"super_read_only": "OFF", "innodb_read_only": value}); errors.Is(err, errNoWriter) != want {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// TestNotCommittedOfFamilies: of a server that only resembles MySQL or PostgreSQL, the error of a
// COMMIT proves a rollback only if its documentation says so.
func TestNotCommittedOfFamilies(t *testing.T) {
	pg := func(code string) error { return &pgconn.PgError{Code: code} }
	my := func(number uint16) error { return &mysql.MySQLError{Number: number} }
	for _, tt := range []struct {
		family Family
		err    error
		want   bool
	}{
		{"CockroachDB", pg("40001"), true}, // "restart transaction"
		{"CockroachDB", pg("40003"), false},
		{"CockroachDB", pg("23505"), false},
		{"CockroachDB", pg("XXUUU"), false},
		{"YugabyteDB", pg("40001"), false}, // perhaps of a COMMIT that was sent twice
		{"YugabyteDB", pg("XX000"), false},
		{"Citus", pg("40001"), false}, // perhaps of one worker
		{likePostgres, pg("23505"), false},
		{"TiDB", my(8022), true},
		{"TiDB", my(9007), true},
		{"TiDB", my(8501), false}, // undetermined
		{"TiDB", my(1213), false},
		{"Vitess", my(1213), false}, // of one shard
		{"OceanBase", my(1213), false},
		{likeMySQL, my(1213), false},
		{"Vitess", driver.ErrBadConn, true}, // not sent
		{MySQL, my(1213), true},
		{MariaDB, my(1020), true},
		{PostgreSQL, pg("40001"), true},
		{"", pg("40001"), true},
	} {
		if got := tt.family.NotCommitted(tt.err); got != tt.want {
			t.Errorf("%s, %v: not committed is %v, want %v", tt.family, tt.err, got, tt.want)
		}
	}
}
