package simdb

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A schedule is what some sessions send, in an order. A step whose session waits is left
// out; what a session has left to send then comes at the end.
type schedule struct {
	seed     uint64
	orders   []int // of the keys that are there at the beginning
	stocks   []int
	sessions [][]sent
	order    []int // of the sessions
	raced    bool  // a rollback woke several sessions at once
	outbox   bool  // they use no other table than the outbox, which is empty at the beginning
	once     bool  // they use the tables of requests, too
	calls    bool  // and that of what is pending
	claims   []int // of the requests that are there at the beginning; those above 1 have answers
}

// sent is a statement as it is sent to MariaDB.
type sent struct {
	sql  string
	args []any
}

// key is the name of an order that only a schedule has. There are none of other schedules
// between them.
func (s *schedule) key(n int) string { return fmt.Sprintf("%010d-%c", s.seed, 'a'+n) }

// id is the number of a stock that only a schedule has.
func (s *schedule) id(n int) int64 { return int64(s.seed)*10 + int64(n) }

const keys = 3

func newSchedule(seed uint64) *schedule {
	r := rand.New(rand.NewPCG(seed, 1))
	s := &schedule{seed: seed}
	for n := range keys {
		if r.IntN(2) == 0 {
			s.orders = append(s.orders, n)
		}
		if r.IntN(3) > 0 {
			s.stocks = append(s.stocks, n)
		}
	}
	s.outbox = r.IntN(5) == 0
	s.once = !s.outbox && r.IntN(3) == 0
	s.calls = s.once && r.IntN(3) == 0
	for n := 0; s.once && n < 2; n++ {
		if r.IntN(3) == 0 {
			s.claims = append(s.claims, n+2*r.IntN(2))
		}
	}
	for range 2 + r.IntN(2) {
		var session []sent
		switch {
		case s.outbox:
			s.sessions = append(s.sessions, relay(r))
		case s.calls && r.IntN(6) > 0:
			for range 1 + r.IntN(2) {
				session = append(session, s.calling(r)...)
			}
			s.sessions = append(s.sessions, session)
		case s.once && r.IntN(6) > 0:
			s.sessions = append(s.sessions, s.keeper(r))
		default:
			s.sessions = append(s.sessions, s.session(r))
		}
	}
	for i, session := range s.sessions {
		s.order = append(s.order, slices.Repeat([]int{i}, len(session))...)
	}
	r.Shuffle(len(s.order), func(i, j int) { s.order[i], s.order[j] = s.order[j], s.order[i] })
	if s.once && r.IntN(4) == 0 {
		s.order = slices.Insert(s.order, len(s.order)/2+r.IntN(len(s.order)/2), passes)
	}
	return s
}

