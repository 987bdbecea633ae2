package chaos_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/notify"
)

// sound is a small run in which all is as it should be. A call returned done of each kind
// of row, and some of those that should not be there.
func sound() run {
	r := newRecord("a")
	at := int64(0)
	also := map[string][]string{"account:1": {"account:2"}}
	kinds := map[string]string{"account:1": "transfer", "stock:1": "combined sale"}
	made := map[string]int64{"a.0.12": 2, "a.0.13": 3}
	does := func(do, key, result string, events ...*notify.Event) {
		at += 10
		r.add(line{T: at, At: called, Do: do, Key: key, Also: also[key], Kind: kinds[key], Combine: key == "stock:1"})
		r.add(line{T: at + 1, At: begun, Do: do, Key: key})
		r.add(line{T: at + 2, At: wrote, Do: do})
		named := ""
		for _, e := range events {
			r.add(line{T: at + 3, At: event, Do: do, Key: key, Event: e})
			r.add(line{T: at + 4, At: stored, Do: do, ID: e.ID})
			named = e.ID
		}
		r.add(line{T: at + 5, At: returned, Do: do, Key: key, Result: result, ID: named, Version: made[do]})
	}
	overlap := notify.Event{
		ID: "e1", Service: "chaos", Instance: "a", Verdict: notify.VerdictOverlap, Outcome: notify.OutcomeRefused,
		Key: "order:1", CaughtAt: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC), Count: 1,
	}
	does("a.0.0", "order:1", done)
	does("a.0.1", "order:1", duplicate)
	does("a.0.2", "order:1", "intercepted", &overlap)
	does("a.0.3", "claim:1", done)
	does("a.0.4", "counter:1", done)
	does("a.0.5", "counter:1", unknown)
	does("a.0.6", "stamped:1", done)
	does("a.0.7", "pair:1", done)
	does("a.0.8", "item:1", done)
	does("a.0.9", "item:1", failed+"sold out")
	does("a.0.10", "account:1", done)
	does("a.0.11", "account:1", poor)
	does("a.0.12", "stock:1", done)
	does("a.0.13", "stock:1", done)
	does("a.0.14", "stock:1", "busy")
	return run{
		records: []*record{r}, events: []notify.Event{overlap},
		rows: rows{
			Orders: []Order{{ID: 1, No: "1", By: "a.0.0"}}, Claims: []Claim{{ID: 1, No: "1", By: "a.0.3"}},
			Counters: []Counter{{ID: 1, N: 1, Version: 2}}, Stamped: []Stamped{{ID: 1, N: 1, Version: 2}},
			Halves: []Half{{ID: 2, N: 1, Version: 2}, {ID: 3, N: 1, Version: 2}},
			Items:  []Item{{ID: 1, N: 1, Version: 2}}, Sales: []Sale{{ID: 1, No: "a.0.8", Item: 1, N: 1}},
			Accounts:  []Account{{ID: 1, Balance: opening - 7, Version: 2}, {ID: 2, Balance: opening + 7, Version: 2}},
			Transfers: []Transfer{{ID: 1, No: "a.0.10", Payer: 1, Payee: 2, Amount: 7}},
			Stocks:    []Stock{{ID: 1, N: 2, Version: 3}},
			Receipts:  []Receipt{{ID: 1, No: "a.0.12", Stock: 1, N: 1}, {ID: 2, No: "a.0.13", Stock: 1, N: 2}},
		},
	}
}

