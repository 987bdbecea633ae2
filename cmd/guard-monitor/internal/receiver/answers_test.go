package receiver_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
)

func TestAnswers(t *testing.T) {
	const (
		taken = iota
		again
		never
	)
	tests := []struct {
		kind   receiver.Kind
		status int
		answer string
		want   int
		after  time.Duration
	}{
		{receiver.Webhook, 200, "", taken, 0},
		{receiver.Webhook, 204, "", taken, 0},
		{receiver.Webhook, 302, "", never, 0},
		{receiver.Webhook, 400, "no", never, 0},
		{receiver.Webhook, 404, "", never, 0},
		{receiver.Webhook, 408, "", again, 0},
		{receiver.Webhook, 429, "slow down", again, 0},
		{receiver.Webhook, 500, "", again, 0},
		{receiver.Alertmanager, 200, "", taken, 0},
		{receiver.Alertmanager, 400, `"bad"`, never, 0},
		{receiver.Alertmanager, 503, "", again, 0},
		{receiver.Slack, 200, "ok", taken, 0},
		{receiver.Slack, 200, "invalid_token", never, 0},
		{receiver.Slack, 200, "", again, 0},
		{receiver.Slack, 200, "<html>proxy</html>", again, 0},
		{receiver.Slack, 200, "rate_limited", again, 0},
		{receiver.Slack, 400, "invalid_payload", never, 0},
		{receiver.Slack, 403, "invalid_token", never, 0},
		{receiver.Slack, 404, "no_service", never, 0},
		{receiver.Slack, 410, "channel_is_archived", never, 0},
		{receiver.Slack, 429, "rate_limited", again, 0},
		{receiver.Slack, 500, "rollup_error", again, 0},
		{receiver.DingTalk, 200, `{"errcode":0,"errmsg":"ok"}`, taken, 0},
		{receiver.DingTalk, 200, `{"errcode":310000,"errmsg":"sign not match"}`, never, 0},
		{receiver.DingTalk, 200, `{"errcode":130101,"errmsg":"send too fast"}`, again, 10 * time.Minute},
		{receiver.DingTalk, 200, `{"errcode":-1,"errmsg":"系统繁忙"}`, again, 0},
		{receiver.DingTalk, 200, `{"errcode":500100,"errmsg":"description:系统异常，请稍后再试;"}`, again, 0},
		{receiver.DingTalk, 200, `{"errcode":410100,"errmsg":"发送速度太快而限流"}`, again, time.Minute},
		{receiver.DingTalk, 400, `{"errcode":-1,"errmsg":"系统繁忙"}`, again, 0},
		{receiver.DingTalk, 400, `{"errcode":43004,"errmsg":"无效的HTTP HEADER Content-Type"}`, never, 0},
		{receiver.DingTalk, 400, `<html>proxy</html>`, never, 0},
		{receiver.DingTalk, 200, `{"errcode":400102,"errmsg":"机器人已停用"}`, never, 0},
		{receiver.DingTalk, 200, ``, again, 0},
		{receiver.DingTalk, 200, `<html>proxy</html>`, again, 0},
		{receiver.DingTalk, 200, `{"errmsg":"ok"}`, again, 0},
		{receiver.DingTalk, 200, `{"errcode":"0"}`, again, 0},
		{receiver.DingTalk, 500, `{"errcode":0}`, again, 0},
		{receiver.WeCom, 200, `{"errcode":0,"errmsg":"ok"}`, taken, 0},
		{receiver.WeCom, 200, `{"errcode":93000,"errmsg":"invalid webhook url"}`, never, 0},
		{receiver.WeCom, 200, `{"errcode":45009,"errmsg":"freq out of limit"}`, again, time.Minute},
		{receiver.WeCom, 200, `{"errcode":45033,"errmsg":"api concurrent out of limit"}`, again, 0},
		{receiver.WeCom, 200, `{"errcode":-1,"errmsg":"system busy"}`, again, 0},
		{receiver.WeCom, 200, `null`, again, 0},
		{receiver.Feishu, 200, `{"code":0,"msg":"success"}`, taken, 0},
		{receiver.Feishu, 200, `{"code":19021,"msg":"sign match fail"}`, never, 0},
		{receiver.Feishu, 200, `{"code":11232,"msg":"frequency limited"}`, again, 5 * time.Second},
		{receiver.Feishu, 200, `{"code":99991400,"msg":"request trigger frequency limit"}`, again, 5 * time.Second},
		{receiver.Feishu, 400, `{"code":99991400,"msg":"request trigger frequency limit"}`, again, 5 * time.Second},
		{receiver.Feishu, 429, `{"code":99991400,"msg":"request trigger frequency limit"}`, again, 5 * time.Second},
		{receiver.Feishu, 400, `{"code":9499,"msg":"Bad Request"}`, never, 0},
		{receiver.Feishu, 200, `{}`, again, 0},
		{receiver.Feishu, 200, `[]`, again, 0},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s %d %s", tt.kind, tt.status, tt.answer), func(t *testing.T) {
			s := newServer(t, tt.status, tt.answer)
			err := newReceiver(t, receiver.Config{Kind: tt.kind, URL: s.URL}).Send(t.Context(), notification())
			var failed *receiver.Error
			switch {
			case tt.want == taken && err != nil:
				t.Errorf("Send: %v, want nil", err)
			case tt.want == taken:
			case !errors.As(err, &failed):
				t.Errorf("Send: %v, want a *receiver.Error", err)
			case failed.Permanent != (tt.want == never) || failed.RetryAfter != tt.after:
				t.Errorf("Send: %+v, want permanent %v, again after %v", failed, tt.want == never, tt.after)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"30": 30 * time.Second, "0": 0, "-1": 0, "soon": 0, "99999999": time.Hour, "9223372036854775807": time.Hour,
		"Wed, 21 Oct 2026 07:28:00 GMT": 0,
	} {
		s := newServer(t, http.StatusTooManyRequests, "")
		s.header["Retry-After"] = header
		err := newReceiver(t, receiver.Config{Kind: receiver.Slack, URL: s.URL}).Send(t.Context(), notification())
		var failed *receiver.Error
		if !errors.As(err, &failed) || failed.RetryAfter != want {
			t.Errorf("Retry-After %q: %v, want %v", header, err, want)
		}
	}
}

// Feishu says in a header of its own when to try again, also with a status that is
// permanent elsewhere.
func TestRetryAfterOfFeishu(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusBadRequest, http.StatusTooManyRequests} {
		s := newServer(t, status, `{"code":99991400,"msg":"request trigger frequency limit"}`)
		s.header["X-Ogw-Ratelimit-Reset"] = "52"
		err := newReceiver(t, receiver.Config{Kind: receiver.Feishu, URL: s.URL}).Send(t.Context(), notification())
		var failed *receiver.Error
		if !errors.As(err, &failed) || failed.Permanent || failed.RetryAfter != 52*time.Second {
			t.Errorf("status %d: %+v, want again after 52 s", status, failed)
		}
	}
}

