package dialect

import (
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestRefuses(t *testing.T) {
	my := func(text string) error { return &mysql.MySQLError{Number: 1062, Message: text} }
	pg := func(detail string) error { return &pgconn.PgError{Code: "23505", Detail: detail} }
	for _, tt := range []struct {
		err     error
		columns []string
		values  []string
		want    bool
	}{
		{my("Duplicate entry '7' for key 'sales.no'"), []string{"no"}, []string{"7"}, true},
		{my("Duplicate entry '7' for key 'sales.no'"), []string{"no"}, []string{"77"}, false},
		{my("Duplicate entry '77' for key 'sales.no'"), []string{"no"}, []string{"7"}, false},
		{my("Duplicate entry 'it's' for key 'no'"), []string{"no"}, []string{"it's"}, true},
		{my("Duplicate entry 'a' for key 'b' for key 'no'"), []string{"no"}, []string{"a"}, false},
		{my("Doppelter Eintrag '7' für Schlüssel 'no'"), []string{"no"}, []string{"7"}, true},
		{my("Duplicate entry '1-2' for key 'pair'"), []string{"a", "b"}, []string{"1", "2"}, true},
		{my("Duplicate entry 'a-b-c' for key 'pair'"), []string{"a", "b"}, []string{"a-b", "c"}, false},
		{my("Duplicate entry '0123456789012345678901234567890123456789012345678901234567890123' for key 'no'"), []string{"no"},
			[]string{"0123456789012345678901234567890123456789012345678901234567890123"}, false},
		{pg("Key (no)=(7) already exists."), []string{"no"}, []string{"7"}, true},
		{pg("Schlüssel »(no)=(7)« existiert bereits."), []string{"no"}, []string{"7"}, true},
		{pg("Key (no)=(7) x) already exists."), []string{"no"}, []string{"7"}, false},
		{pg("Key (no)=(77) already exists."), []string{"no"}, []string{"7"}, false},
		{pg("Key (a, b)=(1, x) already exists."), []string{"a", "b"}, []string{"1", "x"}, true},
		{pg("Key (a, b)=(x, y, z) already exists."), []string{"a", "b"}, []string{"x, y", "z"}, false},
		{pg(""), []string{"no"}, []string{"7"}, false},
	} {
		if got := (Session{}).Refuses(tt.err, tt.columns, tt.values); got != tt.want {
			t.Errorf("%v %v: %t", tt.err, tt.values, got)
		}
	}
}
