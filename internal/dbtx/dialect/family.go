package dialect

import (
	"database/sql/driver"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/belaygo/belay/internal/sqlerr"
)

// A Family is the kind of a server, by the version that it reports. Many servers speak the protocol
// of MySQL or PostgreSQL, but end transactions differently: see [Family.Resembles].
type Family string

// The families whose answers prove an outcome. Managed forms of them, such as RDS, Aurora, Cloud SQL or
// Neon, are these servers.
const (
	MySQL      Family = "MySQL"
	MariaDB    Family = "MariaDB"
	PostgreSQL Family = "PostgreSQL"
	SQLite     Family = "SQLite"
)

const (
	likeMySQL    Family = "a server like MySQL"
	likePostgres Family = "a server like PostgreSQL"
	shards       Family = "a proxy of shards"

	citus Family = "Citus"
)

// kin describes a family that resembles MySQL or PostgreSQL.
type kin struct {
	family Family
	mark   string // a part of its version or version comment, in lower case; "" if none is known
	// commitsInParts is set if the server may commit one shard of a transaction without another.
	commitsInParts bool
	// rolledBack reports whether the error of a COMMIT means, by the server's documentation, that
	// the transaction was rolled back and may be retried. Nil if no error does.
	rolledBack func(error) bool
}

func tidbRolledBack(err error) bool {
	return sqlerr.IsMySQL(err, tidbNoRetry, tidbCommitFailed, tidbWriteConflict)
}

func isSerialization(err error) bool { return sqlerr.IsPostgres(err, pgSerialization) }

// alike are the families that resemble MySQL or PostgreSQL, by the name of their dialect. The first
// that fits counts.
var alike = map[string][]kin{
	"mysql": {
		{family: "TiDB", mark: "tidb", rolledBack: tidbRolledBack},
		{family: "Vitess", mark: "vitess", commitsInParts: true},         // with transaction_mode MULTI, its default
		{family: "Vitess", mark: "(git revision ", commitsInParts: true}, // its comment, where it reports another version
		{family: "PlanetScale", mark: "planetscale", commitsInParts: true},
		{family: "PolarDB-X", mark: "polardb-x", commitsInParts: true}, // by its transaction policy
		{family: "PolarDB-X", mark: "x-cluster", commitsInParts: true},
		{family: "PolarDB-X", mark: "tddl", commitsInParts: true},
		{family: "ShardingSphere", mark: "shardingsphere", commitsInParts: true},
		{family: "OceanBase", mark: "oceanbase"},
		{family: "OceanBase", mark: "seekdb"},
		{family: "SingleStore", mark: "singlestore"},
		{family: "SingleStore", mark: "memsql"},
		{family: "MariaDB Xpand", mark: "xpand"},
		{family: "MariaDB Xpand", mark: "clustrix"},
		{family: "Dolt", mark: "dolt"},
		{family: "StarRocks", mark: "starrocks"},
		{family: "Doris", mark: "doris"},
		{family: shards, commitsInParts: true},
		{family: likeMySQL},
	},
	"postgres": {
		{family: "CockroachDB", mark: "cockroachdb", rolledBack: isSerialization},
		{family: "YugabyteDB", mark: "-yb-"}, // its 40001 may also be of a COMMIT that was sent twice, and took effect
		{family: "Redshift", mark: "redshift"},
		{family: "Greenplum", mark: "greenplum"},
		{family: "Cloudberry", mark: "cloudberry"},
		{family: "OpenTenBase", mark: "tbase"},
		{family: "Hologres", mark: "hologres"},
		{family: "OrioleDB", mark: "orioledb"},
		{family: "openGauss", mark: "gauss"},
		{family: "Postgres-XL", mark: "postgres-xl"},
		{family: "Materialize", mark: "materialize"},
		{family: "RisingWave", mark: "risingwave"},
		{family: "QuestDB", mark: "questdb"},
		{family: "ShardingSphere", mark: "shardingsphere", commitsInParts: true},
		{family: citus}, // found by its functions
		// These proxies stand before plain PostgreSQLs. No mark of theirs is known.
		{family: "PgDog", commitsInParts: true}, // unless it has two_phase_commit
		{family: "SPQR", commitsInParts: true},
		{family: "Neki", commitsInParts: true},
		{family: shards, commitsInParts: true},
		{family: likePostgres},
	},
}

// familyBy returns the family that a version names, "" if none does: of a dialect's, or else of the
// other one's, as one maker may have a server of each.
func familyBy(dialect, version string) Family {
	version = strings.ToLower(version)
	for _, k := range slices.Concat(alike[dialect], alike["mysql"], alike["postgres"]) {
		if k.mark != "" && strings.Contains(version, k.mark) {
			return k.family
		}
	}
	return ""
}

func (f Family) kin() kin {
	for _, of := range alike {
		for _, k := range of {
			if k.family == f {
				return k
			}
		}
	}
	return kin{family: f}
}

// Resembles reports whether the server only resembles one that Belay knows. Then an outcome is
// proven by what Belay wrote itself, a claim or a stamp, and by nothing else: the server may keep a
// row elsewhere than it is looked for, show it late, know no numbers of transactions, or report
// at COMMIT an error of a part of it.
func (f Family) Resembles() bool {
	switch f {
	case MySQL, MariaDB, PostgreSQL, SQLite, "": // "" is a session that was not read
		return false
	}
	return true
}

// CommitsInParts reports whether a part of a transaction may be committed without another: then
// no row proves the outcome of all.
func (f Family) CommitsInParts() bool { return f.kin().commitsInParts }

// NotCommitted reports whether the error of a COMMIT proves that nothing was committed: by the
// server's report, or because the statement was not sent.
func (f Family) NotCommitted(err error) bool {
	if f.Resembles() {
		rolledBack := f.kin().rolledBack
		return errors.Is(err, driver.ErrBadConn) || rolledBack != nil && rolledBack(err)
	}
	return notCommitted(err)
}

// familyOfMySQL returns the family of a server with these variables. One without InnoDB's is no
// MySQL.
func familyOfMySQL(known map[string]string) Family {
	version := known["version"]
	switch found := familyBy("mysql", version+" "+known["version_comment"]); {
	case found != "":
		return found
	case known["innodb_lock_wait_timeout"] == "":
		return likeMySQL
	case strings.Contains(version, "MariaDB"):
		return MariaDB
	}
	return MySQL
}

// postgresVersion matches the beginning of a PostgreSQL's version, also of a distribution's.
var postgresVersion = regexp.MustCompile(`^PostgreSQL \d+(\.\d+)*(devel|alpha\d+|beta\d+|rc\d+)?[ ,]`)

// familyOfPostgres returns the family of a server with this version(). isCitus is set if the server
// has the functions of Citus, plain unless it refused a query that each PostgreSQL answers.
func familyOfPostgres(version string, isCitus, plain bool) Family {
	switch found := familyBy("postgres", version); {
	case found != "":
		return found
	case isCitus:
		return citus
	case !plain || !postgresVersion.MatchString(version):
		return likePostgres
	}
	return PostgreSQL
}
