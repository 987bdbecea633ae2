package chaos_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/belaygo/belay/notify"
)

// A paymentTale is a run of payment 1, and what the judge says of it.
type paymentTale struct {
	name    string
	rows    []Payment
	till    Till // 1, at the version that the rows come to
	charges []charge
	open    []openCall
	replies []reply
	tries   []try
	faults  []fault
	events  []notify.Event // that the monitor has
	handed  []*handed      // by the worker
	says    string         // or nothing
	want    paidVerdict
}

// Parts of tales.
var (
	isPaid     = Payment{No: 1, Till: 1, State: paid, Receipt: "charge 1"}
	isDeclined = Payment{No: 1, Till: 1, State: declined, Receipt: "charge 1"}
	isHeld     = Payment{No: 1, Till: 1, State: reservedOnly}

	isCharged  = charge{No: 1, ID: "a", Receipt: "charge 1"}
	isRefused  = charge{No: 1, ID: "a", Receipt: "charge 1", Declined: true}
	isReported = notify.Event{Verdict: notify.VerdictUndecided, Key: paymentRequest(1).Key()}
	isListed   = openCall{Key: paymentRequest(1).Key(), Tries: 2, Undecided: true}
	isAnswered = openCall{Key: paymentRequest(1).Key(), Answered: true}
)

func told(result, answer string) reply {
	return reply{No: 1, Name: "a.0", Result: result, Answer: answer}
}

// toldAt is a reply between two seconds.
func toldAt(result string, asked, at int64) reply {
	r := told(result, "")
	r.asked, r.at = asked*int64(time.Second), at*int64(time.Second)
	return r
}

// tried is a try between two seconds; at 0 it has got no reply.
func tried(asked, replied int64) try {
	return try{No: 1, worker: "a", asked: asked * int64(time.Second), replied: replied * int64(time.Second)}
}

