package simdb

import "strings"

// A definition is what CREATE TABLE makes.
type definition struct {
	defined []column
	keys    []key
}

type key struct {
	name    string
	columns []string
	primary bool
}

func (p *parser) createTable() *statement {
	p.is("IF", "NOT", "EXISTS")
	st := &statement{kind: "CREATE TABLE", table: p.ident()}
	p.list(func() {
		switch {
		case p.is("PRIMARY", "KEY"):
			st.keys = append([]key{{name: "PRIMARY", columns: p.names(), primary: true}}, st.keys...)
		case p.is("UNIQUE", "KEY"), p.is("UNIQUE", "INDEX"), p.is("CONSTRAINT"):
			k := key{name: p.ident()}
			p.is("UNIQUE")
			k.columns = p.names()
			st.keys = append(st.keys, k)
		default:
			p.columnOf(st)
		}
	})
	for p.at < len(p.tokens) { // ENGINE, CHARSET
		p.next()
	}
	return st
}

func (p *parser) names() (names []string) {
	p.list(func() { names = append(names, p.ident()) })
	return names
}

func (p *parser) columnOf(st *statement) {
	c := column{name: p.ident()}
	kind := p.next().text
	switch {
	case strings.HasSuffix(kind, "SERIAL"):
		c.kind, c.auto, c.notNull = kindInt, true, true
	case strings.Contains(kind, "INT"):
		c.kind = kindInt
	case strings.HasPrefix(kind, "BOOL"):
		c.kind = kindBool
	case strings.HasPrefix(kind, "DATE"), strings.HasPrefix(kind, "TIME"):
		c.kind = kindTime
	case strings.HasPrefix(kind, "DOUBLE"), strings.HasPrefix(kind, "DECIMAL"), strings.HasPrefix(kind, "NUMERIC"), kind == "FLOAT":
		c.kind = kindFloat
	default:
		c.kind = kindText
	}
	if p.is("(") {
		p.at--
		p.list(func() { p.next() })
	}
	for {
		switch {
		case p.is("NOT", "NULL"):
			c.notNull = true
		case p.is("DEFAULT"):
			c.byDefault = p.expr()
		case p.is("AUTO_INCREMENT"), p.is("GENERATED", "BY", "DEFAULT", "AS", "IDENTITY"):
			c.auto, c.notNull = true, true
		case p.is("PRIMARY", "KEY"):
			st.keys = append([]key{{name: "PRIMARY", columns: []string{c.name}, primary: true}}, st.keys...)
		case p.is("UNIQUE"):
			st.keys = append(st.keys, key{columns: []string{c.name}})
		case p.is("CHARACTER", "SET"), p.is("COLLATE"):
			p.next()
		case p.is("UNSIGNED"), p.is("NULL"), p.is("PRECISION"), p.is("VARYING"):
		default:
			st.defined = append(st.defined, c)
			return
		}
	}
}

func (p *parser) createIndex() *statement {
	p.is("IF", "NOT", "EXISTS")
	k := key{name: p.ident()}
	p.want("ON")
	st := &statement{kind: "CREATE INDEX", table: p.ident()}
	k.columns = p.names()
	st.keys = []key{k}
	return st
}
