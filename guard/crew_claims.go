package guard

import (
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/claim"
	"github.com/belaygo/belay/internal/dbtx"
)

// inserts returns the rows that m is about to insert: that of its request, made anew for
// each attempt, and those of its Change.
func (m *member) inserts() (rows []dbtx.NewRow) {
	if m.serves != nil {
		rows = append(rows, dbtx.NewRow{Model: m.serves.renew(), Claim: true})
	}
	for _, s := range m.steps {
		if row := s.inserts(); row != nil {
			rows = append(rows, dbtx.NewRow{Model: row})
		}
	}
	return rows
}

// claimFor inserts the requests of those whose turns are over. Those whose changes have
// failed take theirs back: they have only made sure that nobody else serves them. It returns the
// claims that stay.
func claimFor(t *dbtx.Tx, members []*member) (made []*claim.Claim, err error) {
	var failed []*claim.Claim
	for _, m := range members {
		switch {
		case m.serves == nil || !m.part.in:
		case m.part.own != nil:
			failed = append(failed, m.serves.claim)
		default:
			made = append(made, m.serves.claim)
		}
	}
	if len(failed) > 0 {
		if err := claimInVain(t, failed, len(made) > 0); err != nil {
			return nil, err
		}
	}
	return made, claimAll(t, made)
}

// keep implements claims.
func (k *crew) keep(c *canary, t *dbtx.Tx) {
	for _, made := range k.claimed {
		c.keep(t, made)
	}
}

// claimInVain inserts claims and takes them back, if the transaction goes on.
func claimInVain(t *dbtx.Tx, claims []*claim.Claim, goesOn bool) error {
	if !goesOn {
		return claimAll(t, claims)
	}
	tx := t.DB().Session(&gorm.Session{NewDB: true})
	if err := tx.SavePoint(beforeClaims).Error; err != nil {
		return err
	}
	if err := claimAll(t, claims); err != nil {
		return err
	}
	return tx.RollbackTo(beforeClaims).Error
}

const beforeClaims = "belay_claims"

func claimAll(t *dbtx.Tx, claims []*claim.Claim) error {
	if len(claims) == 0 {
		return nil
	}
	return claim.Explain(t.ClaimAll(claims))
}