var paymentTales = []paymentTale{
	{
		name: "paid, by some tries", rows: []Payment{isPaid}, till: Till{N: 1, Version: 3}, charges: []charge{isCharged},
		replies: []reply{told(busy, ""), told(pending, ""), told(done, "paid: charge 1"), told(duplicate, "paid: charge 1")},
		want:    paidVerdict{payments: 1, charges: 1, paid: 1},
	},
	{
		name: "declined", rows: []Payment{isDeclined}, till: Till{Version: 3}, charges: []charge{isRefused},
		replies: []reply{told(done, "declined: charge 1")}, want: paidVerdict{payments: 1, declined: 1},
	},
	{
		name: "undecided and charged, and listed", rows: []Payment{isHeld}, till: Till{Held: 1, Version: 2}, charges: []charge{isCharged},
		open: []openCall{isListed}, replies: []reply{told(pending, ""), told(undecided, "")}, events: []notify.Event{isReported}, want: paidVerdict{payments: 1, charges: 1, undecided: 1},
	},
	{
		name: "undecided, and listed", rows: []Payment{isHeld}, till: Till{Held: 1, Version: 2},
		open: []openCall{isListed}, want: paidVerdict{payments: 1, undecided: 1},
	},
	{
		name: "undecided, and no event", rows: []Payment{isHeld}, till: Till{Held: 1, Version: 2},
		open: []openCall{isListed}, replies: []reply{told(undecided, "")}, events: []notify.Event{{Verdict: notify.VerdictUndecided, Key: "another"}},
		says: "no event reports that", want: paidVerdict{payments: 1, undecided: 1, wrong: 1},
	},
	{
		name: "undecided, and nobody took the event", rows: []Payment{isHeld}, till: Till{Held: 1, Version: 2},
		open: []openCall{isListed}, replies: []reply{told(undecided, "")}, handed: []*handed{{event: &isReported, result: "nobody takes it"}},
		want: paidVerdict{payments: 1, undecided: 1},
	},
	{
		name: "never reserved", till: Till{Version: 1}, replies: []reply{told(busy, ""), told(unavailable, "")}, want: paidVerdict{},
	},
	{
		name: "charged twice by one id, which was forgotten", rows: []Payment{isPaid}, till: Till{N: 1, Version: 3},
		charges: []charge{isCharged, {No: 1, ID: "a", Receipt: "charge 2"}},
		says:    "was charged 2 times", want: paidVerdict{payments: 1, charges: 2, paid: 1, twice: 1},
	},
	{
		name: "charged by two ids", rows: []Payment{isPaid}, till: Till{N: 1, Version: 3},
		charges: []charge{isCharged, {No: 1, ID: "b", Receipt: "charge 2"}},
		says:    "with 2 ids", want: paidVerdict{payments: 1, charges: 2, paid: 1, twice: 1, wrong: 1},
	},
	{
		name: "undecided and charged twice", rows: []Payment{isHeld}, till: Till{Held: 1, Version: 2}, charges: []charge{isCharged, isCharged},
		open: []openCall{isListed}, says: "was charged 2 times", want: paidVerdict{payments: 1, charges: 2, undecided: 1, twice: 1},
	},
	{
		name: "paid for nothing", rows: []Payment{isPaid}, till: Till{N: 1, Version: 3},
		says: "it is paid, and the provider has another charge, or none", want: paidVerdict{payments: 1, paid: 1, wrong: 1},
	},
	{
		name: "declined, and charged", rows: []Payment{isDeclined}, till: Till{Version: 3}, charges: []charge{isCharged},
		says: "has not declined it", want: paidVerdict{payments: 1, charges: 1, declined: 1, wrong: 1},
	},
	{
		name: "paid, and declined", rows: []Payment{isPaid}, till: Till{N: 1, Version: 3}, charges: []charge{isRefused},
		says: "it is paid, and", want: paidVerdict{payments: 1, paid: 1, wrong: 1},
	},
	{
		name: "reserved and charged, and nobody lists it", rows: []Payment{isHeld}, till: Till{Held: 1, Version: 2}, charges: []charge{isCharged},
		says: "neither settled nor listed", want: paidVerdict{payments: 1, charges: 1, unlisted: 1, wrong: 1},
	},
	{
		name: "answered, and not settled", rows: []Payment{isHeld}, till: Till{Held: 1, Version: 2}, charges: []charge{isCharged},
		open: []openCall{isAnswered}, says: "a repeat would settle it", want: paidVerdict{payments: 1, charges: 1, wrong: 1},
	},
	{
		name: "settled, and listed", rows: []Payment{isPaid}, till: Till{N: 1, Version: 3}, charges: []charge{isCharged},
		open: []openCall{isListed}, says: "it is settled, and listed", want: paidVerdict{payments: 1, charges: 1, paid: 1, wrong: 1},
	},
	{
		name: "called without a reservation", till: Till{Version: 1}, charges: []charge{isCharged},
		says: "nothing is reserved", want: paidVerdict{charges: 1, wrong: 1},
	},
	{
		name: "listed without a reservation", till: Till{Version: 1}, replies: []reply{told(pending, "")}, open: []openCall{isListed},
		says: "nothing is reserved", want: paidVerdict{wrong: 1},
	},
	{
		name: "told that it is settled, without a reservation", till: Till{Version: 1}, replies: []reply{told(done, "paid: charge 1")},
		says: "nothing is reserved", want: paidVerdict{wrong: 1},
	},
	{
		name: "reserved twice", rows: []Payment{isPaid, isHeld}, till: Till{Held: 1, N: 1, Version: 4}, charges: []charge{isCharged},
		says: "it was reserved 2 times", want: paidVerdict{payments: 1, charges: 1, wrong: 1},
	},
	{
		name: "another answer", rows: []Payment{isPaid}, till: Till{N: 1, Version: 3}, charges: []charge{isCharged},
		replies: []reply{told(duplicate, "paid: charge 2")}, says: "a client was told otherwise", want: paidVerdict{payments: 1, charges: 1, paid: 1, wrong: 1},
	},
	{
		name: "told that it is settled, and it is undecided", rows: []Payment{isHeld}, till: Till{Held: 1, Version: 2},
		open: []openCall{isListed}, replies: []reply{told(done, "paid: charge 1")},
		says: "a client was told that it is settled", want: paidVerdict{payments: 1, undecided: 1, wrong: 1},
	},
	{
		name: "told that it is undecided, and settled later", rows: []Payment{isPaid}, till: Till{N: 1, Version: 3}, charges: []charge{isCharged},
		replies: []reply{told(undecided, "")}, says: "a client was told that it is undecided", want: paidVerdict{payments: 1, charges: 1, paid: 1, wrong: 1},
	},
	{
		name: "told that it is undecided, while a paused worker calls", rows: []Payment{isPaid}, till: Till{N: 1, Version: 3}, charges: []charge{isCharged},
		replies: []reply{toldAt(undecided, 20, 21)}, tries: []try{tried(1, 30)}, want: paidVerdict{payments: 1, charges: 1, paid: 1},
	},
	{
		name: "told that it is undecided, while a worker calls that is killed", rows: []Payment{isPaid}, till: Till{N: 1, Version: 3}, charges: []charge{isCharged},
		replies: []reply{toldAt(undecided, 20, 21)}, tries: []try{tried(1, 0)}, faults: []fault{{Kind: kill, Subject: "a", To: int64(25 * time.Second)}},
		want: paidVerdict{payments: 1, charges: 1, paid: 1},
	},
	{
		name: "told that it is undecided when the worker is dead", rows: []Payment{isPaid}, till: Till{N: 1, Version: 3}, charges: []charge{isCharged},
		replies: []reply{toldAt(undecided, 20, 21)}, tries: []try{tried(1, 0)}, faults: []fault{{Kind: kill, Subject: "a", To: int64(10 * time.Second)}},
		says: "a client was told that it is undecided", want: paidVerdict{payments: 1, charges: 1, paid: 1, wrong: 1},
	},
	{
		name: "told that it is undecided, and a call begins behind that", rows: []Payment{isPaid}, till: Till{N: 1, Version: 3}, charges: []charge{isCharged},
		replies: []reply{toldAt(undecided, 20, 21)}, tries: []try{tried(1, 19), tried(21, 30)},
		says: "a client was told that it is undecided", want: paidVerdict{payments: 1, charges: 1, paid: 1, wrong: 1},
	},
	{
		name: "told that it is undecided within a lease", rows: []Payment{isPaid}, till: Till{N: 1, Version: 3}, charges: []charge{isCharged},
		replies: []reply{toldAt(undecided, 20, 21)}, tries: []try{tried(19, 30)},
		says: "a client was told that it is undecided", want: paidVerdict{payments: 1, charges: 1, paid: 1, wrong: 1},
	},
	{
		name: "settled, and still held", rows: []Payment{isPaid}, till: Till{Held: 1, N: 1, Version: 3}, charges: []charge{isCharged},
		says: "till 1 holds 1", want: paidVerdict{payments: 1, charges: 1, paid: 1},
	},
	{
		name: "settled twice", rows: []Payment{isPaid}, till: Till{Held: -1, N: 2, Version: 4}, charges: []charge{isCharged},
		says: "till 1 holds -1", want: paidVerdict{payments: 1, charges: 1, paid: 1},
	},
}

