package guard

import (
	"context"
	"errors"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/claim"
	"github.com/belaygo/belay/internal/dbtx"
)

// inserts returns the rows that m is about to insert: that of its request, made anew for
// each attempt, and those of its Change.
func (m *member) inserts() (rows []dbtx.NewRow) {
	if m.serves != nil {
		m.claim, m.foreign = m.serves.row(), false
		rows = append(rows, dbtx.NewRow{Model: m.claim, Claim: true})
	}
	for _, s := range m.steps {
		if row := s.inserts(); row != nil {
			rows = append(rows, dbtx.NewRow{Model: row})
		}
	}
	return rows
}

// foreign reports whether all requests that a conflict is about were served under other keys.
func (k *crew) foreign(ctx context.Context) bool {
	met := k.those(k.run.series.tx.Met())
	all := len(met) > 0
	for _, m := range met {
		m.foreign = m.serves != nil && m.serves.foreign(ctx)
		all = all && m.foreign
	}
	return all
}

// served returns the error of a repeat if m's request is known. Who knows that needs no
// lock: if the crew's is gone, the crew finds out.
func (m *member) served() error {
	if m.serves == nil || ended(m.ctx) {
		return nil
	}
	err := m.serves.served(m.traced)
	if errors.Is(err, ErrDuplicate) || errors.Is(err, ErrMismatch) {
		return err
	}
	return nil // whatever else it is, m meets it alone
}

// claimFor inserts the requests of those whose turns are over. Those whose changes have
// failed take theirs back: they have only made sure that nobody else serves them.
func claimFor(t *dbtx.Tx, members []*member) error {
	var made, failed []*claim.Claim
	for _, m := range members {
		switch {
		case m.serves == nil || !m.in:
		case m.own != nil:
			failed = append(failed, m.claim)
		default:
			made = append(made, m.claim)
		}
	}
	if len(failed) > 0 {
		if err := claimInVain(t, failed, len(made) > 0); err != nil {
			return err
		}
	}
	return claimAll(t, made)
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
