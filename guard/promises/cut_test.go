package promises_test

import (
	"strings"
	"testing"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// TestKeyThatIsCut: a value of the index that MySQL cuts to what the column holds names no
// row, for others may be cut to the same. Those that fit are protected as ever.
func TestKeyThatIsCut(t *testing.T) {
	type Ticket struct {
		ID   uint
		No   string `gorm:"type:varchar(8);not null;uniqueIndex"`
		Code []byte `gorm:"type:varbinary(4);uniqueIndex"`
		Seat int    `gorm:"type:tinyint;uniqueIndex"`
		Row  int    `gorm:"type:smallint unsigned;uniqueIndex"`
	}
	db := testdb.OpenMySQL(t, teststack.MySQL(t)+"&sql_mode=%27%27")
	wantNil(t, db.AutoMigrate(&Ticket{}))
	e := &env{Guard: guardtest.New(t, db), t: t, db: db}
	for name, tt := range map[string]struct {
		row, name Ticket
		cut       bool
	}{
		"text":           {Ticket{No: "12345678"}, Ticket{No: "12345678"}, false},
		"characters":     {Ticket{No: "éééééééé"}, Ticket{No: "éééééééé"}, false},
		"text, cut":      {Ticket{No: "123456789"}, Ticket{No: "123456789"}, true},
		"bytes":          {Ticket{No: "b", Code: []byte("1234")}, Ticket{Code: []byte("1234")}, false},
		"bytes, cut":     {Ticket{No: "b", Code: []byte("12345")}, Ticket{Code: []byte("12345")}, true},
		"number":         {Ticket{No: "n", Seat: 127}, Ticket{Seat: 127}, false},
		"number, cut":    {Ticket{No: "n", Seat: 128}, Ticket{Seat: 128}, true},
		"number, above":  {Ticket{No: "n", Row: 65535}, Ticket{Row: 65535}, false},
		"number, below":  {Ticket{No: "n", Row: -1}, Ticket{Row: -1}, true},
		"long text, cut": {Ticket{No: strings.Repeat("1", 300)}, Ticket{No: strings.Repeat("1", 300)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			wantNil(t, db.Exec("DELETE FROM tickets").Error)
			for i := range 2 {
				row, want := tt.row, error(nil)
				if i == 1 {
					want = guard.ErrDuplicate
				}
				if tt.cut {
					want = dbguard.ErrUnprotectable
				}
				err := e.Apply(bg, "ticket:1", guard.Insert(&row), guard.Protects(&tt.name))
				if want == nil {
					wantNil(t, err)
				} else {
					wantIs(t, err, want)
				}
			}
		})
	}
	e.wantNoEvent()
}

// TestKeyThatIsNumbered: MySQL puts a number of its own in the place of a 0, whatever the
// model says of the column, so every repeat of such an insert would be another row.
func TestKeyThatIsNumbered(t *testing.T) {
	type Entry struct {
		Shop   string `gorm:"primaryKey;size:16"`
		Serial int    `gorm:"primaryKey;autoIncrement:false"`
	}
	db := testdb.OpenMySQL(t, teststack.MySQL(t))
	wantNil(t, db.Exec("CREATE TABLE entries (shop VARCHAR(16) NOT NULL, serial INT NOT NULL AUTO_INCREMENT, PRIMARY KEY (shop, serial), KEY (serial))").Error)
	e := &env{Guard: guardtest.New(t, db), t: t, db: db}
	for range 2 {
		wantIs(t, e.Apply(bg, "shop:a", guard.Insert(&Entry{Shop: "a"})), dbguard.ErrUnprotectable)
	}
	wantNil(t, e.Apply(bg, "shop:a", guard.Insert(&Entry{Shop: "a", Serial: 7})))
	wantIs(t, e.Apply(bg, "shop:a", guard.Insert(&Entry{Shop: "a", Serial: 7})), guard.ErrDuplicate)
	if n := e.count(&Entry{}); n != 1 {
		t.Errorf("there are %d rows, want 1", n)
	}
}
