package main

import (
	"maps"
	"testing"
)

var stats = map[string]string{
	"cmdstat_evalsha":         "calls=100,usec=1000,usec_per_call=10.00,rejected_calls=0,failed_calls=0",
	"cmdstat_set":             "calls=30,usec=1,usec_per_call=1.00",
	"cmdstat_get":             "calls=1000,usec=1",
	"cmdstat_client|tracking": "calls=2,usec=1",
	"cmdstat_ssubscribe":      "calls=3,usec=1",
	"cmdstat_info":            "calls=7,usec=1",
	"cmdstat_replconf":        "calls=50,usec=1",
	"cmdstat_odd":             "calls=many",
}

func info(role string) map[string]map[string]string {
	return map[string]map[string]string{"Commandstats": maps.Clone(stats), "Replication": {"role": role}}
}

func TestCountCommands(t *testing.T) {
	if got := countCommands(info("master"), nil); got != 105 {
		t.Errorf("%d commands, want 105: those that only clients send", got)
	}
	if got := countCommands(info("master"), []string{"set"}); got != 135 {
		t.Errorf("%d commands, want 135: SET too when the contender sends it", got)
	}
}

func TestCountCommandsOfReplica(t *testing.T) {
	if got := countCommands(info("slave"), []string{"set"}); got != 105 {
		t.Errorf("%d commands, want 105: a SET came from the master", got)
	}
}
