package dbtx

import (
	"fmt"
	"strings"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/sqltext"
)

// admissible refuses SQL that would end the transaction it runs in, or change how the
// later ones of its session begin. It looks at the words of each statement, past
// comments and strings.
func admissible(d dialect.Dialect, statements []sqltext.Statement) error {
	for _, st := range statements {
		if st.Controls() || d.Name == "mysql" && st.SetsIsolation() {
			return fmt.Errorf("%w: %s", dbguard.ErrTxControl, strings.Join(st.Words()[:min(4, len(st.Words()))], " "))
		}
	}
	return nil
}
