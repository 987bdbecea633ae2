package dbguard

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/models"
)

// Check reports at start-up whether the tables of the models can be the second layer. Each
// needs a unique index whose columns the program sets, or a version column like the
// model's. The columns of the index must be NOT NULL, as any number of rows may have NULL
// in them. Check queries the database. The error joins one line per fault; it is nil if
// there is none.
//
// Check only warns, by db's logger, if a column of such an index has a collation that is
// not exact. The usual collations of MySQL ignore case, accents or spaces at the end. Two
// keys that differ only in these are two locks and one row: the second insert is refused
// as a duplicate. Convert such keys to one form in the program, to lower case for
// example, or give the column a binary collation.
//
// It warns likewise of a server of a cluster that may be behind the others when a
// transaction begins: Galera with wsrep_sync_wait = 0, MySQL's group replication with
// group_replication_consistency = EVENTUAL. What another writer has done there may be the
// work of the lock's previous holder, so it counts as a lock failure only if the lock is
// gone, too, and an update may be refused as stale.
//
// And it warns of settings under which PostgreSQL may lose a commit that it has
// acknowledged, and with it the second layer of what was written: fsync = off,
// synchronous_commit = off, and synchronous_commit = local beside a synchronous standby.
// Likewise of semi-synchronous replication of MySQL and MariaDB that goes on without its
// replica within an hour, or whose wait point is not AFTER_SYNC.
func Check(ctx context.Context, db *gorm.DB, models ...any) error {
	if _, ok := db.Plugins[pluginName]; !ok {
		return errors.New("dbguard: not installed on this db")
	}
	db = db.Session(&gorm.Session{NewDB: true, Context: ctx})
	var faults []error
	for _, model := range models {
		stmt := &gorm.Statement{DB: db, Context: ctx}
		if err := stmt.Parse(model); err != nil {
			faults = append(faults, fmt.Errorf("dbguard: check %T: %w", model, err))
			continue
		}
		c := checked{db: db, stmt: stmt, table: catalogue.TableOf(stmt)}
		c.check()
		faults = append(faults, c.faults...)
	}
	return errors.Join(append(faults, warnServer(ctx, db))...)
}

// warnServer warns of a server that may be behind others, or may lose commits.
func warnServer(ctx context.Context, db *gorm.DB) error {
	d, ok := dialect.Of(db.Name())
	pool, err := db.DB()
	if !ok || err != nil {
		return nil // nothing is known of another database, or of a pool that is none of database/sql's
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return fmt.Errorf("dbguard: check the server: %w", err)
	}
	defer func() { _ = conn.Close() }()
	session, err := d.ReadSession(ctx, conn)
	if err != nil {
		return fmt.Errorf("dbguard: check the server: %w", err)
	}
	if session.Behind {
		db.Logger.Warn(ctx, "dbguard: the server may be behind others of its cluster when a transaction begins: "+
			"set wsrep_sync_wait = 1 with Galera, group_replication_consistency = BEFORE with group replication")
	}
	if d.Loses == nil {
		return nil
	}
	why, err := d.Loses(ctx, conn)
	if err != nil {
		return fmt.Errorf("dbguard: check the server: %w", err)
	}
	if why != "" {
		db.Logger.Warn(ctx, "dbguard: "+why)
	}
	return nil
}

// checked is a model whose table is checked.
type checked struct {
	db      *gorm.DB
	stmt    *gorm.Statement
	table   string
	columns map[string]catalogue.Column // of the real table
	indexes []catalogue.Index
	faults  []error
}

func (c *checked) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf("dbguard: model %s, table %s: %w", c.stmt.Schema.Name, c.table, fmt.Errorf(format, args...)))
}

