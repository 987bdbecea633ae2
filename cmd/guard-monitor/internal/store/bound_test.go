package store

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/notify"
)

// Events that nobody groups do not fill the memory, and make room when they are grouped.
func TestFreshIsBounded(t *testing.T) {
	t.Parallel()
	var f fresh
	body := make([]byte, MaxBody)
	const many = maxFresh/MaxBody + 10
	for seq := range int64(many) {
		f.add([]*addition{{event: notify.Event{}, raw: body, decoded: true, added: true, seq: seq + 1}})
	}
	if f.bytes > maxFresh || len(f.list) != maxFresh/MaxBody {
		t.Errorf("%d events of %d bytes are kept", len(f.list), f.bytes)
	}
	if f.drop(11); len(f.list) != maxFresh/MaxBody-10 || f.bytes != len(f.list)*MaxBody || f.list[0].Seq != 11 {
		t.Errorf("%d events of %d bytes are left", len(f.list), f.bytes)
	}
	if list := f.find([]int64{12, 13, many + 1, 14}); len(list) != 2 || list[1].Seq != 13 {
		t.Errorf("found %+v, want those up to the first that is missing", list)
	}
	if f.drop(many + 1); f.bytes != 0 || f.list != nil || f.last() != 0 {
		t.Errorf("%d bytes are left", f.bytes)
	}
}

// An incident counts its keys up to a bound, each once, also those of events that come together.
func TestKeysOfIncidentAreBounded(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "m.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var moves []incident.Move
	for n, key := range []string{"a", "b", "b", "c", "d"} {
		a := anAddition(strconv.Itoa(n))
		a.event.Key = key
		s.addAll([]*addition{a})
		moves = append(moves, incident.Move{Seq: a.seq, Incident: "i"})
	}
	if err := s.Apply(t.Context(), []incident.Incident{{ID: "i"}}, moves[:1]); err != nil {
		t.Fatal(err)
	}
	if _, err := s.write.ExecContext(t.Context(), `UPDATE incidents SET keys = ?`, maxKeys-2); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), nil, moves[1:]); err != nil {
		t.Fatal(err)
	}
	i, err := s.Incident(t.Context(), "i")
	if err != nil || i.Keys != maxKeys || i.Events != 5 {
		t.Errorf("%d keys of %d events, %v, want %d of 5", i.Keys, i.Events, err, maxKeys)
	}
}
