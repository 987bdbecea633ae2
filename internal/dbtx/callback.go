package dbtx

import (
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
)

// before has look prepare the protected rows for a statement that gorm is about to send.
func before(db *gorm.DB, look func(*Tx) error) {
	t := txOf(db.Statement)
	if t == nil {
		return
	}
	t.journal.Mark() // also for a statement that will not be sent: inserted and written rely on it
	if db.Error != nil || db.DryRun {
		return
	}
	if table := catalogue.TableOf(db.Statement); table != "" {
		t.reader.Facts(table) // PostgreSQL reads nothing after an error
		t.rows.Resolve(table)
	}
	if err := look(t); err != nil {
		_ = db.AddError(err)
	}
}
