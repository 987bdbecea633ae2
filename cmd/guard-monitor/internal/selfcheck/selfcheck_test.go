package selfcheck_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/selfcheck"
)

func TestFailureIsSentAfterAMinute(t *testing.T) {
	onStage(t, nil, func(s *stage) {
		s.expect(2 * time.Minute)
		s.parts["broker"].fail()
		s.expect(58 * time.Second)
		s.expect(5*time.Second, "broker firing")
		s.expect(9 * time.Minute)
		s.expect(time.Minute, "broker firing")
		s.parts["broker"].work()
		s.expect(8 * time.Second)
		s.expect(65*time.Second, "broker resolved")
		s.expect(12 * time.Minute)
	})
}

// What a message says is enough to act on.
func TestMessage(t *testing.T) {
	onStage(t, nil, func(s *stage) {
		s.parts["broker"].fail()
		<-time.After(70 * time.Second) // on the bubble's clock
		s.inbox.mu.Lock()
		defer s.inbox.mu.Unlock()
		if len(s.inbox.got) != 1 {
			t.Fatalf("%d messages", len(s.inbox.got))
		}
		a := s.inbox.got[0].Alerts[0]
		for name, want := range map[string]string{
			receiver.AnnotationSummary: "no broker", receiver.AnnotationDescription: "it is away",
			receiver.AnnotationNext: "look", receiver.AnnotationRunbook: "http://d/docs/receivers.md",
		} {
			if a.Annotations[name] != want {
				t.Errorf("%s = %q, want %q", name, a.Annotations[name], want)
			}
		}
		if a.Labels["severity"] != "critical" || a.URL != "http://m" || time.Since(a.StartsAt) < time.Minute {
			t.Errorf("alert %+v", a)
		}
	})
}

// A start, a rolling restart of a server, and a moment without it are no failure.
func TestNoFalseAlarm(t *testing.T) {
	onStage(t, nil, func(s *stage) {
		for range 5 {
			s.parts["broker"].fail()
			s.expect(50 * time.Second)
			s.parts["broker"].work()
			s.expect(15 * time.Second)
		}
	})
}

// A connection that comes back for a moment, again and again, is a failure.
func TestFlapping(t *testing.T) {
	onStage(t, nil, func(s *stage) {
		for range 3 {
			s.parts["broker"].fail()
			s.expect(17 * time.Second)
			s.parts["broker"].work()
			s.expect(4 * time.Second)
		}
		s.parts["broker"].fail()
		s.expect(2*time.Second, "broker firing")
	})
}

func TestSeveralParts(t *testing.T) {
	onStage(t, nil, func(s *stage) {
		s.parts["broker"].fail()
		s.expect(70*time.Second, "broker firing")
		s.parts["store"].fail()
		s.expect(70*time.Second, "broker firing, store firing")
		s.parts["broker"].work()
		s.expect(70*time.Second, "store firing, broker resolved")
		s.parts["store"].work()
		s.expect(70*time.Second, "store resolved")
	})
}

// A restart sends nothing again, and does not forget that a failure is over.
func TestRestart(t *testing.T) {
	onStage(t, nil, func(s *stage) {
		s.parts["broker"].fail()
		s.expect(70*time.Second, "broker firing")
		s.stop()
		s.start()
		s.expect(8 * time.Minute)
		s.stop()
		s.parts["broker"].work()
		s.start()
		s.expect(15*time.Second, "broker resolved")
		s.stop()
		s.start()
		s.expect(3 * time.Minute)
	})
}

// A store that takes nothing is reported once, and what was sent is stored afterwards.
func TestStoreThatTakesNothing(t *testing.T) {
	onStage(t, nil, func(s *stage) {
		s.log.setFull(true)
		s.parts["store"].fail()
		s.expect(5*time.Minute, "store firing")
		if len(s.log.list) > 0 {
			t.Errorf("stored %v", s.log.list)
		}
		s.log.setFull(false)
		s.parts["store"].work()
		s.expect(15*time.Second, "store resolved")
		if len(s.log.list) != 2 {
			t.Errorf("stored %v, want the beginning and the end", s.log.list)
		}
	})
}

// A receiver that does not answer is tried again, and gets what holds then.
func TestReceiverAway(t *testing.T) {
	onStage(t, nil, func(s *stage) {
		s.inbox.refuse(errors.New("no answer"))
		s.parts["broker"].fail()
		s.expect(15 * time.Minute)
		if s.inbox.tries < 10 || s.inbox.tries > 13 {
			t.Errorf("%d tries in a quarter of an hour", s.inbox.tries)
		}
		s.inbox.refuse(nil)
		s.expect(6*time.Minute, "broker firing")
		s.inbox.refuse(&receiver.Error{RetryAfter: 8 * time.Minute})
		s.parts["broker"].work()
		s.expect(7 * time.Minute)
		s.inbox.refuse(nil)
		s.expect(5*time.Minute, "broker resolved")
	})
}

