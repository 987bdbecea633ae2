package dialect

import (
	"database/sql/driver"
	"errors"
	"regexp"
	"strings"

	"github.com/belaygo/belay/internal/sqlerr"
)

// A Family is the kind of a server, by what it says of itself. Many servers speak the protocol of
// MySQL or PostgreSQL, and end transactions in ways of their own: see [Family.Resembles].
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

	citus Family = "Citus"
)

// kin describes a family that resembles MySQL or PostgreSQL.
type kin struct {
	family Family
	says   string // in its version or the comment on it, in small letters
	// commitsInParts: it may commit one shard of a transaction and not another.
	commitsInParts bool
	// rolledBack, if there is one, reports whether the error of a COMMIT says, by the server's
	// documentation, that the transaction was rolled back and may be made again.
	rolledBack func(error) bool
}

func tidbRolledBack(err error) bool {
	return sqlerr.IsMySQL(err, tidbNoRetry, tidbCommitFailed, tidbWriteConflict)
}

func isSerialization(err error) bool { return sqlerr.IsPostgres(err, pgSerialization) }

// alike are the families that resemble MySQL or PostgreSQL and can be told from them. The first
// that fits counts.
var alike = []kin{
	{family: "TiDB", says: "tidb", rolledBack: tidbRolledBack},
	{family: "Vitess", says: "vitess", commitsInParts: true},         // with transaction_mode MULTI, its default
	{family: "Vitess", says: "(git revision ", commitsInParts: true}, // its comment, if it is to say another version
	{family: "PlanetScale", says: "planetscale", commitsInParts: true},
	{family: "PolarDB-X", says: "polardb-x", commitsInParts: true}, // by its transaction policy
	{family: "PolarDB-X", says: "x-cluster", commitsInParts: true},
	{family: "PolarDB-X", says: "tddl", commitsInParts: true},
	{family: "ShardingSphere", says: "shardingsphere", commitsInParts: true},
	{family: "OceanBase", says: "oceanbase"},
	{family: "OceanBase", says: "seekdb"},
	{family: "SingleStore", says: "singlestore"},
	{family: "SingleStore", says: "memsql"},
	{family: "MariaDB Xpand", says: "xpand"},
	{family: "MariaDB Xpand", says: "clustrix"},
	{family: "Dolt", says: "dolt"},
	{family: "StarRocks", says: "starrocks"},
	{family: "Doris", says: "doris"},

	{family: "CockroachDB", says: "cockroachdb", rolledBack: isSerialization},
	{family: "YugabyteDB", says: "-yb-"}, // its 40001 may also be of a COMMIT that was sent twice, and took effect
	{family: "Redshift", says: "redshift"},
	{family: "Greenplum", says: "greenplum"},
	{family: "Cloudberry", says: "cloudberry"},
	{family: "OpenTenBase", says: "tbase"},
	{family: "Hologres", says: "hologres"},
	{family: "OrioleDB", says: "orioledb"},
	{family: "openGauss", says: "gauss"},
	{family: "Postgres-XL", says: "postgres-xl"},
	{family: "Materialize", says: "materialize"},
	{family: "RisingWave", says: "risingwave"},
	{family: "QuestDB", says: "questdb"},
}

// familyBy returns the family of which a version says that it is, "" if it is none that only
// resembles another.
func familyBy(version string) Family {
	version = strings.ToLower(version)
	for _, k := range alike {
		if strings.Contains(version, k.says) {
			return k.family
		}
	}
	return ""
}

func (f Family) kin() kin {
	for _, k := range alike {
		if k.family == f {
			return k
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
		says := f.kin().rolledBack
		return errors.Is(err, driver.ErrBadConn) || says != nil && says(err)
	}
	return notCommitted(err)
}

// familyOfMySQL reads variables of the session. A server that has none of InnoDB's is no MySQL.
func familyOfMySQL(known map[string]string) Family {
	version := known["version"]
	switch found := familyBy(version + " " + known["version_comment"]); {
	case found != "":
		return found
	case known["innodb_lock_wait_timeout"] == "":
		return likeMySQL
	case strings.Contains(version, "MariaDB"):
		return MariaDB
	}
	return MySQL
}

// postgresVersion is how the version of a PostgreSQL begins, as its makers and those of
// distributions spell it.
var postgresVersion = regexp.MustCompile(`^PostgreSQL \d+(\.\d+)*(devel|alpha\d+|beta\d+|rc\d+)?[ ,]`)

// familyOfPostgres reads version(). isCitus is set if the server has the functions of Citus, plain
// unless it refused a query that each PostgreSQL answers.
func familyOfPostgres(version string, isCitus, plain bool) Family {
	switch found := familyBy(version); {
	case found != "":
		return found
	case isCitus:
		return citus
	case !plain || !postgresVersion.MatchString(version):
		return likePostgres
	}
	return PostgreSQL
}
