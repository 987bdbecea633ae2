package model

import "slices"

// rules are how a trace is followed through a kind of configuration.
type rules struct {
	of      string // begins what is counted
	actions []action
	labels  map[Sight]label
	unseen  map[string]hidden
}

var (
	oneKey      = rules{"", actions, labels, unseen}
	severalKeys = rules{"several keys: ", keyActions, keyLabels, keyUnseen}
)

// sighted reports whether an action has a label, or may happen unseen.
func (r rules) sighted(says string) bool {
	if r.unseen[says] != nil {
		return true
	}
	for _, l := range r.labels {
		for k := range keys {
			if slices.Contains(l.names(k), says) {
				return true
			}
		}
	}
	return false
}
