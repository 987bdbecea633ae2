package dialect

import "testing"

type wrapper struct{ in *int }

func (w *wrapper) Conn() *int { return w.in }

type other struct{ in any }

func (o other) Conn() any { return o.in }

// TestIdentity: connections that are wrapped anew are told by what they wrap.
func TestIdentity(t *testing.T) {
	n, plain := 1, &struct{ int }{1}
	for _, tt := range []struct {
		name       string
		conn, want any
	}{
		{"a pointer", plain, plain},
		{"no pointer", *plain, nil},
		{"a wrapper", &wrapper{&n}, &n},
		{"another", other{&n}, nil},
		{"of nothing", &wrapper{}, nil},
	} {
		if got := identity(tt.conn); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
