package gormsuite_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/dbguard"
)

// record is what a feature did: its statements with their results, its notes, its
// error, and what the tables hold in the end.
type record struct {
	logger.Interface
	lines      []string
	statements int
	failed     bool
	end        string // its error
}

func (r *record) LogMode(logger.LogLevel) logger.Interface { return r }

func (r *record) Info(_ context.Context, text string, _ ...any) { r.add(text) }

func (r *record) Warn(_ context.Context, text string, args ...any) {
	r.add("warning: " + fmt.Sprintf(text, args...))
}

func (r *record) Trace(_ context.Context, _ time.Time, f func() (string, int64), err error) {
	sql, rows := f()
	r.statements++
	r.add(fmt.Sprintf("%s [%d rows, %s]", sql, rows, errorText(err)))
}

func (r *record) add(line string) { r.lines = append(r.lines, random.ReplaceAllString(line, "$1")) }

func (r *record) String() string { return strings.Join(r.lines, "\n") }

// random are the names of savepoints, and of the test's database.
var random = regexp.MustCompile(`\b(sp|belay_)[0-9a-z]{8,}`)

// note puts a value into the record of the feature that runs on db.
func note(db *gorm.DB, values ...any) {
	text, err := json.Marshal(values)
	if err != nil {
		text = []byte(err.Error())
	}
	db.Logger.Info(db.Statement.Context, "note "+string(text))
}

// errorText is an error without what differs in a guarded transaction: a duplicate
// is a Conflict there with the driver's error in it, and an ended context is
// noticed by the driver, not by database/sql.
func errorText(err error) string {
	if conflict, ok := errors.AsType[*dbguard.ConflictError](err); ok {
		err = conflict.Err
	}
	for _, known := range []error{context.Canceled, gorm.ErrDuplicatedKey, gorm.ErrForeignKeyViolated} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return fmt.Sprint(err)
}

// firstDifference says where two records part, with the lines before.
func firstDifference(want, got []string) string {
	i := 0
	for i < len(want) && i < len(got) && want[i] == got[i] {
		i++
	}
	line := func(lines []string) string {
		if i < len(lines) {
			return lines[i]
		}
		return "(the end)"
	}
	before := slices.Clone(want[max(0, i-3):i])
	return strings.Join(append(before, "without: "+line(want), "with:    "+line(got)), "\n")
}

// recordAll makes all tables anew and runs all features in one mode.
func recordAll(t *testing.T, open func(...gorm.Option) *gorm.DB, config gorm.Config, run mode) map[string]*record {
	t.Helper()
	config.NowFunc = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	db := open(&config)
	wantNil(t, errors.Join(
		db.Migrator().DropTable("person_labels", "person_friends"), db.Migrator().DropTable(models...),
		db.AutoMigrate(models...)))
	wantNil(t, run.prepare(db))

	records := make(map[string]*record)
	for _, area := range areas() {
		for _, f := range allFeatures[area] {
			wantNil(t, empty(db))
			r := &record{Interface: logger.Discard}
			err := run.do(db.Session(&gorm.Session{Logger: r}), f.run)
			r.failed, r.end = err != nil, errorText(err)
			r.add("error: " + r.end)
			wantNil(t, contents(db, r))
			records[area+"/"+f.name] = r
		}
	}
	return records
}

// areas are in the same order each time, because generated ids go on.
func areas() (names []string) {
	for area := range allFeatures {
		names = append(names, area)
	}
	slices.Sort(names)
	return names
}

// filled returns the tables that have rows, in the order of tableNames. Most have
// none after most features: one question for all takes a fraction of the time.
func filled(db *gorm.DB) (tables []string, err error) {
	questions := make([]string, len(tableNames))
	for i, table := range tableNames {
		questions[i] = fmt.Sprintf("SELECT DISTINCT '%s' FROM %[1]s", table)
	}
	var found []string
	err = db.Raw(strings.Join(questions, " UNION ALL ")).Scan(&found).Error
	for _, table := range tableNames {
		if slices.Contains(found, table) {
			tables = append(tables, table)
		}
	}
	return tables, err
}

// empty deletes the rows of all tables, those that refer to others first.
func empty(db *gorm.DB) error {
	tables, err := filled(db)
	if err != nil || len(tables) == 0 {
		return err
	}
	return db.Transaction(func(tx *gorm.DB) error {
		errs := []error{tx.Exec("UPDATE people SET chief_id = NULL").Error}
		for _, table := range tables {
			errs = append(errs, tx.Exec("DELETE FROM "+table).Error)
		}
		return errors.Join(errs...)
	})
}

// contents adds to r what is committed.
func contents(db *gorm.DB, r *record) error {
	tables, err := filled(db)
	if err != nil {
		return err
	}
	for _, table := range tables {
		var rows []map[string]any
		if err := db.Table(table).Find(&rows).Error; err != nil {
			return err
		}
		lines := make([]string, len(rows))
		for i, row := range rows {
			lines[i] = fmt.Sprintf("%s %v", table, row)
		}
		slices.Sort(lines)
		for _, line := range lines {
			r.add(line)
		}
	}
	return nil
}
