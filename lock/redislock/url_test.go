package redislock_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/lock/redislock"
)

func TestParseURL(t *testing.T) {
	for text, want := range map[string]redis.UniversalOptions{
		"redis://h":                       {Addrs: []string{"h:6379"}},
		"redis://h:1/":                    {Addrs: []string{"h:1"}},
		"redis://:p%2F%40@h:1/3":          {Addrs: []string{"h:1"}, Password: "p/@", DB: 3},
		"redis://u:p@[::1]:7?pool_size=9": {Addrs: []string{"[::1]:7"}, Username: "u", Password: "p", PoolSize: 9},
		"redis://[::1]":                   {Addrs: []string{"[::1]:6379"}},
		"redis+cluster://h":               {Addrs: []string{"h:6379"}, IsClusterMode: true},
		"redis+cluster://u:p@a:1,b,c:3?read_timeout=200ms": {Addrs: []string{"a:1", "b:6379", "c:3"}, Username: "u",
			Password: "p", ReadTimeout: 200 * time.Millisecond, IsClusterMode: true},
		"redis+sentinel://a,b:2/locks": {Addrs: []string{"a:26379", "b:2"}, MasterName: "locks"},
		"redis+sentinel://:p@a/locks/5?sentinel_username=s&sentinel_password=q&client_name=c": {Addrs: []string{"a:26379"}, DB: 5,
			MasterName: "locks", Password: "p", SentinelUsername: "s", SentinelPassword: "q", ClientName: "c"},
	} {
		got, err := redislock.ParseURL(text)
		if err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"rediss://h", "rediss+cluster://a,b", "rediss+sentinel://a/locks"} {
		got, err := redislock.ParseURL(text)
		if err != nil || got.TLSConfig == nil || got.TLSConfig.ServerName != "" {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

func TestParseURLRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "redis+cluster://",
		"h:6379":                          "redis+cluster://",
		"127.0.0.1:6379":                  "redis+cluster://",
		"http://u:secret@h":               "redis+cluster://",
		"redis://":                        "redis+cluster://",
		"redis+cluster://":                "redis+cluster://",
		"redis://u:sec/ret@h":             "%2F",
		"redis://u:12/secret@h":           "%2F",
		"redis://:12/secret@h":            "%2F",
		"redis://:12?secret@h":            "%2F",
		"redis://:12?pool=secret@h":       "%2F",
		"redis://:12#secret@h":            "%2F",
		"redis+sentinel://:12/m/secret@h": "%2F",
		"redis://u:secret@h:1,i:2":        "redis+cluster://",
		"redis+ring://u:secret@h":         "redis+ring",
		"redis+cluster://u:secret@a,,b":   "empty",
		"redis+cluster://u:secret@a/3":    "database",
		"redis+sentinel://u:secret@a":     "name",
		"redis+sentinel://u:secret@a/m/x": "database",
		"redis://u:secret@h/x":            "database",
		"redis://u:secret@h?pool=3":       "pool",
		"redis://h?cacertfile=ca.pem":     "rediss",
		"rediss://h?cacertfile=none.pem":  "none.pem",
		"rediss://h?cacertfile=doc.go":    "no certificate",
		"rediss://h?certfile=own.pem":     "together",
	} {
		o, err := redislock.ParseURL(text)
		if err == nil {
			_, err = redislock.Open(o, redislock.Config{})
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sec") {
			t.Errorf("%s: %v, want an error about %s", text, err, want)
		}
	}
}

func FuzzParseURL(f *testing.F) {
	f.Add("redis+sentinel://u:p@a:1,b/locks/2?sentinel_password=q")
	f.Fuzz(func(t *testing.T, text string) {
		o, err := redislock.ParseURL(text)
		if err == nil && (len(o.Addrs) == 0 || o.Addrs[0] == "") {
			t.Errorf("no address: %+v", o)
		}
	})
}
