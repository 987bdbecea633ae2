package incident

import (
	"slices"
	"time"
)

// Keeper says which engine keeps the locks of a service that can switch, as its instances
// have reported it: by the newest record that one of them knows.
type Keeper struct {
	Service string `json:"-"`
	Between
	Settled bool      `json:"settled"`              // no instance needs From any more
	Since   time.Time `json:"since,omitzero"`       // when the switch to the engine was first reported; zero: not known
	Until   time.Time `json:"moves_until,omitzero"` // how long locks move, at most; zero: they do not
	// Of the instances that live, how many there are, how many know the record, and the names
	// of those that do not, the first MaxBehind.
	Instances int      `json:"instances"`
	Knowing   int      `json:"knowing"`
	Behind    []string `json:"behind,omitempty"`
	// Late says that some do not know the record though the switch is over: by then each should.
	Late bool `json:"late"`
}

// MaxBehind bounds the names of a Keeper.
const MaxBehind = 10

// Moving reports whether locks move from one engine to another.
func (k Keeper) Moving() bool { return !k.Settled && k.From != k.To }

// Missing is how many instances do not know the record.
func (k Keeper) Missing() int { return k.Instances - k.Knowing }

// KeepersOf returns the keepers by the last heartbeats of instances, which are in order of
// service, and by the switches that are known. They are in order of service.
func KeepersOf(beats []Heartbeat, switches []Switch) (list []Keeper) {
	for len(beats) > 0 {
		n := slices.IndexFunc(beats, func(h Heartbeat) bool { return h.Service != beats[0].Service })
		if n < 0 {
			n = len(beats)
		}
		if k, ok := keeperOf(alive(beats[:n])); ok {
			k.Since = since(k, switches)
			list = append(list, k)
		}
		beats = beats[n:]
	}
	return list
}

// LeastPatience is for how long an instance lives at least after its last heartbeat.
const LeastPatience = 30 * time.Second

// alive leaves out the instances of a service that have ended, as others have sent several
// heartbeats since.
func alive(beats []Heartbeat) (living []Heartbeat) {
	var last time.Time
	for _, h := range beats {
		if h.ReceivedAt.After(last) {
			last = h.ReceivedAt
		}
	}
	for _, h := range beats {
		if last.Sub(h.ReceivedAt) <= max(LeastPatience, 3*h.Every) {
			living = append(living, h)
		}
	}
	return living
}

// keeperOf returns the keeper of a service by its instances that live. It is not ok if none
// knows a record.
func keeperOf(beats []Heartbeat) (k Keeper, ok bool) {
	for _, h := range beats {
		r := h.Record
		if r.Epoch > k.Epoch {
			k = Keeper{Service: h.Service, Between: Between{r.Epoch, r.From, r.To, r.By}}
		}
		if k.knows(r) && r.Settled {
			k.Settled = true
		}
	}
	for _, h := range beats {
		k.Instances++
		switch until := h.ReceivedAt.Add(h.Record.Left); {
		case !k.knows(h.Record):
			k.Late = k.Settled
			if len(k.Behind) < MaxBehind {
				k.Behind = append(k.Behind, h.Instance)
			}
		default:
			k.Knowing++
			if k.Moving() && until.After(k.Until) {
				k.Until = until
			}
		}
	}
	return k, k.Epoch > 0
}

// knows reports whether a record is the one of a keeper.
func (k Keeper) knows(r Record) bool { return r.Epoch == k.Epoch && r.From == k.From && r.To == k.To }

// since returns when the switch to the engine that keeps the locks was first reported.
func since(k Keeper, switches []Switch) (at time.Time) {
	newest := int64(0)
	for _, s := range switches {
		if s.Service == k.Service && s.To == k.To && s.Epoch <= k.Epoch && s.Epoch > newest {
			newest, at = s.Epoch, s.SeenAt
		}
	}
	return at
}
