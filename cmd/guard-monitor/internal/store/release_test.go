package store_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/notify"
)

var record = flag.String("record", "", "write the file of this release, such as v0.1.0, to testdata")

// contents is what the file of a release holds.
type contents struct {
	Events        []notify.Event
	Incidents     []incident.Incident
	Timeline      []watch.Entry
	Silences      []incident.Silence
	Heartbeats    []incident.Heartbeat
	Notifications []store.Notification
	Audit         []store.AuditLine
}

// aRelease returns what is written to the file of a release. A later version reads the
// same.
func aRelease() contents {
	ev := event("0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b")
	ev.Verdict, ev.Outcome = notify.VerdictUnknownCommit, notify.OutcomeUnknown
	i := anIncident("0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2c")
	i.Events, i.Keys = 1, 1
	i.Effect = incident.Effect{Failures: 1, Unknown: 1, Doubtful: []string{ev.Key}}
	i.AckedBy, i.AckedAt = "ann", caught
	return contents{
		Events:    []notify.Event{ev},
		Incidents: []incident.Incident{i},
		Timeline: []watch.Entry{{
			ID: 1, At: caught, Since: caught.Add(-time.Second), Kind: watch.Failover, Cluster: "main", Shard: "0-5460",
			Node: "127.0.0.1:7000", Peer: "127.0.0.1:7001", Numbers: map[string]int64{watch.NewEpoch: 7}, Names: map[string]string{"client": "c"},
		}},
		Silences: []incident.Silence{{
			ID: 1, Matchers: []incident.Matcher{{Field: incident.ByService, Value: "other", Exact: true}},
			Start: caught, End: caught.Add(time.Hour), Author: "ann", Comment: "drill",
		}},
		Heartbeats:    []incident.Heartbeat{{Service: "orders", Instance: "1", At: caught, Every: 10 * time.Second, ReceivedAt: caught}},
		Notifications: []store.Notification{{ID: 1, At: caught, Receiver: "ops", Incident: i.ID, Reason: "firing", State: incident.New, Cause: i.Cause, Attempts: 1}},
		Audit:         []store.AuditLine{{ID: 1, At: caught, Who: "ann", Remote: "127.0.0.1:9", Action: "acknowledge", Subject: i.ID}},
	}
}

// A file that a released version wrote is opened, and all of it is read.
func TestFilesOfReleases(t *testing.T) {
	if *record != "" {
		recordRelease(t, filepath.Join("testdata", *record, "monitor.db.gz"))
	}
	files, err := filepath.Glob("testdata/v*/monitor.db.gz")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "m.db")
			unzip(t, file, path)
			got, want := readAll(t, openStore(t, path)), aRelease()
			if !reflect.DeepEqual(got, want) {
				t.Errorf("the file holds\n%+v\nwant\n%+v", got, want)
			}
		})
	}
}

func readAll(t *testing.T, s *store.Store) (c contents) {
	t.Helper()
	received, err := s.Recent(t.Context(), 10)
	noError(t, err)
	for _, r := range received {
		c.Events = append(c.Events, r.Event)
	}
	c.Incidents, err = s.Incidents(t.Context(), store.IncidentFilter{})
	noError(t, err)
	for n := range c.Incidents {
		c.Incidents[n].UpdatedAt = caught // it was the time of the recording
	}
	c.Timeline, err = s.TimelineAfter(t.Context(), 0)
	noError(t, err)
	c.Silences, err = s.AllSilences(t.Context(), store.Page{})
	noError(t, err)
	for n := range c.Silences {
		c.Silences[n].CreatedAt = time.Time{} // likewise
	}
	c.Heartbeats, err = s.Heartbeats(t.Context())
	noError(t, err)
	c.Notifications, err = s.Notifications(t.Context(), "", 0)
	noError(t, err)
	told, err := s.Told(t.Context(), "ops", []string{c.Incidents[0].ID})
	noError(t, err)
	for n, notification := range c.Notifications {
		c.Notifications[n].Cause = told[notification.Incident].Cause
	}
	c.Audit, err = s.AuditLines(t.Context(), store.Page{})
	noError(t, err)
	return c
}

// recordRelease writes what today's version writes.
func recordRelease(t *testing.T, file string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.db")
	s, err := store.Open(t.Context(), path)
	noError(t, err)
	c := aRelease()
	i := c.Incidents[0]
	add(t, s, c.Events[0], nil, true)
	apply(t, s, c.Incidents, incident.Move{Seq: 1, Incident: i.ID})
	noError(t, s.Acknowledge(t.Context(), i.ID, i.AckedBy, i.AckedAt))
	noError(t, s.AddEntries(t.Context(), c.Timeline))
	_, err = s.AddSilence(t.Context(), c.Silences[0])
	noError(t, err)
	noError(t, s.AddHeartbeat(t.Context(), c.Heartbeats[0]))
	noError(t, s.AddNotifications(t.Context(), c.Notifications))
	noError(t, s.Audit(t.Context(), c.Audit[0]))
	noError(t, s.Close())
	db := raw(t, path)
	_, err = db.ExecContext(context.Background(), `VACUUM`)
	noError(t, err)
	noError(t, db.Close())

	b, err := os.ReadFile(path)
	noError(t, err)
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, err = w.Write(b)
	noError(t, err)
	noError(t, w.Close())
	noError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	noError(t, os.WriteFile(file, zipped.Bytes(), 0o644))
}

func unzip(t *testing.T, file, path string) {
	t.Helper()
	f, err := os.Open(file)
	noError(t, err)
	defer f.Close()
	r, err := gzip.NewReader(f)
	noError(t, err)
	b, err := io.ReadAll(r)
	noError(t, err)
	noError(t, os.WriteFile(path, b, 0o600))
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
