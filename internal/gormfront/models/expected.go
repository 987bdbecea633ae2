package models

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// expectedClause is where a statement keeps its Expected, and nothing that is built into
// SQL.
const expectedClause = "belay:expected"

// Expected has the versions that a statement compares, and the structs that hold them.
// Without rows, it compares none.
type Expected struct {
	Field  *schema.Field // of the version
	Rows   []Loaded
	Values bool  // the struct is not the model but the values
	Steps  int64 // by how much an update raises the version
}

// stepsSetting is the key of a session's steps: how many updates one of its statements
// stands for.
const stepsSetting = "belay:steps"

// WithSteps returns a session whose versioned updates raise the version by n.
func WithSteps(tx *gorm.DB, n int64) *gorm.DB { return tx.Set(stepsSetting, n) }

// unreadSetting is the key of a session whose updates leave out what was not read.
const unreadSetting = "belay:unread"

// WithoutUnread returns a session whose updates of all columns leave out those that gorm does not
// read, unless the program has set them.
func WithoutUnread(tx *gorm.DB) *gorm.DB { return tx.Set(unreadSetting, true) }

// OmitUnread leaves these columns out of a statement of such a session, when the hooks of its model
// have run.
func OmitUnread(stmt *gorm.Statement) {
	if _, ok := stmt.Settings.Load(unreadSetting); !ok || stmt.Schema == nil || stmt.ReflectValue.Kind() != reflect.Struct {
		return
	}
	for _, f := range stmt.Schema.Fields {
		if !Unread(f) {
			continue
		}
		if _, zero := f.ValueOf(stmt.Context, stmt.ReflectValue); zero {
			stmt.Omits = append(stmt.Omits, f.DBName)
		}
	}
}

// Unread reports whether gorm writes a column and does not read it.
func Unread(f *schema.Field) bool {
	return f.DBName != "" && !f.Readable && f.Updatable && f.AutoUpdateTime == 0
}

// Steps returns by how much a versioned update of the session raises the version.
func Steps(stmt *gorm.Statement) int64 {
	n, _ := stmt.Settings.Load(stepsSetting)
	steps, _ := n.(int64)
	return max(1, steps)
}

// A Loaded is a struct that has been read from the database.
type Loaded struct {
	Model   reflect.Value
	Version int64
}

// Build implements clause.Expression.
func (Expected) Build(clause.Builder) {}

// Keep stores e in a statement.
func (e Expected) Keep(stmt *gorm.Statement) {
	stmt.Clauses[expectedClause] = clause.Clause{Expression: e}
}

// ExpectedBy returns the Expected of a statement. It reports false if the statement
// compares no versions.
func ExpectedBy(stmt *gorm.Statement) (e Expected, ok bool) {
	e, ok = stmt.Clauses[expectedClause].Expression.(Expected)
	return e, ok
}

// ForgetExpected removes the Expected of a statement's earlier use. It reports whether
// there was one.
func ForgetExpected(stmt *gorm.Statement) (again bool) {
	_, again = stmt.Clauses[expectedClause]
	delete(stmt.Clauses, expectedClause)
	return again
}