// check reads the catalogue anew: the table may have changed.
func (c *checked) check() {
	var err error
	if c.columns, err = catalogue.Columns(c.db, c.table); err == nil {
		c.indexes, err = catalogue.Indexes(c.db, c.table)
	}
	switch {
	case err != nil:
		c.fault("%w", err)
		return
	case len(c.columns) == 0:
		c.fault("the table does not exist")
		return
	}
	if known, err := catalogue.FactsOf(c.db, c.table); err != nil {
		c.fault("%w", err)
	} else if !known.Transactional {
		c.fault("its engine has no transactions: nothing can be rolled back")
	}
	version := versionOf(c.stmt.Schema)
	if version != nil {
		c.checkVersion(version)
	}
	if stamp := stampOf(c.stmt.Schema); stamp != nil {
		if _, ok := c.columns[strings.ToLower(stamp.DBName)]; !ok {
			c.fault("the stamp column %s is missing: run a migration", stamp.DBName)
		}
	}
	c.checkIndexes(version != nil)
	c.checkDeclared()
	c.warnCollations()
}

func (c *checked) checkVersion(f *schema.Field) {
	column, ok := c.columns[strings.ToLower(f.DBName)]
	if !ok {
		c.fault("the version column %s is missing: run a migration", f.DBName)
		return
	}
	if column.Nullable {
		c.fault("the version column %s may be NULL, and is never compared then: make it NOT NULL DEFAULT 1", f.DBName)
	}
	if f.FieldType.Kind() != reflect.Pointer && len(c.stmt.Schema.PrimaryFields) == 0 {
		c.fault("it has a version and no primary key")
	}
}

// checkIndexes looks for an index that the program's own values fill.
func (c *checked) checkIndexes(versioned bool) {
	var reasons []string
	candidates := c.candidates()
	for _, columns := range candidates {
		nullable := c.nullable(columns)
		if len(nullable) == 0 {
			reasons = nil
			break
		}
		reasons = append(reasons, fmt.Sprintf("the unique index on %s does not keep rows apart that have NULL in %s: make it NOT NULL",
			catalogue.Listing(columns), strings.Join(nullable, ", ")))
	}
	switch {
	case versioned: // identified by its primary key
	case len(reasons) > 0:
		for _, reason := range reasons {
			c.fault("%s", reason)
		}
	case len(candidates) == 0:
		c.fault("it has no unique index on columns that the program sets%s, and no field of type dbguard.Version: no row of it can be protected", catalogue.Unusable(c.indexes))
	}
}

// candidates returns the columns of the unique indexes that a row may be
// identified by: those that are no generated key.
func (c *checked) candidates() (found [][]string) {
	for _, columns := range catalogue.WithPrimary(catalogue.UniqueKeys(c.indexes), c.stmt.Schema.PrimaryFieldDBNames) {
		f := models.Column(c.stmt.Schema, columns[0])
		if generated := len(columns) == 1 && f != nil && f.AutoIncrement; !generated {
			found = append(found, columns)
		}
	}
	return found
}

func (c *checked) nullable(columns []string) (found []string) {
	if catalogue.SameColumns(columns, c.stmt.Schema.PrimaryFieldDBNames) {
		return nil // SQLite says that a primary key may be NULL
	}
	for _, name := range columns {
		if c.columns[strings.ToLower(name)].Nullable {
			found = append(found, name)
		}
	}
	return found
}

// checkDeclared looks for the unique indexes that the model declares and the
// table does not have.
func (c *checked) checkDeclared() {
	var declared [][]string
	for _, f := range c.stmt.Schema.Fields {
		if f.Unique && f.DBName != "" {
			declared = append(declared, []string{f.DBName})
		}
	}
	for _, index := range c.stmt.Schema.ParseIndexes() {
		if index.Class == "UNIQUE" && index.Where == "" {
			declared = append(declared, plainColumns(index))
		}
	}
	for _, columns := range declared {
		there := func(index []string) bool { return catalogue.SameColumns(index, columns) }
		if len(columns) > 0 && !slices.ContainsFunc(catalogue.UniqueKeys(c.indexes), there) {
			c.fault("the unique index on %s that the model declares is missing: run a migration", catalogue.Listing(columns))
		}
	}
}

// plainColumns returns the columns of an index, nil if one is a prefix or an
// expression.
func plainColumns(index *schema.Index) (columns []string) {
	for _, f := range index.Fields {
		if f.Field == nil || f.Expression != "" || f.Length > 0 {
			return nil
		}
		columns = append(columns, f.DBName)
	}
	return columns
}
