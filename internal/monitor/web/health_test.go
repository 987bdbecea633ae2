package web_test

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestHealth(t *testing.T) {
	tests := []struct {
		name      string
		store     error
		connected bool
		code      int
		want      map[string]string
	}{
		{"all well", nil, true, 200, map[string]string{"status": "ok", "broker": "ok", "store": "ok"}},
		{"no broker", nil, false, 503, map[string]string{"status": "failing", "broker": "not connected", "store": "ok"}},
		{"no store", errors.New("disk"), true, 503, map[string]string{"status": "failing", "broker": "ok", "store": "not answering"}},
		{"neither", errors.New("disk"), false, 503, map[string]string{"status": "failing", "broker": "not connected", "store": "not answering"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := get(t, handler(t, &fakeStore{err: tt.store}, tt.connected), "/healthz")
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
