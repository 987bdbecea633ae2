package receiver_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
)

// Each kind sends exactly this, to exactly there. The signatures were computed
// with another program (openssl dgst -sha256 -hmac).
func TestBodies(t *testing.T) {
	zone := time.FixedZone("", 8*3600)
	tests := []struct {
		kind   receiver.Kind
		cfg    receiver.Config
		path   string // configured
		uri    string // asked for
		answer string
		auth   string
	}{
		{
			kind: receiver.Webhook, cfg: receiver.Config{Token: "sesame"}, path: "/hook?a=1", uri: "/hook?a=1",
			auth: "Bearer sesame",
		},
		{kind: receiver.Alertmanager, path: "/am", uri: "/am/api/v2/alerts"},
		{kind: receiver.Slack, cfg: receiver.Config{Mentions: []string{"U024", "all"}}, path: "/services/T0/B0/x", uri: "/services/T0/B0/x", answer: "ok"},
		{
			kind: receiver.DingTalk, cfg: receiver.Config{Secret: "SECret", Mentions: []string{"13800000000"}, Location: zone},
			path: "/robot/send?access_token=t0ken", answer: `{"errcode":0,"errmsg":"ok"}`,
			uri: "/robot/send?access_token=t0ken&sign=8%2B4Y%2FJnH7v6YxR7vFH2viqulk1QDrim7n57wmxyBvxI%3D&timestamp=1777863721500",
		},
		{
			kind: receiver.Feishu, cfg: receiver.Config{Secret: "SECret", Mentions: []string{"ou_1", "all"}, Location: zone},
			path: "/open-apis/bot/v2/hook/h00k", uri: "/open-apis/bot/v2/hook/h00k", answer: `{"code":0,"msg":"success","data":{}}`,
		},
		{
			kind: receiver.WeCom, cfg: receiver.Config{Mentions: []string{"13800000000", "all"}, Location: zone},
			path: "/cgi-bin/webhook/send?key=k3y", uri: "/cgi-bin/webhook/send?key=k3y", answer: `{"errcode":0,"errmsg":"ok"}`,
		},
	}
	for _, tt := range tests {
		t.Run(string(tt.kind), func(t *testing.T) {
			s := newServer(t, http.StatusOK, tt.answer)
			tt.cfg.Kind, tt.cfg.URL = tt.kind, s.URL+tt.path
			if err := newReceiver(t, tt.cfg).Send(t.Context(), notification()); err != nil {
				t.Fatal(err)
			}
			g := s.one(t)
			if g.method != http.MethodPost || g.uri != tt.uri {
				t.Errorf("request %s %s, want POST %s", g.method, g.uri, tt.uri)
			}
			if got := g.header.Get("Content-Type"); got != "application/json; charset=utf-8" {
				t.Errorf("content type %q", got)
			}
			if got := g.header.Get("Authorization"); got != tt.auth {
				t.Errorf("authorization %q, want %q", got, tt.auth)
			}
			golden(t, string(tt.kind)+".json", g.body)
		})
	}
}

