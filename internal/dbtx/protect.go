package dbtx

import (
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
)

// Under has another key that is held protect the rows that are named from now on, until
// restore is called. A row that is named twice remains under its first key.
func (t *Tx) Under(key string) (restore func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, keyless := t.key, t.keyless
	t.key, t.keyless = key, false
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.key, t.keyless = before, keyless
	}
}

// keyFor returns the key that protects a row which is named now.
func (t *Tx) keyFor(r *protected.Row) string {
	if key, ok := t.rows.KeyOf(r); ok {
		return key
	}
	return t.underKey()
}

// underKey returns the key that protects new rows which are named now.
func (t *Tx) underKey() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.key
}

func (t *Tx) isKeyless() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.keyless
}

// Protect names a row that the held key protects. model is a struct, or a
// pointer to one, whose non-zero fields are the columns of one unique index or
// of the primary key. Only conflicts on protected rows are judged. It returns
// an error that matches ErrUnprotectable if there is no such index.
func (t *Tx) Protect(model any) error {
	m, err := protected.Parse(t.ctx, t.db, model)
	if err != nil {
		return err
	}
	indexes, err := t.reader.Indexes(m.Table())
	if err != nil {
		return err
	}
	set := m.Set()
	for _, columns := range catalogue.WithPrimary(catalogue.UniqueKeys(indexes), m.Primary()) {
		if catalogue.SameColumns(set, columns) {
			return t.protect(m.Row(set, protected.Row{Named: true}))
		}
	}
	return fmt.Errorf("%w: no unique index of %s has just the columns %s%s: a column that is 0 counts as not set",
		dbguard.ErrUnprotectable, m.Table(), catalogue.Listing(set), catalogue.Unusable(indexes))
}

// ProtectPrimary names the row with model's primary key, whatever else is set in
// model. It returns an error that matches ErrUnprotectable if a part of the key
// is zero.
func (t *Tx) ProtectPrimary(model any) error {
	m, err := protected.Parse(t.ctx, t.db, model)
	if err != nil {
		return err
	}
	key, set := m.Primary(), m.Set()
	for _, column := range key {
		if !slices.Contains(set, column) {
			return fmt.Errorf("%w: %s.%s is not set", dbguard.ErrUnprotectable, m.Table(), column)
		}
	}
	if len(key) == 0 {
		return fmt.Errorf("%w: %s has no primary key", dbguard.ErrUnprotectable, m.Table())
	}
	return t.protect(m.Row(key, protected.Row{}))
}

// ProtectNew names the row that inserting model makes, by the one unique index
// whose columns are set in model. An auto-increment key is not one. It does
// nothing if Protect has named a row of the table under the same key, or if the row is
// protected already. It returns an error that matches ErrUnprotectable, with the choices,
// unless exactly one index fits. Hooks of the model may still alter its values.
func (t *Tx) ProtectNew(model any) error {
	m, err := protected.Parse(t.ctx, t.db, model)
	if err != nil {
		return err
	}
	if t.rows.HasNamed(t.underKey(), m.Table()) || len(t.rows.Among(m.Statement())) > 0 {
		return nil
	}
	r, err := t.newRow(m)
	if err != nil {
		return err
	}
	return t.protect(r)
}

// newRow returns the row that inserting a model makes.
func (t *Tx) newRow(m protected.Model) (*protected.Row, error) {
	indexes, err := t.reader.Indexes(m.Table())
	if err != nil {
		return nil, err
	}
	fit := m.Fitting(catalogue.WithPrimary(catalogue.UniqueKeys(indexes), m.Primary()))
	switch len(fit) {
	case 1:
		return m.Row(fit[0], protected.Row{Model: m.Pointer()}), nil
	case 0:
		return nil, fmt.Errorf("%w: no unique index of %s has all its columns set%s", dbguard.ErrUnprotectable, m.Table(), catalogue.Unusable(indexes))
	}
	choices := make([]string, len(fit))
	for i, columns := range fit {
		choices[i] = catalogue.Listing(columns)
	}
	return nil, fmt.Errorf("%w: several unique indexes of %s are set, name one with Protects: %s",
		dbguard.ErrUnprotectable, m.Table(), strings.Join(choices, " or "))
}

// protect adds a row, once. Where there is no snapshot that could be looked at
// after a conflict, it looks at the row now.
func (t *Tx) protect(r *protected.Row) error {
	if t.rows.Has(r) {
		return nil
	}
	if !r.Followed {
		if r.Key = t.keyFor(r); r.Key == "" && t.isKeyless() {
			return nil
		}
	}
	if err := t.ready(r); err != nil {
		return err
	}
	t.add(r)
	return nil
}

// add adds a row that is ready. Of a claim the server excludes all others, whatever their keys.
func (t *Tx) add(r *protected.Row) {
	if r.Kept {
		t.rows.Add(r)
		return
	}
	if other, ok := t.database.keys.Another(r, r.Key); ok {
		t.options.Logger.Warn("rows of a table are protected by several keys: nothing excludes those who write one under another key",
			"table", r.Table, "key", r.Key, "other", other)
	}
	t.rows.Add(r)
}

// ready makes sure that a row with new values can be identified, and found again. It
// reads the indexes now, as PostgreSQL reads nothing after an error.
func (t *Tx) ready(r *protected.Row) error {
	if err := t.identify(r); err != nil {
		return err
	}
	if err := t.judge.LookBefore(r); err != nil {
		t.Learn(err)
		return err
	}
	return nil
}

// identify makes sure that a row can be identified.
func (t *Tx) identify(r *protected.Row) error {
	if !t.reader.Facts(r.Table).Transactional {
		return fmt.Errorf("%w: the engine of table %s has no transactions", dbguard.ErrUnprotectable, r.Table)
	}
	if _, err := t.reader.Indexes(r.Table); err != nil {
		return err
	}
	for i, v := range r.Values {
		if sqlvalue.IsNull(v) {
			return fmt.Errorf("%w: %s.%s is NULL, as it may be in any number of rows", dbguard.ErrUnprotectable, r.Table, r.Fields[i].DBName)
		}
	}
	return t.reader.RoundTimes(r)
}

// refresh looks again at the models that a statement is about to insert: hooks
// may have altered them since ProtectNew. Then it does what follow does.
func (t *Tx) refresh(stmt *gorm.Statement) error {
	if stmt.Schema == nil {
		return nil
	}
	for _, r := range t.rows.Refresh(t.ctx, stmt) {
		if err := t.ready(r); err != nil {
			return err
		}
	}
	return t.follow(stmt)
}

// follow protects the rows that a statement's model names in the statement's table, too,
// if they can be identified there. The table may have been chosen at run time.
func (t *Tx) follow(stmt *gorm.Statement) error {
	table := catalogue.TableOf(stmt)
	if stmt.Schema == nil || table == "" || strings.EqualFold(table, stmt.Schema.Table) {
		return nil
	}
	for _, r := range t.rows.All() {
		if r.Followed || r.Schema.ModelType != stmt.Schema.ModelType || t.reader.SameTable(r.Table, table) {
			continue
		}
		there := &protected.Row{Key: r.Key, Table: table, Schema: r.Schema, Fields: r.Fields, Values: r.Values, Followed: true}
		names, err := t.reader.Identifies(there)
		if err == nil && names {
			err = t.protect(there)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
