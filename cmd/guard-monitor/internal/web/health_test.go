package web_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/web"
)

func TestHealth(t *testing.T) {
	tests := []struct {
		name   string
		store  error
		broker error
		code   int
		want   map[string]string
	}{
		{"all well", nil, nil, 200, map[string]string{"status": "ok", "broker": "ok", "store": "ok"}},
		{"no broker", nil, errors.New("no connection"), 503, map[string]string{"status": "failing", "broker": "not connected", "store": "ok"}},
		{"no store", errors.New("disk"), nil, 503, map[string]string{"status": "failing", "broker": "ok", "store": "not answering"}},
		{"the store takes nothing", nil, fmt.Errorf("%w: disk full", intake.ErrHandler), 503, map[string]string{"status": "failing", "broker": "ok", "store": "not taking events"}},
		{"the store answers nothing either", errors.New("disk"), intake.ErrHandler, 503, map[string]string{"status": "failing", "broker": "ok", "store": "not answering"}},
		{"neither", errors.New("disk"), errors.New("no connection"), 503, map[string]string{"status": "failing", "broker": "not connected", "store": "not answering"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t, func(c *web.Config) {
				c.Broker = broker{err: tt.broker}
				if tt.store != nil {
					c.Store = failing{c.Store.(*store.Store)}
				}
			})
			if res := s.get(t, "/livez"); res.Code != 200 { // nothing that a restart would mend
				t.Errorf("/livez: code %d, want 200", res.Code)
			}
			res := s.get(t, "/healthz")
			if res.Code != tt.code {
				t.Errorf("code %d, want %d", res.Code, tt.code)
			}
			if got := res.Header().Get("Content-Type"); got != "application/json" {
				t.Errorf("content type %q", got)
			}
			var got map[string]string
			if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
				t.Fatal(err)
			}
			for part, want := range tt.want {
				if got[part] != want {
					t.Errorf("%s: %q, want %q", part, got[part], want)
				}
			}
		})
	}
}
