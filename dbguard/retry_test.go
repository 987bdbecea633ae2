package dbguard_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/belaygo/belay/dbguard"
)

type coded int

func (coded) Error() string { return "coded" }
func (c coded) Code() int   { return int(c) }

type sqlState string

func (sqlState) Error() string      { return "state" }
func (s sqlState) SQLState() string { return string(s) }

func TestRetryable(t *testing.T) {
	for err, want := range map[error]bool{
		nil:                             false,
		errors.New("deadlock"):          false,
		context.Canceled:                false,
		dbguard.ErrCommitUnknown:        false,
		&mysql.MySQLError{Number: 1213}: true,
		&mysql.MySQLError{Number: 1020}: true,
		&mysql.MySQLError{Number: 1062}: false,
		&mysql.MySQLError{Number: 1205}: false,
		sqlState("40001"):               true,
		sqlState("40P01"):               true,
		sqlState("23505"):               false,
		coded(5):                        true,
		coded(517):                      true,
		coded(6):                        true,
		coded(2067):                     false,
	} {
		if err != nil {
			err = fmt.Errorf("commit: %w", err)
		}
		if got := dbguard.Retryable(err); got != want {
			t.Errorf("Retryable(%v) = %t, want %t", err, got, want)
		}
	}
}