func (s *schedule) session(r *rand.Rand) (all []sent) {
	plain := func(sql string) { all = append(all, sent{sql: sql}) }
	alone := r.IntN(5) == 0
	if !alone {
		switch r.IntN(6) {
		case 0:
			plain("START TRANSACTION")
		case 1:
			plain("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
			plain("START TRANSACTION")
		default:
			plain("START TRANSACTION WITH CONSISTENT SNAPSHOT")
		}
	}
	saved := false
	for range 1 + r.IntN(5) {
		switch n := r.IntN(26); {
		case n < 24 || alone:
			all = append(all, s.statement(r, n%24))
		case saved && r.IntN(3) == 0:
			plain("RELEASE SAVEPOINT sp")
			saved = r.IntN(4) == 0 // or go back to it: there is none
		case saved:
			plain("ROLLBACK TO SAVEPOINT sp")
			saved = r.IntN(2) == 0
		default:
			plain("SAVEPOINT sp")
			saved = true
		}
	}
	switch {
	case alone:
	case r.IntN(4) == 0:
		plain("ROLLBACK")
	default:
		plain("COMMIT")
	}
	return all
}

const (
	nowMy = "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000)"
	nowPg = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"
	due   = "FROM belay_outbox WHERE id > ? AND NOT (leased_until BETWEEN " + nowMy + " + 1 AND " + nowMy + " + 3600000)" +
		" AND NOT (retry_at BETWEEN " + nowMy + " + ? AND " + nowMy + " + 3600000) ORDER BY id LIMIT ? FOR UPDATE SKIP LOCKED"
	these = "id IN (?) AND COALESCE(event_id, '') IN (?)"
)

// relay returns what an outbox and its relay send.
func relay(r *rand.Rand) (all []sent) {
	event := func() string { return string(rune('a' + r.IntN(3))) }
	for range 1 + r.IntN(4) {
		first := int64(1 + r.IntN(3))
		args := []any{first, event()}
		switch r.IntN(6) {
		case 0, 1:
			all = append(all, sent{"INSERT INTO belay_outbox (event_id, body) VALUES (?, ?), (?, ?) ON DUPLICATE KEY UPDATE event_id = event_id",
				[]any{event(), "x", event(), "y"}})
		case 2:
			all = append(all, sent{"DELETE FROM belay_outbox WHERE " + these, args})
		case 3:
			all = append(all, sent{"UPDATE belay_outbox SET leased_until = 0, attempts = attempts + 1, retry_at = " + nowMy + " + ? WHERE " + these,
				append([]any{while(r)}, args...)})
		default:
			all = append(all, lease(r)...)
		}
	}
	return all
}

// while returns some milliseconds, others each time: two statements may run in the same one.
func while(r *rand.Rand) int64 { return 60_000 + r.Int64N(3_000_000) }

func lease(r *rand.Rand) []sent {
	after, limit, first := int64(r.IntN(2)), int64(1+r.IntN(2)), int64(1+r.IntN(2))
	return []sent{
		{sql: "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"},
		{sql: "START TRANSACTION"},
		{"SELECT id, event_id, attempts " + due, []any{after, int64(1), limit}},
		{"UPDATE belay_outbox SET leased_until = " + nowMy + " + ? WHERE id IN (?)", []any{while(r), first}},
		{sql: "COMMIT"},
	}
}

var locks = []string{"", " FOR UPDATE", " FOR UPDATE NOWAIT", " LOCK IN SHARE MODE", " LOCK IN SHARE MODE NOWAIT"}

func (s *schedule) statement(r *rand.Rand, kind int) sent {
	key, id, version := s.key(r.IntN(keys)), s.id(r.IntN(keys)), int64(1+r.IntN(2))
	lock := locks[r.IntN(len(locks))]
	switch kind {
	case 0, 1, 2, 3:
		return sent{"INSERT INTO `orders` (`no`,`amount`) VALUES (?,?)", []any{key, version}}
	case 4:
		other := s.key(r.IntN(keys))
		return sent{"INSERT INTO `orders` (`no`,`amount`) VALUES (?,?),(?,?)", []any{key, version, other, version}}
	case 5, 6:
		return sent{"INSERT INTO `orders` (`no`,`amount`) VALUES (?,?) ON DUPLICATE KEY UPDATE `no`=`no`", []any{key, version}}
	case 7, 8, 9:
		return sent{"SELECT `no`,`amount` FROM `orders` WHERE `no` = ?" + lock, []any{key}}
	case 21:
		return sent{"INSERT INTO `orders` (`no`,`amount`) VALUES (?,?) ON DUPLICATE KEY UPDATE `amount`=VALUES(`amount`)", []any{key, version}}
	case 22:
		return sent{"INSERT INTO `orders` (`no`,`amount`) VALUES (?,?) RETURNING `no`", []any{key, version}}
	case 10:
		return sent{"UPDATE `orders` SET `amount`=? WHERE `no` = ?", []any{version, key}}
	case 11, 12:
		return sent{"DELETE FROM `orders` WHERE `no` = ?", []any{key}}
	case 13, 14, 15:
		return sent{"UPDATE `stocks` SET `left`=?,`version`=`version` + 1 WHERE `id` = ? AND `version` = ?", []any{version, id, version}}
	case 16:
		return sent{"DELETE FROM `stocks` WHERE `stocks`.`id` = ? AND `version` = ?", []any{id, version}}
	case 17, 18:
		return sent{"SELECT `id`,`left`,`version` FROM `stocks` WHERE `id` = ?" + lock, []any{id}}
	case 19:
		return sent{"INSERT INTO `stocks` (`id`,`left`,`version`) VALUES (?,?,?)", []any{id, version, version}}
	case 20:
		return sent{"UPDATE `stocks` SET `left`=? WHERE `id` IN (?,?)", []any{version, id, s.id(r.IntN(keys))}}
	}
	return sent{"SELECT COUNT(*) FROM `orders` WHERE `no` = ?", []any{key}}
}

// postgres returns a statement as it is sent to PostgreSQL.
func (s sent) postgres() sent {
	sql := strings.NewReplacer("`", `"`, " LOCK IN SHARE MODE", " FOR SHARE", "START TRANSACTION WITH CONSISTENT SNAPSHOT", "BEGIN", "START TRANSACTION", "BEGIN ISOLATION LEVEL REPEATABLE READ",
		boundMy, boundPg, returnMy, returnPg, prefixMy, "", atOnceMy, "", oldMy, oldPg, olderMy, olderPg,
		nowMy, nowPg, "ON DUPLICATE KEY UPDATE event_id = event_id", "ON CONFLICT (event_id) DO NOTHING",
		"ON DUPLICATE KEY UPDATE `amount`=VALUES(`amount`)", `ON CONFLICT ("no") DO UPDATE SET "amount"="excluded"."amount"`,
		"ON DUPLICATE KEY UPDATE `no`=`no`", `ON CONFLICT ("no") DO NOTHING`).Replace(s.sql)
	if selected, ok := strings.CutPrefix(sql, "SELECT id, event_id, attempts "); ok { // a lease is one statement
		sql = "WITH due AS MATERIALIZED (SELECT id " + selected + ") UPDATE belay_outbox SET leased_until = " + nowPg +
			" + 60000 WHERE id IN (SELECT id FROM due) RETURNING id, event_id, attempts"
	}
	parts := strings.Split(sql, "?")
	for n := range parts[1:] {
		parts[n] += fmt.Sprintf("$%d", n+1)
	}
	return sent{strings.Join(parts, ""), s.args}
}

// seeded returns the statements that make the rows that are there at the beginning.
func (s *schedule) seeded() (all []sent) {
	if s.outbox {
		return nil
	}
	for _, n := range s.claims {
		all = append(all, sent{insertClaim, []any{request(n % 2), int64(7), "x", int64(7), "take"}})
		if n > 1 {
			all = append(all, sent{insertAnswer, []any{request(n % 2), int64(1), "json", "y"}})
		}
	}
	for _, n := range s.orders {
		all = append(all, sent{"INSERT INTO `orders` (`no`,`amount`) VALUES (?,?)", []any{s.key(n), int64(9)}})
	}
	for _, n := range s.stocks {
		all = append(all, sent{"INSERT INTO `stocks` (`id`,`left`,`version`) VALUES (?,?,?)", []any{s.id(n), int64(9), int64(1)}})
	}
	return all
}

// shrink returns the smallest schedule it finds for which fails still holds.
func (s *schedule) shrink(fails func(*schedule) bool) *schedule {
	for {
		smaller := s.smaller(fails)
		if smaller == nil {
			return s
		}
		s = smaller
	}
}

func (s *schedule) smaller(fails func(*schedule) bool) *schedule {
	try := func(change func(*schedule)) *schedule {
		c := &schedule{seed: s.seed, outbox: s.outbox, once: s.once, calls: s.calls, claims: slices.Clone(s.claims), orders: slices.Clone(s.orders), stocks: slices.Clone(s.stocks), order: slices.Clone(s.order)}
		for _, session := range s.sessions {
			c.sessions = append(c.sessions, slices.Clone(session))
		}
		if change(c); fails(c) {
			return c
		}
		return nil
	}
	for at, i := range s.order { // the step, with its statement
		if i == passes {
			if c := try(func(c *schedule) { c.order = slices.Delete(c.order, at, at+1) }); c != nil {
				return c
			}
			continue
		}
		n := 0
		for _, other := range s.order[:at] {
			if other == i {
				n++
			}
		}
		if sql := s.sessions[i][n].sql; sql == "COMMIT" || sql == "ROLLBACK" {
			continue
		}
		if c := try(func(c *schedule) {
			c.order = slices.Delete(c.order, at, at+1)
			c.sessions[i] = slices.Delete(c.sessions[i], n, n+1)
		}); c != nil {
			return c
		}
	}
	for i, session := range s.sessions { // all of a session
		if c := try(func(c *schedule) {
			c.order = slices.DeleteFunc(c.order, func(n int) bool { return n == i })
			c.sessions[i] = nil
		}); len(session) > 0 && c != nil {
			return c
		}
	}
	for _, rows := range []func(*schedule) *[]int{func(c *schedule) *[]int { return &c.claims }, func(c *schedule) *[]int { return &c.orders }, func(c *schedule) *[]int { return &c.stocks }} {
		for n := range *rows(s) {
			if c := try(func(c *schedule) { *rows(c) = slices.Delete(*rows(c), n, n+1) }); c != nil {
				return c
			}
		}
	}
	return nil
}

// short is a statement without the clocks in it.
func (s sent) short() string {
	return fmt.Sprint(strings.NewReplacer(nowMy, "{now}").Replace(s.sql), " ", s.args)
}

func (s *schedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, orders %v, stocks %v, claims %v\n", s.seed, s.orders, s.stocks, s.claims)
	at := make([]int, len(s.sessions))
	for _, i := range s.order {
		if i == passes {
			fmt.Fprintln(&b, "  time passes")
			continue
		}
		st := s.sessions[i][at[i]]
		at[i]++
		fmt.Fprintf(&b, "  %d: %s\n", i, st.short())
	}
	return b.String()
}
