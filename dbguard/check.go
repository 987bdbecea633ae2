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
	"github.com/belaygo/belay/internal/dbtx/models"
	"github.com/belaygo/belay/internal/doctor"
)

// Check reports at start-up whether the tables of the models can be the second layer. Each
// needs a unique index whose columns the program sets, or a version column like the
// model's. The columns of the index must be NOT NULL, as any number of rows may have NULL
// in them. Check queries the database. The error joins one line per fault; it is nil if
// there is none.
//
// Check only warns, by db's logger, of NULL in a column of the index that the database
// generates, of a version column of 32 bits or less, and if a column of such an index has a collation that is
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
	found := checkModels(db, models, false)
	err := withServer(ctx, db, func(s *server) error {
		found = append(found, s.check()...)
		return nil
	})
	if err != nil {
		found = append(found, doctor.DBServer.Failed("the server", err))
	}
	var faults []error
	for _, f := range found {
		switch {
		case f.Severity != doctor.Error:
			db.Logger.Warn(ctx, "dbguard: %s: %s: %s", f.Subject, f.Problem, f.Fix)
		case f.Err != nil:
			faults = append(faults, fmt.Errorf("dbguard: check %s: %w", f.Subject, f.Err))
		default:
			faults = append(faults, fmt.Errorf("dbguard: %s: %s: %s", f.Subject, f.Problem, f.Fix))
		}
	}
	return errors.Join(faults...)
}

// checkModels returns what is wrong with the tables of models. requests says that operations
// may have a request, which then guards what no index does.
func checkModels(db *gorm.DB, models []any, requests bool) (found []doctor.Finding) {
	for _, model := range models {
		stmt := &gorm.Statement{DB: db, Context: db.Statement.Context}
		if err := stmt.Parse(model); err != nil {
			found = append(found, doctor.DBModel.Failed(fmt.Sprintf("%T", model), err).Fixed("give a pointer to a struct that gorm can map"))
			continue
		}
		c := checked{db: db, stmt: stmt, table: catalogue.TableOf(stmt), requests: requests}
		c.check()
		found = append(found, c.found...)
	}
	return found
}

// checked is a model whose table is checked.
type checked struct {
	db      *gorm.DB
	stmt    *gorm.Statement
	table   string
	columns map[string]catalogue.Column // of the real table
	indexes []catalogue.Index
	found   []doctor.Finding

	requests bool // whether a request may guard what no index does
}

func (c *checked) subject() string {
	return fmt.Sprintf("model %s, table %s", c.stmt.Schema.Name, c.table)
}

// fault adds why the table can't be the second layer, and what to do about it.
func (c *checked) fault(fix, format string, args ...any) {
	c.found = append(c.found, doctor.DBModel.Found(c.subject(), format, args...).Fixed("%s", fix))
}

func (c *checked) failed(err error) {
	c.found = append(c.found, doctor.DBModel.Failed(c.subject(), err).Fixed("let the service read the catalogue of the database"))
}

const (
	migrate  = "run a migration"
	addIndex = "add a unique index, or a field of type dbguard.Version"
)

// check reads the catalogue anew: the table may have changed.
func (c *checked) check() {
	var err error
	if c.columns, err = catalogue.Columns(c.db, c.table); err == nil {
		c.indexes, err = catalogue.Indexes(c.db, c.table)
	}
	switch {
	case err != nil:
		c.failed(err)
		return
	case len(c.columns) == 0:
		c.fault(migrate, "the table does not exist")
		return
	}
	if known, err := catalogue.FactsOf(c.db, c.table); err != nil {
		c.failed(err)
	} else if !known.Transactional {
		c.fault("ALTER TABLE ... ENGINE = InnoDB", "its engine has no transactions, so nothing can be rolled back")
	}
	version := versionOf(c.stmt.Schema)
	if version != nil {
		c.checkVersion(version)
	}
	if stamp := stampOf(c.stmt.Schema); stamp != nil {
		if _, ok := c.columns[strings.ToLower(stamp.DBName)]; !ok {
			c.fault(migrate, "the stamp column %s is missing", stamp.DBName)
		}
	}
	c.checkIndexes(version != nil)
	c.checkDeclared()
	c.checkCollations()
}

