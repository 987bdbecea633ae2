package promises_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
)

// oneWay can be encoded, but not decoded.
type oneWay struct{ Err error }

// TestOnceDecodesBeforeTheCommit: an answer that nobody could ever get has no effects.
func TestOnceDecodesBeforeTheCommit(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		_, err := guard.Once(bg, e.Guard.Guard, request("a"), func(ctx context.Context, tx *gorm.DB) (oneWay, error) {
			return oneWay{errors.New("x")}, takeOne(1)(ctx, tx)
		})
		wantIs(e.t, err, guard.ErrAnswer)
		e.wantTaken(0)
		for range 2 { // the type says how it is encoded, not the value
			got, err := guard.Once(bg, e.Guard.Guard, request("b"), func(ctx context.Context, tx *gorm.DB) (any, error) {
				return []byte("x"), takeOne(1)(ctx, tx)
			})
			wantNil(e.t, err)
			if got.Value != "eA==" {
				t.Errorf("the answer is %v, want the bytes as JSON has them", got.Value)
			}
		}
		e.wantTaken(1)
	})
}

// TestCodecsAreChecked: a name that does not fit is an error, also where the database would cut
// it, and so is a function that is missing.
func TestCodecsAreChecked(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		if e.db.Name() == "mysql" {
			pool, err := e.db.DB()
			wantNil(e.t, err)
			pool.SetMaxOpenConns(1)
			wantNil(e.t, e.db.Exec("SET sql_mode = ''").Error)
		}
		marshal, unmarshal := func(any) ([]byte, error) { return nil, nil }, func([]byte, any) error { return nil }
		codecs := []guard.Codec{{Name: "a", Marshal: marshal}, {Name: "a", Unmarshal: unmarshal}}
		for _, name := range []string{"", strings.Repeat("x", 33), "\xff", "é", "a\n"} {
			codecs = append(codecs, guard.Codec{Name: name, Marshal: marshal, Unmarshal: unmarshal})
		}
		for i, codec := range codecs {
			_, err := guard.Once(bg, e.Guard.Guard, request(fmt.Sprint(i)), func(ctx context.Context, tx *gorm.DB) (receipt, error) {
				return receipt{}, takeOne(1)(ctx, tx)
			}, guard.Encode(codec))
			wantIs(e.t, err, guard.ErrAnswer)
		}
		e.wantTaken(0)
	})
}
