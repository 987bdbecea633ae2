package dbguard

import (
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"
)

func TestPoisons(t *testing.T) {
	for number, want := range map[uint16]bool{
		1213: true,  // deadlock: rolled back
		1206: true,  // no room for locks: rolled back
		1020: true,  // changed since the snapshot: rolled back
		1062: false, // duplicate
		1205: false, // lock wait: the statement only
		1064: false, // syntax
	} {
		err := fmt.Errorf("wrapped: %w", &mysql.MySQLError{Number: number})
		if got := poisons(err); got != want {
			t.Errorf("poisons(%d) = %v, want %v", number, got, want)
		}
	}
}
