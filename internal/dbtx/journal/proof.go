package journal

import (
	"slices"

	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
	"github.com/belaygo/belay/internal/dbtx/statement"
	"github.com/belaygo/belay/internal/rowversion"
)

// Outcome is the outcome of a transaction.
type Outcome int

const (
	Unresolved   Outcome = iota // the outcome is unknown
	Committed                   // the rows are as the transaction made them
	NotCommitted                // the rows are provably not as the transaction made them
)

func (o Outcome) String() string {
	return [...]string{Unresolved: "unresolved", Committed: "committed", NotCommitted: "not committed"}[o]
}

// A Proof is the evidence in a row for or against a commit that may have written it.
type Proof struct {
	Outcome Outcome
	// Held is set if the proof holds only if no writer without the lock has written the
	// row since.
	Held bool
}

// Proof compares the row, nil if it is not there, with the image.
// generates is set if the database never reuses a key that it has generated for a row.
func (i Image) Proof(row statement.Value, generates bool) Proof {
	if row == nil {
		return i.absent()
	}
	stamp := statement.In[rowversion.Stamp](row, i.Model.Stamp())
	if i.stamp != 0 && stamp == i.stamp {
		return Proof{Outcome: Committed}
	}
	version := statement.In[rowversion.Version](row, i.Model.Version())
	anothers := i.stamp != 0 && stamp != 0 && !i.triggers
	another := anothers && i.version != 0 && version == i.version // of two writes of one version one is committed
	switch {
	case i.Row.Kept && anothers:
		return Proof{Outcome: NotCommitted}
	case i.inserted:
		p := i.sameKey(row, generates)
		if p.Outcome == Unresolved && another {
			p = i.absent()
		}
		return p
	case i.From != 0 && version == i.From, another && !i.deleted: // or it was deleted and made again
		return Proof{Outcome: NotCommitted, Held: true}
	}
	return Proof{}
}

// sameKey decides by the primary key whether the row is the inserted one.
func (i Image) sameKey(row statement.Value, generates bool) Proof {
	if len(i.key) == 0 {
		return Proof{}
	}
	for n, v := range i.key {
		column := i.Model.Primary()[n]
		now := row(column)
		switch {
		case sqlvalue.Equal(now, i.Row.AsStored(column, v)):
		case i.guessed || !sqlvalue.IsPlainInteger(now) || !sqlvalue.IsPlainInteger(v):
			return Proof{}
		default:
			return i.absent()
		}
	}
	if i.generated && generates {
		return Proof{Outcome: Committed}
	}
	return Proof{}
}

// absent returns the proof in the absence of the row. A row whose name the database may
// store in another form, or that has another name by now, may exist without being found.
func (i Image) absent() Proof {
	if i.inserted && !i.renamed && !slices.ContainsFunc(i.Row.Values, sqlvalue.MayChange) {
		return Proof{Outcome: NotCommitted, Held: !i.Row.Kept}
	}
	return Proof{} // another may have deleted it
}
