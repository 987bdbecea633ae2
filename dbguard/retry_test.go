package dbguard_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/belaygo/belay/dbguard"
)

type codedError int

func (codedError) Error() string { return "coded" }
func (c codedError) Code() int   { return int(c) }

type stateError string

func (stateError) Error() string      { return "state" }
func (s stateError) SQLState() string { return string(s) }

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
		stateError("40001"):             true,
		stateError("40P01"):             true,
		stateError("23505"):             false,
		codedError(5):                   true,
		codedError(517):                 true,
		codedError(6):                   true,
		codedError(2067):                false,
	} {
		if err != nil {
			err = fmt.Errorf("commit: %w", err)
		}
		if got := dbguard.Retryable(err); got != want {
			t.Errorf("Retryable(%v) = %t, want %t", err, got, want)
		}
	}
}
