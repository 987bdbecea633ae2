package simdb

import (
	"math/rand/v2"
	"strings"
)

// passes is the place in an order where time passes: waits that are bounded end.
const passes = -1

// request is a name of a request, of which the claim says that it has taken effect.
func request(n int) string { return strings.Repeat(string(rune('a'+n)), 32) }

// How long a session waits for a claim, in seconds: longer than a schedule takes.
const (
	boundMy  = "SET innodb_lock_wait_timeout = 2"
	boundPg  = "SET LOCAL lock_timeout = 2000"
	returnMy = "SET innodb_lock_wait_timeout = 50"
	returnPg = "SET LOCAL lock_timeout = '0'"
	prefixMy = "SET STATEMENT innodb_lock_wait_timeout=2 FOR "
	atOnceMy = "SET STATEMENT innodb_lock_wait_timeout=0 FOR "
)

// The clock of a purge, as MariaDB and PostgreSQL spell it.
const (
	olderMy = "UNIX_TIMESTAMP(created_at) < UNIX_TIMESTAMP() - ?"
	olderPg = "created_at < clock_timestamp() - make_interval(secs => ?)"
	oldMy   = "SELECT request FROM (SELECT request, created_at FROM belay_once ORDER BY created_at LIMIT ?) AS oldest WHERE " + olderMy
	oldPg   = "SELECT request FROM (SELECT request, created_at FROM belay_once ORDER BY created_at LIMIT $1) AS oldest WHERE created_at < clock_timestamp() - make_interval(secs => $2)"
)

const (
	insertClaim  = "INSERT INTO `belay_once` (`request`,`attempt`,`print`,`held`,`operation`) VALUES (?,?,?,?,?)"
	insertAnswer = "INSERT INTO belay_answer (request, refused, codec, `body`) VALUES (?, ?, ?, ?)"
	findClaim    = "SELECT c.print, c.held, a.refused, a.codec, a.body FROM belay_once c LEFT JOIN belay_answer a ON a.request = c.request WHERE c.request = ?"
)

func claim(r *rand.Rand, n int) sent {
	return sent{insertClaim, []any{request(n), 1 + r.Int64N(1000), nil, r.Int64N(3), "take"}}
}

// keeper returns what operations that serve requests send, and those who purge.
func (s *schedule) keeper(r *rand.Rand) (all []sent) {
	add := func(st ...sent) { all = append(all, st...) }
	plain := func(sql string) { add(sent{sql: sql}) }
	n := r.IntN(2)
	switch r.IntN(6) {
	case 0:
		return s.purge(r)
	case 1:
		add(sent{findClaim, []any{request(n)}}, sent{oldMy, []any{1 + r.Int64N(2), age(r)}})
		return all
	case 2:
		plain("START TRANSACTION")
	case 3:
		plain("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
		plain("START TRANSACTION")
	default:
		plain("START TRANSACTION WITH CONSISTENT SNAPSHOT")
	}
	for range 1 + r.IntN(3) {
		st := claim(r, n)
		switch r.IntN(4) {
		case 0:
			plain(boundMy)
			add(st)
			plain(returnMy)
		case 1:
			st.sql = atOnceMy + st.sql
			add(st)
		default:
			st.sql = prefixMy + st.sql
			add(st)
		}
		switch r.IntN(6) {
		case 0:
			add(sent{"SELECT `attempt`,`held` FROM `belay_once` WHERE `request` = ?" + locks[r.IntN(len(locks))], []any{request(n)}})
		case 1:
			add(sent{findClaim, []any{request(n)}})
		case 2:
			add(s.statement(r, r.IntN(24)))
		case 3:
			plain("SAVEPOINT sp")
			plain("ROLLBACK TO SAVEPOINT sp")
		default:
			add(sent{insertAnswer, []any{request(n), int64(0), "json", "x"}})
		}
		n = r.IntN(2)
	}
	if r.IntN(3) == 0 {
		plain("ROLLBACK")
	} else {
		plain("COMMIT")
	}
	return all
}

// age returns an age in seconds that all rows have, or none.
func age(r *rand.Rand) float64 { return []float64{-3000, -3000, 3000}[r.IntN(3)] }

func (s *schedule) purge(r *rand.Rand) (all []sent) {
	n, old := request(r.IntN(2)), age(r)
	transaction := func(deletes ...sent) {
		all = append(all, sent{sql: "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"}, sent{sql: "START TRANSACTION"})
		all = append(append(all, deletes...), sent{sql: "COMMIT"})
	}
	if r.IntN(2) == 0 {
		transaction(sent{"DELETE FROM belay_answer WHERE " + olderMy + " AND request IN (?)", []any{old, n}})
	}
	transaction(
		sent{"DELETE FROM belay_once WHERE " + olderMy + " AND request IN (?)", []any{old, n}},
		sent{"DELETE FROM belay_answer WHERE NOT EXISTS (SELECT 1 FROM belay_once WHERE belay_once.request = belay_answer.request) AND request IN (?)", []any{n}})
	return all
}
