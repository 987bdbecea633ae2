package chaos_test

// transfers checks that each transfer and both its bookings were written together, and that
// no account was overdrawn.
func (e *effects) transfers(all []Account, transfers []Transfer) {
	made := make(map[string]bool)
	balance := make(map[int64]int64)
	for _, t := range transfers {
		made[t.No] = true
		balance[t.Payer] -= t.Amount
		balance[t.Payee] += t.Amount
	}
	sum := int64(0)
	for _, a := range all {
		sum += a.Balance
		if a.Balance < 0 || a.Balance != opening+balance[a.ID] {
			e.t.Errorf("account %d has %d, its transfers come to %d", a.ID, a.Balance, opening+balance[a.ID])
		}
		e.counter(keyOf(accounts, a.ID), int64(a.Version)-1, int64(a.Version))
	}
	if sum != opening*int64(len(all)) {
		e.t.Errorf("%d accounts have %d", len(all), sum)
	}
	e.onceOf("transfer", "transfer", made)
}

// stocks checks that each call got a row of its own making, and each receipt its number.
func (e *effects) stocks(all []Stock, receipts []Receipt) {
	made, number := make(map[string]bool), make(map[string]int64)
	for _, r := range receipts {
		made[r.No], number[r.No] = true, r.N
	}
	for _, s := range all {
		e.counter(keyOf(stocks, s.ID), s.N, int64(s.Version))
	}
	e.onceOf("receipt", "combined sale", made)

	type place struct {
		key     string
		version int64
	}
	got := make(map[place]*call)
	for _, c := range e.h.calls {
		if !c.combines || c.result != done {
			continue
		}
		p := place{c.key, c.made}
		if other := got[p]; other != nil {
			e.t.Errorf("two got the row at version %d:\n%s\n%s", c.made, c, other)
		}
		got[p] = c
		if n, ok := number[c.name]; ok && n != c.made-1 {
			e.t.Errorf("the receipt is for number %d, the row that its call got is at version %d:\n%s", n, c.made, c)
		}
	}
}

// onceOf checks that each call of a kind that was done has made its row, and none that was
// not.
func (e *effects) onceOf(what, kind string, made map[string]bool) {
	for _, c := range firsts(e.h.calls) {
		switch {
		case c.kind != kind:
		case made[c.name] && c.rolledBack():
			e.duplicates++
			e.t.Errorf("the %s of a call that was not done is there:\n%s", what, c)
		case !made[c.name] && c.result == done:
			e.missing++
			e.t.Errorf("the %s of a call that was done is not there:\n%s", what, c)
		}
	}
}
