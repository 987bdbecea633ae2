package watch

import "testing"

func TestParseAddr(t *testing.T) {
	for text, want := range map[string][2]string{
		"10.0.0.1:7001@17001":                       {"10.0.0.1:7001", ""},
		"10.0.0.1:7001":                             {"10.0.0.1:7001", ""},
		"::1:7001@17001":                            {"[::1]:7001", ""},
		"2001:db8::7:7001@17001,redis-1.example":    {"[2001:db8::7]:7001", "redis-1.example:7001"},
		"10.0.0.1:7001@17001,redis-1.example":       {"10.0.0.1:7001", "redis-1.example:7001"},
		"10.0.0.1:7001@17001,redis-1,shard-id=a9":   {"10.0.0.1:7001", "redis-1:7001"},
		"10.0.0.1:7001@17001,,tls-port=0,shard-id=": {"10.0.0.1:7001", ""},
		"10.0.0.1:7001@17001,shard-id=a9":           {"10.0.0.1:7001", ""},
		":7001@17001,redis-1":                       {"", "redis-1:7001"},
		":0@0":                                      {"", ""},
		"":                                          {"", ""},
	} {
		if addr, named := parseAddr(text); addr != want[0] || named != want[1] {
			t.Errorf("%s: %q, %q, want %q", text, addr, named, want)
		}
	}
}
