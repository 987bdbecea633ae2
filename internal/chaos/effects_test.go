package chaos_test

import "strings"

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
	e.once("transfer", accounts, made)
}

// once checks that each call on keys of a class that was done has made its row, and none
// that was not.
func (e *effects) once(what string, keys class, made map[string]bool) {
	for _, c := range once(e.h.calls) {
		switch {
		case !strings.HasPrefix(c.key, string(keys)+":"):
		case made[c.name] && c.rolledBack():
			e.duplicates++
			e.t.Errorf("the %s of a call that was not done is there:\n%s", what, c)
		case !made[c.name] && c.result == done:
			e.missing++
			e.t.Errorf("the %s of a call that was done is not there:\n%s", what, c)
		}
	}
}
