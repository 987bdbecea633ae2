package main

import "testing"

const masterInfo = "# Commandstats\r\n" +
	"cmdstat_evalsha:calls=100,usec=1000,usec_per_call=10.00,rejected_calls=0,failed_calls=0\r\n" +
	"cmdstat_set:calls=30,usec=1,usec_per_call=1.00\r\n" +
	"cmdstat_get:calls=1000,usec=1\r\n" +
	"cmdstat_client|tracking:calls=2,usec=1\r\n" +
	"cmdstat_ssubscribe:calls=3,usec=1\r\n" +
	"cmdstat_info:calls=7,usec=1\r\n" +
	"cmdstat_replconf:calls=50,usec=1\r\n" +
	"cmdstat_odd:calls=many\r\n" +
	"# Replication\r\nrole:master\r\n"

func TestCountCommands(t *testing.T) {
	if got := countCommands(masterInfo, nil); got != 105 {
		t.Errorf("%d commands, want 105: those that only clients send", got)
	}
	if got := countCommands(masterInfo, []string{"set"}); got != 135 {
		t.Errorf("%d commands, want 135: SET too when the contender sends it", got)
	}
}

func TestCountCommandsOfReplica(t *testing.T) {
	info := "cmdstat_set:calls=30,usec=1\r\ncmdstat_evalsha:calls=1,usec=1\r\nrole:slave\r\n"
	if got := countCommands(info, []string{"set"}); got != 1 {
		t.Errorf("%d commands, want 1: a SET came from the master", got)
	}
}
