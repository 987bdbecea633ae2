package dbtx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
	"github.com/belaygo/belay/internal/dbtx/statement"
)

// Under makes key, which is held, protect the rows named until restore is called. With an
// empty key, none protects them. A row that is named twice remains under its first key.
func (t *Tx) Under(key string) (restore func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, keyless := t.key, t.keyless
	t.key, t.keyless = key, key == ""
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
// pointer to one, whose non-zero fields are the columns of one unique index, as the
// database has it. Only conflicts on protected rows are judged. It returns
// an error that matches ErrUnprotectable if there is no such index, and nil if there is no such
// table.
func (t *Tx) Protect(model any) error {
	m, err := t.parse(model)
	if err != nil {
		return err
	}
	indexes, err := t.reader.Indexes(m.Table())
	if err != nil {
		return err
	}
	set := m.Set()
	if catalogue.IsUnique(indexes, set) {
		return t.protect(m.Row(set, protected.Row{Named: true}))
	}
	if isThere, err := t.isThere(m.Table(), indexes); err != nil || !isThere {
		return err
	}
	return fmt.Errorf("%w: no unique index of %s has just the columns %s%s: a column that is 0 counts as not set",
		conflict.ErrUnprotectable, m.Table(), catalogue.Listing(set), catalogue.Unusable(indexes))
}

// ProtectPrimary names the row with model's primary key, and ignores its other fields.
// It returns an error that matches ErrUnprotectable if a part of the key is zero, or if
// the table has no unique index on just these columns.
func (t *Tx) ProtectPrimary(model any) error {
	m, err := t.parse(model)
	if err != nil {
		return err
	}
	key, set := m.Primary(), m.Set()
	for _, column := range key {
		if !slices.Contains(set, column) {
			return fmt.Errorf("%w: %s.%s is not set", conflict.ErrUnprotectable, m.Table(), column)
		}
	}
	if len(key) == 0 {
		return fmt.Errorf("%w: %s has no primary key", conflict.ErrUnprotectable, m.Table())
	}
	return t.protectPrimary(m, protected.Row{})
}

// protectPrimary protects the row with a model's primary key.
func (t *Tx) protectPrimary(m protected.Named, r protected.Row) error {
	if err := t.checkPrimary(m, m.Table()); err != nil {
		return err
	}
	return t.protect(m.Row(m.Primary(), r))
}

// checkPrimary returns an error that matches ErrUnprotectable unless a table keeps rows
// apart that have other primary keys by the model: that may declare a key which the table
// does not have. It returns nil if there is no such table.
func (t *Tx) checkPrimary(m protected.Named, table string) error {
	indexes, err := t.reader.Indexes(table)
	if err != nil || catalogue.IsUnique(indexes, m.Primary()) {
		return err
	}
	if isThere, err := t.isThere(table, indexes); err != nil || !isThere {
		return err
	}
	return fmt.Errorf("%w: %s has no unique index on just the model's primary key %s%s",
		conflict.ErrUnprotectable, table, catalogue.Listing(m.Primary()), catalogue.Unusable(indexes))
}

// isThere reports whether there is a table with these indexes. Without a table, every statement
// fails with the database's own error.
func (t *Tx) isThere(table string, indexes []catalogue.Index) (bool, error) {
	if len(indexes) > 0 {
		return true, nil
	}
	return t.reader.Exists(table)
}

// ProtectNew names the row that inserting model makes, by the one unique index
// whose columns are set in model. An auto-increment key is not one. It does
// nothing if Protect has named a row of the table under the same key, or if the row is
// protected already. It returns an error that matches ErrUnprotectable, with the choices,
// unless exactly one index fits, and if model has a primary key that is not unique in the
// table. Hooks of the model may still alter its values.
func (t *Tx) ProtectNew(model any) error {
	m, err := t.parse(model)
	if err != nil {
		return err
	}
	if t.rows.HasNamed(t.underKey(), m.Table()) || t.rows.Any() && len(t.rows.Among(m.Write())) > 0 {
		return nil
	}
	r, err := t.newRow(m)
	if err != nil {
		return err
	}
	return t.protect(r)
}

// newRow returns the row that inserting a model makes.
func (t *Tx) newRow(m protected.Named) (*protected.Row, error) {
	indexes, err := t.reader.Indexes(m.Table())
	if err != nil {
		return nil, err
	}
	if m.HasKey() {
		if err := t.checkPrimary(m, m.Table()); err != nil {
			return nil, err
		}
	}
	fit := m.Fitting(catalogue.UniqueKeys(indexes))
	switch len(fit) {
	case 1:
		return m.Row(fit[0], protected.Row{Struct: m.Pointer()}), nil
	case 0:
		return nil, t.noIndex(m, indexes)
	}
	choices := make([]string, len(fit))
	for i, columns := range fit {
		choices[i] = catalogue.Listing(columns)
	}
	return nil, fmt.Errorf("%w: several unique indexes of %s are set, name one with Protects: %s",
		conflict.ErrUnprotectable, m.Table(), strings.Join(choices, " or "))
}

// noIndex is the error of an insert that no unique index can refuse.
func (t *Tx) noIndex(m protected.Named, indexes []catalogue.Index) error {
	isThere, err := t.isThere(m.Table(), indexes)
	switch {
	case err != nil:
		return err
	case !isThere:
		return fmt.Errorf("%w: there is no table %s: create it", conflict.ErrUnprotectable, m.Table())
	}
	return fmt.Errorf("%w: no unique index of %s has all its columns set%s: add one, such as gorm:\"uniqueIndex\", or set its columns",
		conflict.ErrUnprotectable, m.Table(), catalogue.Unusable(indexes))
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

// add adds a row that is ready. The server itself excludes other transactions from a claim,
// whatever their keys.
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
// reads the indexes now, because PostgreSQL reads nothing after an error.
func (t *Tx) ready(r *protected.Row) error {
	if err := t.identify(r); err != nil {
		return err
	}
	if err := t.judge.LookBefore(r); err != nil {
		t.learn(err)
		return err
	}
	return nil
}

// identify makes sure that a row can be identified.
func (t *Tx) identify(r *protected.Row) error {
	if !t.reader.Facts(r.Table).Transactional {
		return fmt.Errorf("%w: the engine of table %s has no transactions", conflict.ErrUnprotectable, r.Table)
	}
	if _, err := t.reader.Indexes(r.Table); err != nil {
		return err
	}
	for i, v := range r.Values {
		if sqlvalue.IsNull(v) {
			return fmt.Errorf("%w: %s.%s is NULL, as it may be in any number of rows", conflict.ErrUnprotectable, r.Table, r.Columns[i])
		}
	}
	if err := t.reader.Fits(r); err != nil {
		return err
	}
	return t.reader.RoundTimes(r)
}

// refresh checks again the models that a statement is about to insert, because hooks
// may have altered them since ProtectNew. It then calls follow.
func (t *Tx) refresh(w *statement.Write) error {
	for _, r := range t.rows.Refresh(w) {
		if err := t.ready(r); err != nil {
			return err
		}
	}
	return t.follow(w)
}

// follow protects the rows that a statement's model names in the statement's table, too,
// if they can be identified there. The table may have been chosen at run time.
func (t *Tx) follow(w *statement.Write) error {
	table := w.Table
	if w.Model == nil || table == "" || strings.EqualFold(table, w.Model.Table()) {
		return nil
	}
	for _, r := range t.rows.All() {
		if r.Followed || !w.Model.Declares(r.Model) || t.reader.SameTable(r.Table, table) {
			continue
		}
		there := &protected.Row{Key: r.Key, Table: table, Model: r.Model, Columns: r.Columns, Values: r.Values, Followed: true}
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