// TestPayments has the judge find what is wrong, and nothing else.
func TestPayments(t *testing.T) {
	for _, tt := range paymentTales {
		t.Run(tt.name, func(t *testing.T) {
			tt.till.ID = 1
			tries := make(map[string]try)
			for n, one := range tt.tries {
				tries[fmt.Sprint(n)] = one
			}
			r := run{
				faults: tt.faults, rows: rows{Payments: tt.rows, Tills: []Till{tt.till}}, outside: outside{Charges: tt.charges, Open: tt.open},
				records: []*record{{worker: "a", replies: tt.replies, tries: tries, handed: tt.handed}}, events: tt.events,
			}
			rep := &report{}
			got := (&effects{t: rep, h: read(nil, nil)}).payments(r)
			got.replies = nil
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("verdict is %+v, want %+v", got, tt.want)
			}
			wantSaid(t, rep, tt.says)
		})
	}
}

// TestRepliesAreRead: the journal of a worker has what its clients got.
func TestRepliesAreRead(t *testing.T) {
	r := recordsOf(map[string][]line{"a": {
		{T: 1, At: sought, Do: "a.0", Request: 1},
		{T: 2, At: replied, Do: "a.0", Request: 1, Result: done, Answer: "paid: charge 1"},
		{T: 3, At: sought, Do: "a.1", Request: 1},
	}})
	got := told(done, "paid: charge 1")
	got.asked, got.at = 1, 2
	if want := []reply{got}; !reflect.DeepEqual(r[0].replies, want) {
		t.Errorf("replies are %+v, want %+v", r[0].replies, want)
	}
	if want := map[string]try{"a.0": {No: 1, worker: "a", asked: 1, replied: 2}, "a.1": {No: 1, worker: "a", asked: 3}}; !reflect.DeepEqual(r[0].tries, want) {
		t.Errorf("tries are %+v, want %+v", r[0].tries, want)
	}
}
