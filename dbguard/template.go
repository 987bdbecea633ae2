package dbguard

import (
	"context"
	"database/sql/driver"
	"fmt"
	"reflect"
	"strings"
	"time"

	"gorm.io/gorm/schema"
)

// A template is a model's tag: the key of a lock, made of the row's values.
type template struct {
	text   []string        // around the fields: one more than they are
	fields []*schema.Field // that identify the row
	err    error           // the tag is of no use
}

// templateOf returns the template of a model, or nil.
func (p *plugin) templateOf(s *schema.Schema) (*template, error) {
	known, ok := p.templates.Load(s.ModelType)
	if !ok {
		t, err := parseTag(s)
		if err != nil {
			t = &template{err: err}
		}
		if t != nil {
			p.tables.Store(bareName(s.Table), true)
		}
		known, _ = p.templates.LoadOrStore(s.ModelType, t)
	}
	t := known.(*template)
	if t != nil && t.err != nil {
		return nil, t.err
	}
	return t, nil
}

// tagged reports whether a model of the table is known to have a template. ""
// is any table.
func (p *plugin) tagged(table string) (found bool) {
	if table != "" {
		_, found = p.tables.Load(bareName(table))
		return found
	}
	p.tables.Range(func(any, any) bool { found = true; return false })
	return found
}

// parseTag reads a model's tag. It may stand on any field, a blank one too.
func parseTag(s *schema.Schema) (*template, error) {
	var found *template
	for _, f := range reflect.VisibleFields(s.ModelType) {
		tag, ok := f.Tag.Lookup("dbguard")
		if !ok {
			continue
		}
		t, err := parseTemplate(s, tag)
		if err == nil && found != nil {
			err = fmt.Errorf("a second tag")
		}
		if err != nil {
			return nil, fmt.Errorf("%w: tag dbguard:%q on %s.%s: %w", ErrTag, tag, s.Name, f.Name, err)
		}
		found = t
	}
	return found, nil
}

func parseTemplate(s *schema.Schema, tag string) (*template, error) {
	rest, ok := strings.CutPrefix(tag, "key=")
	if !ok {
		return nil, fmt.Errorf("it must begin with key=")
	}
	t := &template{}
	for {
		text, behind, more := strings.Cut(rest, "{")
		if strings.Contains(text, "}") {
			return nil, fmt.Errorf("a closing brace has no opening one")
		}
		t.text = append(t.text, text)
		if !more {
			break
		}
		name, after, closed := strings.Cut(behind, "}")
		if !closed || strings.Contains(name, "{") {
			return nil, fmt.Errorf("a brace is not closed")
		}
		f := s.LookUpField(name)
		switch {
		case f == nil || f.DBName == "":
			return nil, fmt.Errorf("the model has no column for %q", name)
		case !renders(f):
			return nil, fmt.Errorf("%s is a %s, whose text is not unambiguous", name, f.FieldType)
		}
		t.fields = append(t.fields, f)
		rest = after
	}
	if len(t.fields) == 0 {
		return nil, fmt.Errorf("it names no field, as in key=order:{No}")
	}
	return t, nil
}

// renders reports whether a field's value has a text that anybody would write
// into a key.
func renders(f *schema.Field) bool {
	switch f.IndirectFieldType.Kind() {
	case reflect.String, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	case reflect.Bool, reflect.Float32, reflect.Float64, reflect.Map, reflect.Func, reflect.Chan:
		return false
	}
	if f.IndirectFieldType == reflect.TypeFor[time.Time]() || f.DataType == schema.Time {
		return false
	}
	return f.IndirectFieldType.Implements(reflect.TypeFor[fmt.Stringer]()) ||
		f.IndirectFieldType.Implements(reflect.TypeFor[driver.Valuer]())
}

// render returns the key of the row with the given values; false if one of them
// is missing or NULL.
func (t *template) render(value func(column string) any) (key string, ok bool) {
	var b strings.Builder
	b.WriteString(t.text[0])
	for i, f := range t.fields {
		v := indirect(value(f.DBName))
		if _, stringer := v.(fmt.Stringer); !stringer {
			if valuer, ok := v.(driver.Valuer); ok {
				v, _ = valuer.Value()
			}
		}
		if v == nil || reflect.ValueOf(v).Kind() == reflect.Pointer {
			return "", false
		}
		if text, ok := v.([]byte); ok {
			v = string(text)
		}
		fmt.Fprint(&b, v)
		b.WriteString(t.text[i+1])
	}
	return b.String(), true
}

// goesWith reports whether an index has all fields of the template, or only such.
func (t *template) goesWith(columns []string) bool {
	names := make([]string, len(t.fields))
	for i, f := range t.fields {
		names[i] = f.DBName
	}
	return containsAll(columns, names) || len(columns) > 0 && containsAll(names, columns)
}

// fieldOf returns a field's value in a model.
func fieldOf(ctx context.Context, f *schema.Field, model reflect.Value) any {
	v, _ := f.ValueOf(ctx, model)
	return v
}
