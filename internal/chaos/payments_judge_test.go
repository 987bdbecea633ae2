package chaos_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/belaygo/belay/notify"
)

// A verdict on payments: what the rows, the provider's ledger and the replies say together.
type paidVerdict struct {
	payments, charges, paid, declined int
	undecided                         int // and listed
	twice, wrong, unlisted            int
	replies                           map[string]int
	calls                             map[fate]int
}

func (v paidVerdict) String() string {
	listed := "all listed"
	if v.unlisted > 0 {
		listed = fmt.Sprint(v.unlisted, " not listed")
	}
	return fmt.Sprintf("calls: %d payments, %d charges, %d paid, %d declined, %d undecided, %s, %d charged twice, %d astray; replies: %v; the provider was: %v",
		v.payments, v.charges, v.paid, v.declined, v.undecided, listed, v.twice, v.wrong, v.replies, v.calls)
}

// A payment is what all know of one request.
type payment struct {
	rows    []Payment
	charged []charge
	refused []charge
	open    *openCall
	replies []reply // to clients of workers
	atEnd   []reply // to the test itself, which has no events
	tries   []try   // of clients of workers

	reported    bool // by an event that the monitor has
	unpublished bool // an event got lost, or its worker
}

// paymentsOf puts together what is known of each request.
func (r run) paymentsOf() map[int64]*payment {
	all := make(map[int64]*payment)
	of := func(no int64) *payment {
		if all[no] == nil {
			all[no] = new(payment)
		}
		return all[no]
	}
	for _, row := range r.rows.Payments {
		p := of(row.No)
		p.rows = append(p.rows, row)
	}
	for _, c := range r.outside.Charges {
		if p := of(c.No); c.Declined {
			p.refused = append(p.refused, c)
		} else {
			p.charged = append(p.charged, c)
		}
	}
	for _, rec := range r.records {
		for _, got := range rec.replies {
			p := of(got.No)
			p.replies = append(p.replies, got)
		}
	}
	deaths := deathsIn(r.faults)
	for _, rec := range r.records {
		for _, t := range rec.tries {
			if t.replied == 0 {
				t.replied = deaths[t.worker] + int64(callEnd) // its COMMIT may be on its way
			}
			p := of(t.No)
			p.tries = append(p.tries, t)
		}
	}
	for _, got := range r.outside.Replies {
		p := of(got.No)
		p.atEnd = append(p.atEnd, got)
	}
	byKey := make(map[string]*payment)
	for no, p := range all {
		byKey[paymentRequest(no).Key()] = p
	}
	for i := range r.outside.Open {
		if p := byKey[r.outside.Open[i].Key]; p != nil {
			p.open = &r.outside.Open[i]
		}
	}
	for _, e := range r.events {
		if p := byKey[e.Key]; p != nil && e.Verdict == notify.VerdictUndecided {
			p.reported = true
		}
	}
	for _, rec := range r.records {
		for _, e := range rec.handed {
			if p := byKey[e.event.Key]; p != nil && e.event.Verdict == notify.VerdictUndecided && !e.stored {
				p.unpublished = true
			}
		}
	}
	return all
}

// told returns all replies.
func (p *payment) told() []reply { return slices.Concat(p.replies, p.atEnd) }

// payments checks that each payment was charged once at most, and that it is settled as the provider has
// decided, or undecided and listed.
func (e *effects) payments(r run) (v paidVerdict) {
	v.replies, v.calls = make(map[string]int), r.outside.Calls
	all := r.paymentsOf()
	for _, no := range slices.Sorted(maps.Keys(all)) {
		p := all[no]
		for _, got := range p.told() {
			word, _, _ := strings.Cut(got.Result, ":") // of an error
			v.replies[word]++
		}
		v.charges += len(p.charged)
		wrong := func(format string, args ...any) {
			v.wrong++
			e.t.Errorf("payment %d: %s: %+v", no, fmt.Sprintf(format, args...), *p)
		}
		if len(p.charged) > 1 {
			v.twice++
			e.t.Errorf("payment %d was charged %d times: %+v", no, len(p.charged), *p)
		}
		if ids := p.ids(); len(ids) > 1 {
			wrong("the provider was called with %d ids", len(ids))
		}
		e.payment(p, &v, wrong)
	}
	e.tills(r.rows)
	return v
}

