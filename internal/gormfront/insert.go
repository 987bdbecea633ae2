package gormfront

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// largestBatch makes gorm insert all rows in one statement, whatever the program sets
// for its statements.
const largestBatch = 1 << 20

// Insert inserts a model or a slice of them, with prefix before the INSERT and without hooks.
func (f *Front) Insert(models any, before string) error {
	return f.db.Session(&gorm.Session{SkipHooks: true, CreateBatchSize: largestBatch}).Clauses(prefix(before)).Create(models).Error
}

// prefix goes before an INSERT.
type prefix string

// ModifyStatement implements gorm.StatementModifier.
func (p prefix) ModifyStatement(stmt *gorm.Statement) {
	if p == "" {
		return
	}
	c := stmt.Clauses["INSERT"]
	c.BeforeExpression = clause.Expr{SQL: string(p)}
	stmt.Clauses["INSERT"] = c
}

// Build implements clause.Expression.
func (prefix) Build(clause.Builder) {}