// TestForged checks that rows and events are missed, and found where they should not be.
func TestForged(t *testing.T) {
	other := notify.Event{ID: "e2", Service: "chaos", Instance: "a", Verdict: notify.VerdictLost, Outcome: notify.OutcomeCommitted, Key: "k", Count: 1}
	const at = int64(time.Minute) // when an event is handed over again
	for _, tt := range []struct {
		name  string
		forge func(*run)
		says  string // or nothing
	}{
		{"nothing", func(*run) {}, ""},
		{"the unknown update took effect", func(r *run) { r.rows.Counters[0] = Counter{ID: 1, N: 2, Version: 3} }, ""},
		{"an order twice", func(r *run) { r.rows.Orders = append(r.rows.Orders, Order{ID: 2, No: "1", By: "a.0.0"}) }, "is there twice"},
		{"an order lost", func(r *run) { r.rows.Orders = nil }, "an insert that was done is not there"},
		{"a claim lost", func(r *run) { r.rows.Claims = nil }, "an insert that was done is not there"},
		{"an order of one that was refused", func(r *run) { r.rows.Orders[0].By = "a.0.2" }, "an insert that was not done is there"},
		{"a repeat of nothing", func(r *run) { r.rows.Orders = nil }, "a repeat of an insert of which there is no row"},
		{"an update lost", func(r *run) { r.rows.Counters[0] = Counter{ID: 1, N: 0, Version: 1} }, "counter:1 is 0 after 1"},
		{"an update too many", func(r *run) { r.rows.Counters[0] = Counter{ID: 1, N: 3, Version: 4} }, "counter:1 is 3 after 1"},
		{"a stamped update lost", func(r *run) { r.rows.Stamped[0] = Stamped{ID: 1, N: 0, Version: 1} }, "stamped:1 is 0 after 1"},
		{"a version raised alone", func(r *run) { r.rows.Counters[0].Version = 3 }, "counter:1 is 1 at version 3"},
		{"half a pair", func(r *run) { r.rows.Halves[1] = Half{ID: 3, N: 0, Version: 1} }, "one write of two: half"},
		{"a sale lost", func(r *run) { r.rows.Sales = nil }, "the sale of a call that was done is not there"},
		{"a sale uncounted", func(r *run) { r.rows.Items[0] = Item{ID: 1, N: 0, Version: 1} }, "one write of two: item 1 is 0 after 1"},
		{"a sale of one that failed", func(r *run) { r.rows.Sales[0].No = "a.0.9" }, "the sale of a call that was not done is there"},
		{"a sale of another item", func(r *run) { r.rows.Sales[0].Item = 2 }, "the sale is one of item 2"},
		{"two first sales", func(r *run) { r.rows.Sales = append(r.rows.Sales, Sale{ID: 2, No: "x", Item: 1, N: 1}) }, "two sales are the 1."},
		{"a transfer lost", func(r *run) { r.rows.Transfers = nil }, "the transfer of a call that was done is not there"},
		{"a transfer of one that was refused", func(r *run) { r.rows.Transfers[0].No = "a.0.11" }, "the transfer of a call that was not done is there"},
		{"one booking of two", func(r *run) { r.rows.Accounts[1] = Account{ID: 2, Balance: opening, Version: 1} }, "2 accounts have 193"},
		{"a booking lost", func(r *run) { r.rows.Accounts[1].Version = 1 }, "account:2 is 0 after 1"},
		{"an account overdrawn", func(r *run) {
			r.rows.Transfers[0].Amount = opening + 1
			r.rows.Accounts[0].Balance, r.rows.Accounts[1].Balance = -1, 2*opening+1
		}, "account 1 has -1"},
		{"a receipt lost", func(r *run) { r.rows.Receipts = r.rows.Receipts[:1] }, "the receipt of a call that was done is not there"},
		{"a receipt of one that was refused", func(r *run) { r.rows.Receipts[1].No = "a.0.14" }, "the receipt of a call that was not done is there"},
		{"a receipt with the number of another", func(r *run) { r.rows.Receipts[1].N = 1 }, "the receipt is for number 1"},
		{"two with one result", func(r *run) { r.records[0].byDo["a.0.13"].made = 2 }, "two got the row at version 2"},
		{"a change of a crew lost", func(r *run) { r.rows.Stocks[0] = Stock{ID: 1, N: 1, Version: 2} }, "stock:1 is 1 after 2"},
		{"a savepoint kept", func(r *run) { r.rows.Spoils = []Spoil{{ID: 1}} }, "a savepoint that was rolled back is there"},
		{"an event lost", func(r *run) { r.events = nil }, "the monitor lacks an event that was stored"},
		{"an event lost that an error names", func(r *run) { r.events = nil }, "an error names event e1"},
		{"an event that could not be published", refused(), "an event got lost though the database or the broker was there"},
		{"the same, and the database was cut", refused(fault{cut, "7 at 0", 34, 35}), "an event got lost though the database or the broker was there"},
		{"the same, and the broker was away, too", refused(fault{cut, "7 at 0", 34, 35}, fault{linkAway, "", 10, 40}), ""},
		{"the same, when it was handed over again", refusedAgain(fault{cut, "7 at 0", 34, 35}, fault{linkAway, "", 10, 40}), "an event got lost though the database or the broker was there"},
		{"the same, but they were away for that one", refusedAgain(fault{databaseKilled, "", at - 1, at + 1}, fault{linkAway, "", at - 1, at + 1}), ""},
		{"an event twice", func(r *run) { r.events = append(r.events, r.events[0]) }, "has event e1 twice"},
		{"an event of nobody", func(r *run) { r.events = append(r.events, other) }, "an event that nobody reported"},
		{"an event that was changed", func(r *run) { r.events[0].Key = "order:2" }, "another event than was reported"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, rep := sound(), &report{}
			tt.forge(&r)
			checkEvents(rep, r)
			checkRows(rep, r.rows, read(r.records, nil))
			said := strings.Join(rep.failed, "\n")
			if !strings.Contains(said, tt.says) || tt.says == "" && said != "" {
				t.Errorf("said %q, want %q", said, tt.says)
			}
		})
	}
}

// refused has the event of the run refused by the outbox, under faults.
func refused(faults ...fault) func(*run) {
	return func(r *run) {
		e := r.records[0].handed[0]
		e.stored, e.result = false, "lost"
		r.events, r.faults = nil, faults
	}
}

// refusedAgain has it refused once more, a minute later.
func refusedAgain(faults ...fault) func(*run) {
	return func(r *run) {
		refused(faults...)(r)
		e := r.records[0].handed[0]
		r.records[0].add(line{T: int64(time.Minute), At: event, Do: e.call.name, Key: e.event.Key, Event: e.event})
		r.records[0].add(line{T: int64(time.Minute), At: stored, Do: e.call.name, ID: e.event.ID, Result: "lost"})
	}
}