// A receiver that was never told of a failure is not told that it is over.
func TestOverBeforeItWasSent(t *testing.T) {
	onStage(t, nil, func(s *stage) {
		s.inbox.refuse(errors.New("no answer"))
		s.parts["broker"].fail()
		s.expect(2 * time.Minute)
		s.parts["broker"].work()
		s.expect(time.Minute)
		s.inbox.refuse(nil)
		s.expect(5 * time.Minute)
	})
}

func TestDelay(t *testing.T) {
	onStage(t, func(r *selfcheck.Route) { r.Delay = 15 * time.Minute }, func(s *stage) {
		s.parts["broker"].fail()
		s.expect(15 * time.Minute)
		s.expect(65*time.Second, "broker firing")
	})
}

func TestWithoutFailures(t *testing.T) {
	onStage(t, func(r *selfcheck.Route) { r.Failures = false }, func(s *stage) {
		s.parts["broker"].fail()
		s.expect(12 * time.Minute)
	})
}

func TestWithoutResolved(t *testing.T) {
	onStage(t, func(r *selfcheck.Route) { r.Resolved = false }, func(s *stage) {
		s.parts["broker"].fail()
		s.expect(70*time.Second, "broker firing")
		s.parts["broker"].work()
		s.expect(2 * time.Minute)
		s.parts["broker"].fail()
		s.expect(70*time.Second, "broker firing")
	})
}

// A receiver that forgets gets a failure all the time, and the log does not grow.
func TestContinuous(t *testing.T) {
	onStage(t, func(r *selfcheck.Route) { r.Continuous, r.Repeat = true, time.Minute }, func(s *stage) {
		s.parts["broker"].fail()
		s.expect(70*time.Second, "broker firing")
		s.expect(time.Minute, "broker firing")
		s.expect(time.Minute, "broker firing")
		s.parts["broker"].work()
		s.expect(70*time.Second, "broker resolved")
		if len(s.log.list) != 2 {
			t.Errorf("stored %v", s.log.list)
		}
	})
}

// The watchdog ends when a part fails, and when nothing is known of one.
func TestWatchdog(t *testing.T) {
	const wolf = "BelayWatchdog firing"
	onStage(t, func(r *selfcheck.Route) { r.Watchdog = 5 * time.Minute }, func(s *stage) {
		s.expect(8 * time.Second)
		s.expect(5*time.Second, wolf)
		s.expect(10*time.Minute, wolf, wolf)
		s.parts["broker"].fail() // for a moment
		s.expect(30 * time.Second)
		s.parts["broker"].work()
		s.expect(5*time.Minute, wolf)
		s.parts["broker"].fail()
		s.expect(8*time.Minute, "broker firing")
		s.parts["broker"].work()
		s.expect(75*time.Second, "broker resolved", wolf)
		s.stop()
		s.parts["broker"].fail()
		s.start()
		s.expect(30 * time.Second)
	})
}

// Restarts do not multiply the messages of a rare watchdog.
func TestRareWatchdog(t *testing.T) {
	const wolf = "BelayWatchdog firing"
	onStage(t, func(r *selfcheck.Route) { r.Watchdog = time.Hour }, func(s *stage) {
		s.expect(15*time.Second, wolf)
		for range 3 {
			s.stop()
			s.start()
			s.expect(15 * time.Minute)
		}
		s.expect(15*time.Minute, wolf)
	})
}

func TestNewRefuses(t *testing.T) {
	for want, cfg := range map[string]selfcheck.Config{
		"Config.Log": {},
		"Routes[0]":  {Log: &memory{}, Routes: []selfcheck.Route{{}}},
	} {
		if _, err := selfcheck.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, want %q named", err, want)
		}
	}
}

// A part that has failed, and is taken out of the settings, as a Redis that is decommissioned, no
// longer fails.
func TestFailedPartIsTakenOut(t *testing.T) {
	onStage(t, nil, func(s *stage) {
		s.parts["broker"].fail()
		s.expect(70*time.Second, "broker firing")
		s.stop()
		s.startWith("store")
		s.expect(time.Hour, "broker resolved")
		s.stop()
		s.startWith("store")
		s.expect(time.Hour)
	})
}