// A redirect is not followed: the message would go where nobody sent it.
func TestRedirect(t *testing.T) {
	target := newServer(t, http.StatusOK, "ok")
	s := newServer(t, http.StatusTemporaryRedirect, "")
	s.header["Location"] = target.URL
	r, err := receiver.New(receiver.Config{Name: "night", Kind: receiver.Slack, URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Send(t.Context(), notification()); err == nil {
		t.Error("Send to a redirect succeeded")
	}
	if len(target.got) > 0 {
		t.Error("the redirect was followed")
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

const (
	token  = "0123456789abcdef-t0ken"
	secret = "SEC-s+c/r=t"
)

// No error shows the address of a robot, its token or its secret, even if the
// server says them.
func TestSecretsStaySecret(t *testing.T) {
	for _, kind := range receiver.Kinds {
		cfg := receiver.Config{Kind: kind}
		said := token
		if kind == receiver.DingTalk || kind == receiver.Feishu {
			cfg.Secret, said = secret, token+" "+secret+" "+url.QueryEscape(secret)
		}
		if kind == receiver.Webhook || kind == receiver.Alertmanager {
			cfg.Token, said = secret, token+" "+secret
		}
		path := "/hook/" + token + "?access_token=" + token
		for _, status := range []int{200, 400, 500} {
			s := newServer(t, status, "")
			cfg.URL = s.URL + path
			s.answer = `{"errcode":1,"code":1,"errmsg":"` + cfg.URL + " " + said + `"}`
			checkSecret(t, newReceiver(t, cfg).Send(t.Context(), notification()), kind)
		}
		// Nobody answers here: port 1 is reserved and not served.
		cfg.URL = "http://user:" + token + "@127.0.0.1:1" + path
		err := newReceiver(t, cfg).Send(t.Context(), notification())
		checkSecret(t, err, kind)
		if !strings.Contains(err.Error(), "127.0.0.1:1") || strings.Contains(err.Error(), "Post ") {
			t.Errorf("%s: %v does not say who is not reached", kind, err)
		}
	}
}

// A secret that lies where a long answer is cut is not shown in part.
func TestSecretsAreNotCut(t *testing.T) {
	for _, kind := range receiver.Kinds {
		for before := 280; before < 300; before++ {
			s := newServer(t, 400, strings.Repeat("x", before)+token)
			err := newReceiver(t, receiver.Config{Kind: kind, URL: s.URL + "/hook/" + token}).Send(t.Context(), notification())
			if err == nil || strings.Contains(err.Error(), token[:4]) {
				t.Fatalf("%s, %d bytes before it: %v", kind, before, err)
			}
		}
	}
}

func checkSecret(t *testing.T, err error, kind receiver.Kind) {
	t.Helper()
	if err == nil {
		if kind != receiver.Webhook && kind != receiver.Alertmanager {
			t.Errorf("%s: Send succeeded", kind)
		}
		return
	}
	for _, hidden := range []string{token, secret, url.QueryEscape(secret)} {
		if strings.Contains(err.Error(), hidden) {
			t.Errorf("%s: %v shows a secret", kind, err)
		}
	}
	if !strings.Contains(err.Error(), `"night"`) {
		t.Errorf("%s: %v does not name the receiver", kind, err)
	}
}

func TestValidate(t *testing.T) {
	good := func() receiver.Config {
		return receiver.Config{Name: "night", Kind: receiver.DingTalk, URL: "https://example.com/" + token}
	}
	tests := []struct {
		change func(*receiver.Config)
		names  string
	}{
		{func(*receiver.Config) {}, ""},
		{func(c *receiver.Config) { c.Name = "" }, "name"},
		{func(c *receiver.Config) { c.Name = "a b" }, "name"},
		{func(c *receiver.Config) { c.Name = strings.Repeat("a", 65) }, "name"},
		{func(c *receiver.Config) { c.Kind = "" }, "type"},
		{func(c *receiver.Config) { c.Kind = "pager" }, "webhook, alertmanager, slack, dingtalk, feishu, wecom"},
		{func(c *receiver.Config) { c.URL = "" }, "url"},
		{func(c *receiver.Config) { c.URL = "ftp://example.com/" + token }, "url"},
		{func(c *receiver.Config) { c.URL = token }, "url"},
		{func(c *receiver.Config) { c.URL = "http://%zz" + token }, "url"},
		{func(c *receiver.Config) { c.URL = "http:///" + token }, "url"},
		{func(c *receiver.Config) { c.URL += "?a=%zz" }, "url"},
		{func(c *receiver.Config) { c.URL += "#" }, ""},
		{func(c *receiver.Config) { c.URL += "#x" }, "url"},
		{func(c *receiver.Config) { c.Token = secret }, "token"},
		{func(c *receiver.Config) { c.Kind, c.Token = receiver.Webhook, "a\nb" }, "token"},
		{func(c *receiver.Config) { c.Kind, c.Secret = receiver.Slack, secret }, "secret"},
		{func(c *receiver.Config) { c.Mentions = []string{"<!channel>"} }, "mentions"},
		{func(c *receiver.Config) { c.Mentions = []string{""} }, "mentions"},
		{func(c *receiver.Config) { c.Kind, c.Mentions = receiver.Webhook, []string{"a"} }, "mentions"},
	}
	for i, tt := range tests {
		cfg := good()
		tt.change(&cfg)
		_, err := receiver.New(cfg)
		switch {
		case tt.names == "" && err != nil:
			t.Errorf("%d: New: %v", i, err)
		case tt.names == "":
		case err == nil || !strings.Contains(err.Error(), tt.names):
			t.Errorf("%d: New: %v, want %q named", i, err, tt.names)
		case strings.Contains(err.Error(), token) || strings.Contains(err.Error(), secret):
			t.Errorf("%d: New: %v shows a secret", i, err)
		}
	}
}

func TestFingerprint(t *testing.T) {
	// As of github.com/prometheus/common/model.LabelSet.Fingerprint.
	for want, labels := range map[string]map[string]string{
		"cbf29ce484222325": {},
		"c336d97848a3e118": {"alertname": "BelayIncident", "service": "orders", "cause": "failover"},
	} {
		a := receiver.Alert{Labels: labels}
		if got := a.Fingerprint(); got != want {
			t.Errorf("fingerprint of %v = %s, want %s", labels, got, want)
		}
	}
}
