package guard

import (
	"context"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/doctor"
)

// Diagnose reports the server that Config.Family names, and what that leaves unproven. It is a part
// of belay.Doctor.
func (g *Guard) Diagnose(context.Context) []doctor.Finding {
	family := dialect.Family(g.cfg.Family)
	if family == "" {
		return nil
	}
	return []doctor.Finding{doctor.DBFamily.Found("the database", "it is %s, told by Config.Family: %s", family, family.Doubt())}
}
