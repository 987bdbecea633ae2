package dbtx

import (
	"errors"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx/dialect"
)

// translate makes err match gorm's error, too, if the db was opened with gorm's option
// TranslateError.
func (t *Tx) translate(err error) error {
	translator, ok := t.db.Dialector.(gorm.ErrorTranslator)
	if !t.translates || !ok || !dialect.FromServer(err) {
		return err
	}
	translated := translator.Translate(err)
	if errors.Is(err, translated) {
		return err
	}
	return translatedError{err, translated}
}

// translatedError is an error of the database with gorm's translation. It keeps the
// database's text.
type translatedError struct{ err, translated error }

func (e translatedError) Error() string   { return e.err.Error() }
func (e translatedError) Unwrap() []error { return []error{e.err, e.translated} }
