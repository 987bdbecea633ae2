package cost

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/belaygo/belay/benchmark/internal/shop"
)

// A requestCase is a way to serve a request with an id, first or again, and what that may
// cost at most: commands of Redis, where a mark takes one more in the same round trip, and
// statements with those of the operation itself (BEGIN, an INSERT, COMMIT). What is read of a
// claim is read in a transaction of three statements.
type requestCase struct {
	method, name         string
	commands, statements float64
	want                 shop.Result
	do                   func(*shop.Requests, context.Context, string) shop.Answer
}

// requestCases returns all cases. A repeat comes after its first.
func requestCases() []requestCase {
	return []requestCase{
		{"for", "first", 2, 4, shop.Done, (*shop.Requests).For},
		{"for", "repeat", 3, 9, shop.Duplicate, (*shop.Requests).For},
		{"once", "first", 4, 5, shop.Done, (*shop.Requests).Once},
		{"once", "repeat, marked", 3, 4, shop.Done, (*shop.Requests).Once},
		{"once", "repeat, late", 3, 9, shop.Done, (*shop.Requests).OnceUnmarked},
		{"refuse", "first, nothing written", 4, 4, shop.Done, (*shop.Requests).Refuse},
		{"refuse", "repeat, marked", 3, 4, shop.Done, (*shop.Requests).Refuse},
		{"refuse", "first, an INSERT undone", 4, 8, shop.Done, (*shop.Requests).RefuseLate},
		{"httpguard", "first", 4, 5, shop.Done, (*shop.Requests).HTTP},
		{"httpguard", "repeat, marked", 3, 4, shop.Done, (*shop.Requests).HTTP},
		{"inbox", "first", 2, 4, shop.Done, (*shop.Requests).Message},
		{"inbox", "redelivered", 0, 4, shop.Done, (*shop.Requests).MessageAgain},
	}
}

// MeasureRequests runs n requests of each case.
func (b *Bench) MeasureRequests(ctx context.Context, n int) (costs []Cost, err error) {
	run := strconv.FormatInt(time.Now().UnixNano(), 36)
	firsts := 0
	for i, c := range requestCases() {
		if c.first() {
			firsts = i
		}
		cost, err := b.measure(ctx, c.method, c.name, n, c.want, func(k int) shop.Answer {
			return c.do(b.requests, ctx, fmt.Sprintf("%s-%02d-%07d", run, firsts, k))
		})
		if err != nil {
			return nil, err
		}
		costs = append(costs, cost)
	}
	return costs, nil
}

func (c requestCase) first() bool { return strings.HasPrefix(c.name, "first") }

// OverBudget says which of the costs are of requests and more than they may be.
func OverBudget(costs []Cost) (over []string) {
	for _, c := range costs {
		for _, r := range requestCases() {
			if c.Method != r.method || c.Case != r.name {
				continue
			}
			const others = 0.5 // of the outbox, which looks for its rows now and then
			if c.RedisCommands > r.commands+others || c.Statements > r.statements+others {
				over = append(over, fmt.Sprintf("%s, %s: %.2f commands and %.2f statements, at most %v and %v",
					c.Method, c.Case, c.RedisCommands, c.Statements, r.commands, r.statements))
			}
		}
	}
	return over
}