// ids returns those with which the provider was called.
func (p *payment) ids() map[string]bool {
	ids := make(map[string]bool)
	for _, c := range slices.Concat(p.charged, p.refused) {
		ids[c.ID] = true
	}
	return ids
}

// payment compares the row of a payment with what the provider has done, and with what clients were told.
func (e *effects) payment(p *payment, v *paidVerdict, wrong func(format string, args ...any)) {
	if len(p.rows) == 0 {
		if len(p.charged)+len(p.refused) > 0 || p.open != nil {
			wrong("the provider was called, or it is listed, and nothing is reserved")
		}
		for _, got := range p.told() {
			if got.settled() {
				wrong("a client was told that it is settled, and nothing is reserved: %+v", got)
			}
		}
		return
	}
	v.payments++
	if len(p.rows) > 1 {
		wrong("it was reserved %d times", len(p.rows))
		return
	}
	row := p.rows[0]
	switch row.State {
	case paid:
		v.paid++
		if len(p.charged) == 0 || p.charged[0].Receipt != row.Receipt {
			wrong("it is paid, and the provider has another charge, or none")
		}
	case declined:
		v.declined++
		if len(p.charged) > 0 || len(p.refused) == 0 || p.refused[0].Receipt != row.Receipt {
			wrong("it is declined, and the provider has not declined it")
		}
	default:
		p.undecided(v, wrong)
		return
	}
	if p.open != nil {
		wrong("it is settled, and listed")
	}
	for _, got := range p.told() {
		if got.settled() && got.Answer != answerOf(row.State, row.Receipt) {
			wrong("a client was told otherwise: %+v", got)
		}
		if got.Result == undecided && !p.calledBefore(got) {
			wrong("a client was told that it is undecided: %+v", got)
		}
	}
}

// calledBefore reports whether a call that began before a client was told that its payment is undecided may
// have been settled later: a process that is paused in its call settles what it gets, as the guide says.
func (p *payment) calledBefore(told reply) bool {
	return slices.ContainsFunc(p.tries, func(t try) bool { return t.mayBeCalling(told) })
}

// undecided checks a payment that is reserved only: it has to be listed, and no repeat may settle it.
func (p *payment) undecided(v *paidVerdict, wrong func(format string, args ...any)) {
	switch {
	case p.open == nil:
		v.unlisted++
		wrong("it is neither settled nor listed")
	case !p.open.Undecided:
		wrong("a repeat would settle it, and has not")
	default:
		v.undecided++
	}
	for _, got := range p.told() {
		if got.settled() {
			wrong("a client was told that it is settled: %+v", got)
		}
	}
	if !p.reported && !p.unpublished && slices.ContainsFunc(p.replies, func(got reply) bool { return got.Result == undecided }) {
		wrong("a client was told that it is undecided, and no event reports that")
	}
}

// tills checks that reservations and settlements have changed their tills with them.
func (e *effects) tills(r rows) {
	held, made, changes := make(map[int64]int64), make(map[int64]int64), make(map[int64]int64)
	for _, p := range r.Payments {
		changes[p.Till]++
		switch p.State {
		case reservedOnly:
			held[p.Till]++
			continue
		case paid:
			made[p.Till]++
		}
		changes[p.Till]++
	}
	for _, t := range r.Tills {
		if t.Held != held[t.ID] || t.N != made[t.ID] || int64(t.Version) != changes[t.ID]+1 {
			e.t.Errorf("till %d holds %d and has %d at version %d, its payments come to %d and %d after %d changes",
				t.ID, t.Held, t.N, t.Version, held[t.ID], made[t.ID], changes[t.ID])
		}
	}
}
