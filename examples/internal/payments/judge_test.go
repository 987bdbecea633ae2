package payments_test

import (
	"fmt"
	"testing"

	"github.com/belaygo/belay/once"
)

// A record is what both sides know of a payment.
type record struct {
	state   string        // of its row; "" if there is none
	charges int           // in the provider's ledger
	open    *once.Pending // in the list of once.Open
}

// A verdict is the comparison of the services' tables with the provider's ledger.
type verdict struct {
	payments, charges  int
	refused, undecided int

	twice    int // charged more than once
	lost     int // paid without a charge, or charged and neither paid nor listed
	unlisted int // neither settled nor listed
	unended  int // listed although a repeat could settle it, or although it is settled
	leaked   int // items that the stock lacks, or has too many
}

func (v verdict) String() string {
	listed := "all listed"
	if v.unlisted > 0 {
		listed = fmt.Sprint(v.unlisted, " not listed")
	}
	text := fmt.Sprintf("belay e2e: %d payments, %d charges, %d twice, %d lost, %d refused, %d undecided, %s",
		v.payments, v.charges, v.twice, v.lost, v.refused, v.undecided, listed)
	if v.unended != 0 || v.leaked != 0 {
		text += fmt.Sprintf(", %d not ended, %d items astray", v.unended, v.leaked)
	}
	return text
}

// good reports whether each payment has one charge, or none for a reason.
func (v verdict) good() bool {
	return v.twice == 0 && v.lost == 0 && v.unlisted == 0 && v.unended == 0 && v.leaked == 0
}

// judge judges the payments. reserved is what the stock lacks.
func judge(records []record, reserved int) verdict {
	v := verdict{payments: len(records)}
	for _, r := range records {
		v.charges += r.charges
		if r.charges > 1 {
			v.twice++
		}
		listed := r.open != nil
		switch {
		case r.state == paid && r.charges == 0, r.state != paid && !listed && r.charges > 0:
			v.lost++
		case r.state == paid && !listed:
		case r.state == refused && !listed:
			v.refused++
		case !listed:
			v.unlisted++
		case r.state == reservedOnly && r.open.Undecided:
			v.undecided++
		default:
			v.unended++
		}
		if r.state == paid || r.state == reservedOnly {
			reserved--
		}
	}
	v.leaked = max(reserved, -reserved)
	return v
}

func TestJudge(t *testing.T) {
	undecided, answered, calling := &once.Pending{Undecided: true}, &once.Pending{Answered: true}, &once.Pending{Calling: true}
	for name, c := range map[string]struct {
		record   record
		reserved int
		want     verdict
	}{
		"paid":                      {record{paid, 1, nil}, 1, verdict{charges: 1}},
		"refused":                   {record{refused, 0, nil}, 0, verdict{refused: 1}},
		"undecided, charged":        {record{reservedOnly, 1, undecided}, 1, verdict{charges: 1, undecided: 1}},
		"undecided, not charged":    {record{reservedOnly, 0, undecided}, 1, verdict{undecided: 1}},
		"twice":                     {record{paid, 2, nil}, 1, verdict{charges: 2, twice: 1}},
		"twice, and undecided":      {record{reservedOnly, 2, undecided}, 1, verdict{charges: 2, twice: 1, undecided: 1}},
		"lost: paid for nothing":    {record{paid, 0, nil}, 1, verdict{lost: 1}},
		"lost: refused, charged":    {record{refused, 1, nil}, 0, verdict{charges: 1, lost: 1}},
		"lost: nobody knows it":     {record{"", 1, nil}, 0, verdict{charges: 1, lost: 1}},
		"lost: charged, not listed": {record{reservedOnly, 1, nil}, 1, verdict{charges: 1, lost: 1}},
		"not listed":                {record{reservedOnly, 0, nil}, 1, verdict{unlisted: 1}},
		"never requested":           {record{"", 0, nil}, 0, verdict{unlisted: 1}},
		"answered, not settled":     {record{reservedOnly, 1, answered}, 1, verdict{charges: 1, unended: 1}},
		"still calling":             {record{reservedOnly, 0, calling}, 1, verdict{unended: 1}},
		"paid, and listed":          {record{paid, 1, undecided}, 1, verdict{charges: 1, unended: 1}},
		"listed without a row":      {record{"", 0, undecided}, 0, verdict{unended: 1}},
		"reserved twice":            {record{paid, 1, nil}, 2, verdict{charges: 1, leaked: 1}},
		"refused, not given back":   {record{refused, 0, nil}, 1, verdict{refused: 1, leaked: 1}},
		"given back twice":          {record{refused, 0, nil}, -1, verdict{refused: 1, leaked: 1}},
	} {
		c.want.payments = 1
		got := judge([]record{c.record}, c.reserved)
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		well := c.want.twice+c.want.lost+c.want.unlisted+c.want.unended+c.want.leaked == 0
		if got.good() != well {
			t.Errorf("%s: good is %v", name, got.good())
		}
	}
}
