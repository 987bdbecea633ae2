package catalogue

import (
	"regexp"
	"strconv"
)

// integers are the largest values of columns that keep less than 64 bits, by the column's
// kind on MySQL and PostgreSQL.
var integers = map[string]int64{
	"tinyint": 1<<7 - 1, "smallint": 1<<15 - 1, "mediumint": 1<<23 - 1, "int": 1<<31 - 1, "integer": 1<<31 - 1,
}

// floats are the largest integers up to which a column keeps each as it is, signed or not.
var floats = map[string]int64{"float": 1 << 24, "real": 1 << 24, "double": 1 << 53, "double precision": 1 << 53}

// SmallestLimit is the smallest that Limit returns.
const SmallestLimit = 1<<7 - 1

// Limit returns the largest integer up to which the column keeps each as it is. It reports
// false if the column keeps all of 64 bits, as every column of SQLite does.
func (c Column) Limit(dialect string) (n int64, ok bool) {
	if dialect == "sqlite" {
		return 0, false
	}
	if n, ok = floats[c.Kind]; ok {
		return n, true
	}
	n, ok = integers[c.Kind]
	if ok && c.Unsigned {
		n = 2*n + 1
	}
	return n, ok
}

// Integers reports whether the column keeps integers. SQLite goes by a word in the type, and a
// domain of PostgreSQL has a name of its own. Both have other types with that word, such as POINT and interval.
func (c Column) Integers(dialect string) bool {
	others := dialect != "sqlite" && c.hasWord("POINT", "INTERVAL", "RANGE", "VECTOR", "[]")
	return c.hasWord("INT") && !others
}

// integer is an integer in SQL, as the catalogues spell a default.
var integer = regexp.MustCompile(`^\(*'?(-?[0-9]+)'?(::[a-z ]+)?\)*$`)

// DefaultInteger returns the default of the column. It reports false if that is no integer.
func (c Column) DefaultInteger() (n int64, ok bool) {
	found := integer.FindStringSubmatch(c.Default)
	if found == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(found[1], 10, 64)
	return n, err == nil
}
