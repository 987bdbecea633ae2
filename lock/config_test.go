package lock_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
)

func TestConfig(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  lock.Config
		bad  string // the field that the error names
	}{
		{"zero", lock.Config{}, ""},
		{"shortest", lock.Config{TTL: 50 * time.Millisecond}, ""},
		{"too short", lock.Config{TTL: 50*time.Millisecond - 1}, "Config.TTL"},
		{"negative", lock.Config{TTL: -time.Second}, "Config.TTL"},
		{"too long", lock.Config{TTL: math.MaxInt64}, "Config.TTL"},
		{"longest", lock.Config{TTL: 365 * 24 * time.Hour}, ""},
		{"negative limit", lock.Config{RequestTimeout: -1}, "Config.RequestTimeout"},
		{"limit over ttl", lock.Config{TTL: time.Second, RequestTimeout: time.Second + 1}, "Config.RequestTimeout"},
		{"limit as long as ttl", lock.Config{TTL: time.Second, RequestTimeout: time.Second}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.bad == "" {
				newLocker(t, memlock.New(), tt.cfg)
				return
			}
			_, err := lock.New(memlock.New(), tt.cfg)
			if err == nil || !strings.Contains(err.Error(), tt.bad) {
				t.Errorf("New: %v, want an error that names %s", err, tt.bad)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	lease := acquire(t, newLocker(t, memlock.New(), lock.Config{}), "k")
	if ttl := lease.Grant().TTL; ttl != 30*time.Second {
		t.Errorf("TTL is %v, want 30s", ttl)
	}
}

func TestNewWithoutEngine(t *testing.T) {
	if _, err := lock.New(nil, lock.Config{}); err == nil {
		t.Error("New(nil) returns no error")
	}
}

func TestHeldErrorSaysWhatIsKnown(t *testing.T) {
	err := &lockengine.HeldError{Key: "k", Holder: lockengine.Holder{
		Owner: "me:1", TTL: 2 * time.Second, Place: lockengine.Place{Node: "127.0.0.1:7000", Slot: 5},
	}}
	for ttl, left := range map[time.Duration]string{
		2 * time.Second:                               "2s",
		29_312_345_678 * time.Nanosecond:              "29s",
		1_234_567_890 * time.Nanosecond:               "1.2s",
		123_456_789 * time.Nanosecond:                 "123ms",
		time.Nanosecond:                               "1ms",
		90*time.Second + time.Microsecond:             "1m30s",
		9_999*time.Millisecond + 999*time.Microsecond: "10s",
	} {
		err.Holder.TTL = ttl
		want := `lock: "k" is held by me:1 on 127.0.0.1:7000 and expires in ` + left + ` unless it is renewed`
		if err.Error() != want {
			t.Errorf("text is %s\nwant    %s", err, want)
		}
	}
	if text := (&lockengine.HeldError{Key: "k"}).Error(); text != `lock: "k" is held` {
		t.Errorf("text of an unknown holder is %s", text)
	}
}
