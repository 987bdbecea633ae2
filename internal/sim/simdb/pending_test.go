package simdb

import "math/rand/v2"

const insertPending = "INSERT INTO `belay_pending` (`request`,`attempt`,`print`,`operation`) VALUES (?,?,?,?)"

// calling returns what an operation with a call sends: it reserves, or takes over, gives back,
// stores or settles what is pending.
func (s *schedule) calling(r *rand.Rand) (all []sent) {
	add := func(sql string, args ...any) { all = append(all, sent{sql, args}) }
	id, attempt := request(r.IntN(2)), 1+r.Int64N(2)
	then := []int64{-3_600_000, 3_600_000}[r.IntN(2)] // before now, or after it
	vacant := func(table, more, value string) {
		add("INSERT INTO "+table+" (request, attempt, print, operation"+more+") VALUES (?, ?, ?, ?"+value+")", id, attempt, "x", "take")
		add("DELETE FROM "+table+" WHERE request = ?", id)
	}
	switch r.IntN(8) {
	case 0:
		add("UPDATE belay_pending SET attempt = ?, lease_ms = "+nowMy+" + ?, tries = tries + 1 WHERE request = ? AND attempt = ? AND answered = 0 AND lease_ms <= "+nowMy+
			" AND until_ms > "+nowMy, attempt+10, then, id, attempt)
		return all
	case 1:
		add("UPDATE belay_pending SET lease_ms = 0 WHERE request = ? AND attempt = ? AND answered = 0 AND lease_ms <> 0", id, attempt)
		return all
	case 2:
		add("UPDATE belay_pending SET answered = ?, `body` = ? WHERE request = ? AND attempt = ? AND answered = 0", 1+r.Int64N(2), "y", id, attempt)
		return all
	case 3:
		add("SELECT attempt, print, tries, answered, `body` FROM belay_pending WHERE request = ?", id)
		add("SELECT request FROM belay_pending WHERE request = ? AND attempt = ? AND answered = 0", id, attempt)
		add("SELECT request, operation, tries, answered FROM belay_pending ORDER BY since_ms, request LIMIT ?", int64(3))
		return all
	}
	add("START TRANSACTION WITH CONSISTENT SNAPSHOT")
	switch r.IntN(3) {
	case 0:
		add(prefixMy+insertClaim, id, attempt, nil, int64(1), "take")
		vacant("belay_pending", "", "")
	case 1:
		add(prefixMy+insertClaim, id, attempt, nil, int64(1), "take")
		add("DELETE FROM belay_pending WHERE request = ? AND attempt = ?", id, attempt)
	default:
		add(prefixMy+insertPending, id, attempt, "x", "take")
		vacant("belay_once", ", held", ", 0")
		add("UPDATE belay_pending SET since_ms = "+nowMy+", lease_ms = "+nowMy+" + ?, until_ms = "+nowMy+" + ?, tries = 1 WHERE request = ?", then, then, id)
	}
	if r.IntN(3) == 0 {
		add("ROLLBACK")
	} else {
		add("COMMIT")
	}
	return all
}
