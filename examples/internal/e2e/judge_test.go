package e2e_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/examples/twoservices"
)

// A verdict is the comparison of the two services' tables.
type verdict struct {
	messages, effects            int
	twice, lost, unordered, idle int // idle are effects without a sale
}

func (v verdict) String() string {
	return fmt.Sprintf("belay e2e: %d messages, %d effects, %d twice, %d lost, %d out of order", v.messages, v.effects, v.twice, v.lost, v.unordered)
}

// good reports whether each of the sales has had its effect.
func (v verdict) good(sales int) bool { return v == verdict{messages: sales, effects: sales} }

// judge compares sales and shipments.
func judge(sales []twoservices.Sale, shipments []twoservices.Shipment) verdict {
	v := verdict{messages: len(sales), effects: len(shipments)}
	times := make(map[string]int, len(sales))
	for _, s := range sales {
		times[s.No] = 0
	}
	slices.SortStableFunc(shipments, func(a, b twoservices.Shipment) int {
		return cmp.Or(cmp.Compare(a.Item, b.Item), cmp.Compare(a.Place, b.Place), cmp.Compare(a.ID, b.ID))
	})
	latest := make(map[int64]int64) // by item
	for _, s := range shipments {
		n, sold := times[s.No]
		times[s.No] = n + 1
		switch {
		case !sold:
			v.idle++
		case n > 0:
			v.twice++
		case s.Sale < latest[s.Item]:
			v.unordered++
		default:
			latest[s.Item] = s.Sale
		}
	}
	for _, s := range sales {
		if times[s.No] == 0 {
			v.lost++
		}
	}
	return v
}

// judgeTables judges the databases.
func judgeTables(tb testing.TB, shop, warehouse *gorm.DB) verdict {
	tb.Helper()
	var sales []twoservices.Sale
	var shipments []twoservices.Shipment
	if err := shop.Find(&sales).Error; err != nil {
		tb.Fatal(err)
	}
	if err := warehouse.Find(&shipments).Error; err != nil {
		tb.Fatal(err)
	}
	return judge(sales, shipments)
}

func TestJudgeCounts(t *testing.T) {
	sale := func(n int64) twoservices.Sale { return twoservices.Sale{No: fmt.Sprint(n), Item: 1, Number: n} }
	shipment := func(place, n int64) twoservices.Shipment {
		return twoservices.Shipment{ID: place, No: fmt.Sprint(n), Item: 1, Sale: n, Place: place}
	}
	sales := []twoservices.Sale{sale(1), sale(2), sale(3)}
	for name, c := range map[string]struct {
		numbers []int64 // of the sales that are shipped
		want    verdict
	}{
		"good":       {[]int64{1, 2, 3}, verdict{messages: 3, effects: 3}},
		"twice":      {[]int64{1, 1, 2, 3}, verdict{messages: 3, effects: 4, twice: 1}},
		"twice late": {[]int64{1, 2, 3, 1}, verdict{messages: 3, effects: 4, twice: 1}},
		"lost":       {[]int64{1, 3}, verdict{messages: 3, effects: 2, lost: 1}},
		"order":      {[]int64{1, 3, 2}, verdict{messages: 3, effects: 3, unordered: 1}},
		"no sale":    {[]int64{1, 2, 3, 4}, verdict{messages: 3, effects: 4, idle: 1}},
	} {
		var shipments []twoservices.Shipment
		for n, number := range c.numbers {
			shipments = append(shipments, shipment(int64(n+1), number))
		}
		if got := judge(sales, shipments); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