// narrow are the integers of MySQL and PostgreSQL of less than 64 bits.
var narrow = []string{"tinyint", "smallint", "mediumint", "int", "integer"}

func (c *checked) checkVersion(f *schema.Field) {
	column, ok := c.columns[strings.ToLower(f.DBName)]
	if !ok {
		c.fault(migrate, "the version column %s is missing", f.DBName)
		return
	}
	if column.Nullable {
		c.fault("make it NOT NULL DEFAULT 1", "the version column %s may be NULL, and is never compared then", f.DBName)
	}
	if c.db.Name() != "sqlite" && slices.Contains(narrow, column.Kind) {
		c.found = append(c.found, doctor.DBVersion.Found(c.subject(), "the version column %s is %s: the updates of one row may exceed it", f.DBName, column.Kind))
	}
	if f.FieldType.Kind() != reflect.Pointer && len(c.stmt.Schema.PrimaryFields) == 0 {
		c.fault("give it a primary key", "it has a version and no primary key")
	}
}

// checkIndexes looks for an index that the program's own values fill.
func (c *checked) checkIndexes(versioned bool) {
	var flaws, warnings []doctor.Finding
	candidates := c.candidates()
	for _, columns := range candidates {
		f, sound := c.checkNulls(columns)
		switch {
		case sound:
			return
		case f.Severity == doctor.Warning:
			warnings = append(warnings, f)
		default:
			flaws = append(flaws, f)
		}
	}
	switch {
	case versioned: // identified by its primary key
	case len(warnings) > 0: // one index is enough
		c.found = append(c.found, warnings...)
	case len(candidates) == 0:
		c.unguarded()
	default:
		c.found = append(c.found, flaws...)
	}
}

// checkNulls returns which columns of a unique index may be NULL, or that none may.
func (c *checked) checkNulls(columns []string) (_ doctor.Finding, sound bool) {
	nullable := c.nullable(columns)
	if len(nullable) == 0 {
		return doctor.Finding{}, true
	}
	found := doctor.DBModel.Found(c.subject(), "the unique index on %s does not keep rows apart that have NULL in %s",
		catalogue.Listing(columns), strings.Join(nullable, ", "))
	if !slices.ContainsFunc(nullable, func(name string) bool { return !c.generated(name) }) {
		found.Severity = doctor.Warning
		return found.Fixed("nothing, if these are the rows that are deleted"), false
	}
	var fixes []string
	for _, name := range nullable {
		if c.softDeletes(name) {
			found.Problem += fmt.Sprintf(", and all live rows have NULL in %s", name)
			fixes = append(fixes, fmt.Sprintf("declare the field of %s as soft_delete.DeletedAt of gorm.io/plugin/soft_delete with the tag softDelete:milli, "+
				"and the column as BIGINT NOT NULL DEFAULT 0: it is 0 in live rows", name))
			continue
		}
		fixes = append(fixes, fmt.Sprintf("make %s NOT NULL", name))
	}
	return found.Fixed("%s", strings.Join(fixes, "; ")), false
}

// generated reports whether the database alone fills the column, as far as the model says so.
func (c *checked) generated(column string) bool {
	f := models.Column(c.stmt.Schema, column)
	return f != nil && !f.Creatable && !f.Updatable
}

// softDeletes reports whether the column is that of gorm's own soft delete, which is NULL in
// all rows that are not deleted.
func (c *checked) softDeletes(column string) bool {
	f := models.Column(c.stmt.Schema, column)
	return f != nil && f.FieldType == reflect.TypeFor[gorm.DeletedAt]()
}

// unguarded adds that no row of the table can be protected.
func (c *checked) unguarded() {
	found := doctor.DBModel.Found(c.subject(), "it has no unique index on columns that the program sets%s, and no field of type dbguard.Version, so no row of it can be protected",
		catalogue.Unusable(c.indexes)).Fixed(addIndex)
	if c.requests {
		found.Severity = doctor.Note
		found.Problem += ". That is fine if each row is written for one request alone, with guard.For or guard.Once, as behind httpguard, grpcguard and inbox: the request takes effect once"
		found.Fix = "nothing in that case, else " + addIndex
	}
	c.found = append(c.found, found)
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
			c.fault(migrate, "the unique index on %s that the model declares is missing", catalogue.Listing(columns))
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
