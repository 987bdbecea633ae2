package chaos_test

import (
	"slices"

	"github.com/belaygo/belay/notify"
)

// newLegs returns the legs of a call: one for each key.
func newLegs(worker string, l line) (legs []*call) {
	for _, key := range append([]string{l.Key}, l.Also...) {
		legs = append(legs, &call{name: l.Do, worker: worker, key: key, kind: l.Kind, combines: l.Combine, request: l.Request, called: l.T})
	}
	for _, c := range legs {
		c.legs = legs
	}
	return legs
}

// leg returns the leg of the key, or the first one: an event may name a key that the call
// did not have.
func (c *call) leg(key string) *call {
	if c == nil {
		return nil
	}
	i := slices.IndexFunc(c.legs, func(leg *call) bool { return leg.key == key })
	return c.legs[max(0, i)]
}

// on returns the leg of the key, or all for no key. There are none of nil: the question
// whether an outage is over belongs to no call.
func (c *call) on(key string) []*call {
	switch {
	case c == nil:
		return nil
	case key == "":
		return c.legs
	}
	return []*call{c.leg(key)}
}

// first reports whether c stands for its call where each call counts once.
func (c *call) first() bool { return c.legs[0] == c }

// locked reports whether the call had the locks on all its keys.
func (c *call) locked() bool {
	return !slices.ContainsFunc(c.legs, func(leg *call) bool { return leg.grant == nil })
}

// told returns the events of all legs.
func (c *call) told() (events []*notify.Event) {
	for _, leg := range c.legs {
		events = append(events, leg.events...)
	}
	return events
}

// keys returns the keys as an event has them: sorted, and none if there is one only.
func (c *call) keys() (keys []string) {
	if len(c.legs) == 1 {
		return nil
	}
	for _, leg := range c.legs {
		keys = append(keys, leg.key)
	}
	slices.Sort(keys)
	return keys
}

// firsts returns the calls, each once.
func firsts(legs []*call) []*call {
	return slices.DeleteFunc(slices.Clone(legs), func(c *call) bool { return !c.first() })
}
