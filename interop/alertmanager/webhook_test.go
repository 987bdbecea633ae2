// Package alertmanager checks with Alertmanager's own types what guard-monitor
// sends to webhooks. It is a module of its own: these types bring hundreds of
// packages along.
package alertmanager

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/prometheus/alertmanager/notify/webhook"
	"github.com/prometheus/alertmanager/template"
)

// The file is what a test of the receivers has seen on the wire, byte by byte.
const sent = "../../cmd/guard-monitor/internal/receiver/testdata/webhook.json"

func TestWebhook(t *testing.T) {
	raw, err := os.ReadFile(sent)
	if err != nil {
		t.Fatal(err)
	}
	message := webhook.Message{Data: &template.Data{}}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&message); err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 5, 4, 3, 0, 0, 0, time.UTC)
	switch {
	case message.Version != "4" || message.GroupKey != `{cause="failover", service="orders"}` || message.TruncatedAlerts != 2:
		t.Errorf("message %+v", message)
	case message.Receiver != "night" || message.Status != "firing" || message.NotificationReason != "first notification":
		t.Errorf("data %+v", message.Data)
	case message.GroupLabels["cause"] != "failover" || message.CommonLabels["service"] != "orders" || message.ExternalURL == "":
		t.Errorf("data %+v", message.Data)
	case len(message.Alerts) != 2 || len(message.Alerts.Firing()) != 1 || len(message.Alerts.Resolved()) != 1:
		t.Fatalf("alerts %+v", message.Alerts)
	}
	firing, resolved := message.Alerts[0], message.Alerts[1]
	if !firing.StartsAt.Equal(begin) || !firing.EndsAt.IsZero() || firing.Labels["shard"] != "0-5460" || firing.GeneratorURL == "" || len(firing.Fingerprint) != 16 {
		t.Errorf("firing %+v", firing)
	}
	if !resolved.EndsAt.Equal(begin.Add(time.Minute)) || resolved.Annotations["summary"] == "" {
		t.Errorf("resolved %+v", resolved)
	}

	// What Alertmanager would write of it has the same members and values.
	again, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	var have, want map[string]any
	if err := json.Unmarshal(raw, &have); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(again, &want); err != nil {
		t.Fatal(err)
	}
	delete(want, "routeLabels") // new in 0.34, and ours to leave out
	a, _ := json.Marshal(have)
	b, _ := json.Marshal(want)
	if !bytes.Equal(a, b) {
		t.Errorf("sent      %s\nre-encoded %s", a, b)
	}
}