// A routine message shows that all is well, and calls nobody.
func TestRoutine(t *testing.T) {
	for kind, answer := range map[receiver.Kind]string{
		receiver.Slack: "ok", receiver.DingTalk: `{"errcode":0}`, receiver.WeCom: `{"errcode":0}`, receiver.Feishu: `{"code":0}`,
	} {
		s := newServer(t, http.StatusOK, answer)
		n := notification()
		n.Routine = true
		if err := newReceiver(t, receiver.Config{Kind: kind, URL: s.URL, Mentions: []string{"U024", "all"}}).Send(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		body := string(s.one(t).body)
		if !strings.Contains(body, "[OK] ") {
			t.Errorf("%s: %s does not say OK", kind, body)
		}
		for _, call := range []string{"U024", "<!channel> [", `"isAtAll":true`, "@all\"", "<at id=", `"red"`, "danger"} {
			if strings.Contains(body, call) {
				t.Errorf("%s: %s has %s", kind, body, call)
			}
		}
	}
}

// Without a secret nothing is signed, and the address stays as it was written.
func TestUnsigned(t *testing.T) {
	s := newServer(t, http.StatusOK, `{"errcode":0}`)
	r := newReceiver(t, receiver.Config{Kind: receiver.DingTalk, URL: s.URL + "/robot/send?access_token=a%2Bb"})
	if err := r.Send(t.Context(), notification()); err != nil {
		t.Fatal(err)
	}
	if g := s.one(t); g.uri != "/robot/send?access_token=a%2Bb" {
		t.Errorf("asked for %s", g.uri)
	}
	s = newServer(t, http.StatusOK, `{"code":0}`)
	r = newReceiver(t, receiver.Config{Kind: receiver.Feishu, URL: s.URL})
	if err := r.Send(t.Context(), notification()); err != nil {
		t.Fatal(err)
	}
	if g := s.one(t); bytes.Contains(g.body, []byte(`"sign"`)) || bytes.Contains(g.body, []byte(`"timestamp"`)) {
		t.Errorf("signed without a secret: %s", g.body)
	}
}

// Whatever an alert says and however long it is, a message stays within what
// the robot takes, is valid JSON, and calls nobody.
func TestHostileAndLong(t *testing.T) {
	limits := map[receiver.Kind]int{
		receiver.Slack: 16 << 10, receiver.DingTalk: 20_000, receiver.Feishu: 20_000, receiver.WeCom: 1 << 20,
	}
	answers := map[receiver.Kind]string{
		receiver.Slack: "ok", receiver.DingTalk: `{"errcode":0}`, receiver.Feishu: `{"code":0}`, receiver.WeCom: `{"errcode":0}`,
	}
	for kind, limit := range limits {
		for _, piece := range []string{`"`, `\`, "<", "&", "锁", "\x1b", "\u202e", "\xff", "<@all>", "<!channel>", "x"} {
			n := notification()
			long := strings.Repeat(piece, 5000)
			for i := range 200 {
				a := n.Alerts[0]
				a.Annotations = map[string]string{}
				for _, name := range []string{
					receiver.AnnotationSummary, receiver.AnnotationDescription, receiver.AnnotationEvidence,
					receiver.AnnotationNext, receiver.AnnotationRunbook,
				} {
					a.Annotations[name] = long
				}
				a.Annotations[receiver.AnnotationEvidence] = strings.Repeat(long[:100]+"\n", 50)
				if i > 0 {
					n.Alerts = append(n.Alerts, a)
				}
			}
			n.GroupLabels["service"] = long
			s := newServer(t, http.StatusOK, answers[kind])
			if err := newReceiver(t, receiver.Config{Kind: kind, URL: s.URL}).Send(t.Context(), n); err != nil {
				t.Fatal(err)
			}
			body := s.one(t).body
			if len(body) > limit || !json.Valid(body) || !utf8.Valid(body) {
				t.Errorf("%s of %q: %d bytes, valid JSON %v, want at most %d", kind, piece, len(body), json.Valid(body), limit)
			}
			checkCallsNobody(t, kind, body)
			if !bytes.Contains(body, []byte("more")) || !bytes.Contains(body, []byte(n.ExternalURL)) {
				t.Errorf("%s of %q does not say what is left out: %s", kind, piece, body)
			}
		}
	}
}

func checkCallsNobody(t *testing.T, kind receiver.Kind, body []byte) {
	t.Helper()
	for _, call := range []string{"<@", "<!", `"at"`, "atAll", "mentioned", "lark_md"} {
		if kind != receiver.Slack && call == "<!" || kind != receiver.Slack && kind != receiver.WeCom && call == "<@" {
			continue // ordinary text there
		}
		if bytes.Contains(body, []byte(call)) {
			t.Errorf("%s: %q in the message: %.300s", kind, call, body)
		}
	}
	if kind == receiver.WeCom {
		var msg struct {
			Text struct {
				Content string `json:"content"`
			} `json:"text"`
		}
		if err := json.Unmarshal(body, &msg); err != nil || len(msg.Text.Content) > 2048 {
			t.Errorf("WeCom text of %d bytes (%v), want at most 2048", len(msg.Text.Content), err)
		}
	}
}
